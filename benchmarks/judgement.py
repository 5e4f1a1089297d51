"""What it costs to read a long run back and to judge it, each in a fresh process; and whether that is linear.

The runs are simulated, and say so: eight accelerators with nine sensors each, a reading a second, two-exponential
heating, noise, quantisation, lost readings and a hole; and inference requests, whose reading is told apart.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model import Sensor, Unit
from pytest_thermal.recording import create_run
from pytest_thermal.recording.clock import RunClock
from pytest_thermal.recording.layout import REQUEST_COLUMNS, REQUESTS, RUN, SAMPLES, json_text
from pytest_thermal.recording.run_directory import seal
from pytest_thermal.recording.words import sensor_to_json

Floats = NDArray[np.float64]
Column = tuple[Sensor, str, Floats]
"""A sensor, how its values are written, and these."""

START_SECONDS = 1_800_000_000.0
CARDS, SENSORS = 8, 72
HOURS = (1.0, 6.0, 24.0)
BUDGET_SECONDS, BUDGET_MEGABYTES = 2.0, 500.0
"""For 24 h, read and judged."""
SOURCE = "simulated"
ROWS_AT_ONCE = 20_000
LOST, HOLE_SECONDS = 0.001, 4.0
"""Share of single readings that are lost; the length of the one longer hole of each card."""


def write_run(
    archive: Path,
    hours: float,
    *,
    per_second: float,
    only_temperatures: bool,
    seed: int = 1,
    node: str = "",
    warmer: Mapping[int, float] | None = None,
    period_seconds: float = 1.0,
) -> Path:
    """A finished and sealed run directory of ``hours`` with 72 sensors and so many requests a second.

    ``node`` is the machine that it says it was made on; ``warmer`` is by how many °C its cards rise more.
    """
    rng = np.random.default_rng(seed)
    whole = hours * 3600.0
    lengths = {"baseline": 300.0, "ramp": 120.0, "steady": whole - 1020.0, "cooldown": 600.0}
    phases, start = [], START_SECONDS
    for name, seconds in lengths.items():
        phases.append({"name": name, "start_seconds": start, "end_seconds": start + seconds})
        start += seconds
    times = START_SECONDS + 0.2 + np.arange(0.0, whole, period_seconds)
    times += rng.uniform(0.0, 0.004, times.size)
    columns = [
        column
        for card in range(CARDS)
        for column in _card(rng, card, times, only_temperatures, (warmer or {}).get(card, 0.0))
    ]
    run = create_run(
        archive,
        facts={
            "bench": "simulated",
            "simulated": True,
            "load": {"mode": "mixed", "concurrent_requests": 64},
            "plan": {"seconds": lengths},
        },
        clock=RunClock(unix_seconds=START_SECONDS, monotonic_seconds=0.0),
        node=node or f"simulated-{hours:g}h",
    )
    file = f"{SAMPLES}/{SOURCE}.csv"
    with (run / file).open("w", encoding="utf-8") as samples:
        samples.writelines(_lines(rng, times, columns))
    if per_second:
        with (run / REQUESTS).open("w", encoding="utf-8") as requests:
            requests.writelines(_requests(rng, phases, per_second))
    facts = json.loads((run / RUN).read_bytes())
    facts.update(
        state="finished",
        end_seconds=start,
        host={**facts["host"], **({"name": node} if node else {})},
        recorder={"period_seconds": period_seconds},
        sources={SOURCE: {"period_seconds": period_seconds, "segments": [{"file": file}], "missed": 0}},
        sensors=[sensor_to_json(sensor) for sensor, _, _ in columns],
        phases=phases,
    )
    (run / RUN).write_bytes(json_text(facts))
    seal(run)
    return run


def _card(
    rng: np.random.Generator, card: int, times: Floats, only_temperatures: bool, warmer: float = 0.0
) -> Iterator[Column]:
    count = times.size
    since_on, since_off = times - START_SECONDS - 300.0, times - times[-1] + 600.0
    loaded = (since_on >= 0) & (since_off < 0)

    def temperature(rise: float, noise: float) -> Floats:
        values = np.full(count, 32.0 + 0.2 * card)
        for part, tau in ((0.55, 12.0), (0.45, 280.0 + 5.0 * card)):
            heated = -np.expm1(-np.maximum(since_on, 0.0) / tau) + np.expm1(-np.maximum(since_off, 0.0) / tau)
            values += part * rise * heated
        return _holes(rng, values + 0.2 * np.sin(2 * np.pi * times / 86400.0) + rng.normal(0.0, noise, count))

    def column(name: str, unit: Unit, style: str, values: Floats, **limits: float) -> Column:
        device = name.partition(".")[0]
        sensor = Sensor(
            id=name, unit=unit, device=device, identity=f"SIM-{device}", source=SOURCE, label="simulated", limits=limits
        )
        return sensor, style, values

    gpu = f"gpu{card}"
    yield column(f"{gpu}.temperature_celsius", Unit.CELSIUS, "%.0f", temperature(34.0 + warmer, 0.4), slowdown=90.0)
    yield column(
        f"{gpu}.memory.temperature_celsius", Unit.CELSIUS, "%.0f", temperature(38.0 + warmer, 0.4), slowdown=95.0
    )
    if only_temperatures:
        for part in range(7):
            name = f"{gpu}.part{part}.temperature_celsius"
            yield column(name, Unit.CELSIUS, "%.1f" if part % 2 else "%.0f", temperature(30.0 + part, 0.3))
        return
    watts = np.where(loaded, 640.0, 70.0) + rng.normal(0.0, 6.0, count)
    yield column(f"{gpu}.power_watts", Unit.WATTS, "%.3f", _holes(rng, watts), cap=700.0)
    use = np.where(loaded, rng.integers(96, 101, count), 0).astype(np.float64)
    yield column(f"{gpu}.utilization_percent", Unit.PERCENT, "%.0f", _holes(rng, use))
    clock = np.where(loaded, 1755.0 + 15.0 * rng.integers(0, 3, count), 345.0)
    yield column(f"{gpu}.clock_megahertz", Unit.MEGAHERTZ, "%.0f", clock, max=1980.0)
    yield column(f"{gpu}.throttle.power_cap_milliseconds", Unit.MILLISECONDS, "%.0f", np.cumsum(loaded * 3.0))
    yield column(f"{gpu}.throttle.thermal_milliseconds", Unit.MILLISECONDS, "%.0f", np.full(count, 17.0))
    yield column(f"pump{card}.speed_rpm", Unit.RPM, "%.0f", 2800.0 + rng.normal(0.0, 9.0, count))
    flow = 4.0 + rng.normal(0.0, 0.03, count)
    yield column(f"coolant{card}.flow_liters_per_minute", Unit.LITERS_PER_MINUTE, "%.2f", flow)


def _holes(rng: np.random.Generator, values: Floats) -> Floats:
    lost = rng.random(values.size) < LOST
    length = int(HOLE_SECONDS)
    hole = int(rng.integers(1, values.size - length - 1))
    # A reading that is lost right beside it would make it a hole that no judgement lets pass.
    lost[hole - 1 : hole + length + 1] = [False, *[True] * length, False]
    return np.where(lost, np.nan, values)


def _lines(rng: np.random.Generator, times: Floats, columns: Sequence[Column]) -> Iterator[str]:
    own = [f"recorder.{SOURCE}.{what}_milliseconds" for what in ("lateness", "read")]
    yield ",".join(["time", *(sensor.id for sensor, _, _ in columns), *own]) + "\n"
    for first in range(0, times.size, ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        texts = [_texts("%.3f", times[part])]
        texts += [_texts(style, values[part]) for _, style, values in columns]
        texts += [_texts("%.1f", rng.uniform(*reach, times[part].size)) for reach in ((0.1, 1.0), (2.0, 9.0))]
        yield "".join(f"{','.join(cells)}\n" for cells in zip(*texts, strict=True))


def _texts(style: str, values: Floats) -> list[str]:
    return ["" if math.isnan(value) else style % value for value in values.tolist()]


def _requests(rng: np.random.Generator, phases: Sequence[Mapping[str, Any]], per_second: float) -> Iterator[str]:
    yield ",".join(REQUEST_COLUMNS) + "\n"
    for phase in phases[1:3]:
        begin, end = phase["start_seconds"], phase["end_seconds"]
        starts = np.arange(begin, end - 4.0, 1 / per_second)
        first, whole = rng.uniform(0.05, 0.4, starts.size), rng.uniform(1.0, 3.0, starts.size)
        tokens, failed = rng.integers(96, 129, starts.size), rng.random(starts.size) < 0.001
        rows = zip(starts.tolist(), first.tolist(), whole.tolist(), tokens.tolist(), failed.tolist(), strict=True)
        for start, ttft, latency, count, bad in rows:
            if bad:
                yield f"{start:.6f},,{latency:.6f},503,status 503: no worker is free,,,{phase['name']},rack-1,\n"
            else:
                yield f"{start:.6f},{ttft:.6f},{latency:.6f},200,,512,{count},{phase['name']},rack-1,\n"


# ------------------------------------------------------------------------------------ one run, in a process of its own


def judge(run: Path) -> dict[str, float]:
    """Seconds and megabytes of reading a run and of making all its findings."""
    begin, cpu = time.perf_counter(), time.process_time()
    from pytest_thermal.bench import Monitor
    from pytest_thermal.findings import Judgement, limits_for
    from pytest_thermal.recording import read_run

    imported, imported_cpu = time.perf_counter(), time.process_time()
    idle = _peak_megabytes()
    recording = read_run(run)
    read, read_cpu = time.perf_counter(), time.process_time()
    judgement = Judgement(recording, limits_for(Monitor()), simulated=True)
    summary = judgement.summary()
    judged, judged_cpu = time.perf_counter(), time.process_time()
    requests = recording.requests
    outcomes = [found["outcome"] for found in summary["findings"]]
    return {
        "import": imported - begin,
        "read": read - imported,
        "judge": judged - read,
        "import_cpu": imported_cpu - cpu,
        "read_cpu": read_cpu - imported_cpu,
        "judge_cpu": judged_cpu - read_cpu,
        "idle_megabytes": idle,
        "megabytes": _peak_megabytes(),
        "samples": float(sum(len(one) for one in recording.series.values())),
        "requests": float(0 if requests is None else len(requests)),
        "findings": float(len(outcomes)),
        "passed": float(outcomes.count("passed")),
    }


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _best(run: Path, tries: int) -> dict[str, float]:
    """The least of each of several processes: what else runs here only adds."""
    tried = []
    for _ in range(tries):
        done = subprocess.run(
            [sys.executable, __file__, "--judge", str(run)], check=True, stdout=subprocess.PIPE, timeout=600
        )
        tried.append(json.loads(done.stdout))
    return {name: min(one[name] for one in tried) for name in tried[0]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--hours", type=float, nargs="+", default=HOURS, help="lengths of the runs (default 1 6 24)")
    parser.add_argument("--per-second", type=float, default=20.0, help="requests a second (default 20)")
    parser.add_argument("--tries", type=int, default=3, help="processes of each row; the least counts (default 3)")
    parser.add_argument("--keep", type=Path, help="write the runs there, and leave them")
    options = parser.parse_args()
    if options.judge:
        sys.stdout.write(json.dumps(judge(options.judge)))
        return
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}; SIMULATED runs;")
    print(f"for 24 h: at most {BUDGET_SECONDS:g} s, {BUDGET_MEGABYTES:g} MB\n")
    print("| what | read s | judge s | both s | CPU s | ns/sample | peak MB | findings (passed) |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    rows: Sequence[tuple[str, Callable[[Path, float], Path]]] = (
        (f"{SENSORS} sensors", lambda path, hours: write_run(path, hours, per_second=0, only_temperatures=False)),
        (f"{SENSORS} temperatures", lambda path, hours: write_run(path, hours, per_second=0, only_temperatures=True)),
        (
            f"{SENSORS} sensors, {options.per_second:g} requests/s",
            lambda path, hours: write_run(path, hours, per_second=options.per_second, only_temperatures=False),
        ),
    )
    with tempfile.TemporaryDirectory() as name:
        for number, (what, write) in enumerate(rows):
            for hours in options.hours:
                run = write((options.keep or Path(name)) / str(number), hours)
                found = _best(run, options.tries)
                both, cpu = found["read"] + found["judge"], found["read_cpu"] + found["judge_cpu"]
                print(
                    f"| {what}, {hours:g} h | {found['read']:.2f} | {found['judge']:.2f} | {both:.2f} | {cpu:.2f} |"
                    f" {both / found['samples'] * 1e9:.0f} | {found['megabytes']:.0f} |"
                    f" {found['findings']:.0f} ({found['passed']:.0f}) |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
