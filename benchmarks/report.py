"""What the page of a run costs: size, seconds and memory, for a long run of many cards. In memory, so no disk is timed.

``python benchmarks/report.py [--cards 16] [--hours 24] [--period 1] [--out FILE]``: that run, and halves of it, to see
whether the time grows as the run does. Memory is of a process of its own for each.

``python benchmarks/report.py --fleet RESULTS [--nodes 48] [--allure DIR]``: Allure's report of many nodes instead, each
with the results of one run (``--alluredir``) under a name of its own, beside the report of that one node.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PER_CARD = (
    ("temperature_celsius", 32.0, 33.0, 0.4, 1.0),
    ("memory.temperature_celsius", 34.0, 38.0, 0.4, 1.0),
    ("hotspot.temperature_celsius", 36.0, 41.0, 0.6, 1.0),
    ("power_watts", 60.0, 560.0, 8.0, 0.1),
    ("utilization_percent", 0.0, 99.0, 0.5, 1.0),
    ("clock_megahertz", 345.0, 1600.0, 9.0, 15.0),
    ("memory.clock_megahertz", 405.0, 2200.0, 0.0, 1.0),
    ("fan.speed_rpm", 900.0, 2400.0, 25.0, 1.0),
    ("throttle.thermal_milliseconds", 0.0, 0.0, 0.0, 1.0),
)
"""Nine sensors of a card: idle, added by the load, noise (one sigma), step."""


def main() -> None:
    """Run each size in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cards", type=int, default=16)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--period", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--fleet", type=Path, metavar="RESULTS")
    parser.add_argument("--nodes", type=int, default=48)
    parser.add_argument("--allure", type=Path, default=Path(".allure"))
    given = parser.parse_args()
    if given.fleet is not None:
        fleet(given.fleet, given.nodes, given.allure)
        return
    if given.one:
        print(json.dumps(measure(given.cards, given.hours, given.period, given.out)))
        return
    first = None
    print(f"{'hours':>6} {'readings':>12} {'page':>9} {'seconds':>8} {'CPU':>7} {'memory':>9} {'per reading':>12}")
    for hours in (given.hours / 4, given.hours / 2, given.hours):
        command = [sys.executable, __file__, "--one", "--cards", str(given.cards), "--hours", str(hours)]
        command += ["--period", str(given.period)]
        if given.out and hours == given.hours:
            command += ["--out", str(given.out)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        each = found["cpu_seconds"] / found["readings"]
        first = first or each
        print(
            f"{hours:>6g} {found['readings']:>12,} {found['bytes'] / 1e6:>6.2f} MB {found['seconds']:>8.2f} "
            f"{found['cpu_seconds']:>7.2f} {found['added_mb']:>6.0f} MB {each / first:>10.2f} ×"
        )
    print("memory: what making the page added at its peak to that of the recording itself")


def fleet(results: Path, nodes: int, allure: Path) -> None:
    """One node and many, twice each: the second time a history is there."""
    print(f"{'nodes':>6} {'results':>10} {'page':>9} {'history':>9} {'seconds':>8} {'CPU':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, nodes):
            collected = Path(folder, f"of {count}")
            for number in range(count):
                copy_of_node(results, collected / f"run-{number}", f"node-{number:02}")
            size = sum(file.stat().st_size for file in collected.rglob("*") if file.is_file())
            for again in ("", " again"):
                collected = collected.rename(collected.with_name(f"{collected.name}{again}"))
                command = [sys.executable, "-m", "pytest_thermal.reporting.allure_report", "--merge"]
                command += ["--results", str(collected), "--allure", str(allure)]
                command += ["--output", f"{folder}/page", "--history", f"{folder}/{count}.jsonl"]
                begin, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                subprocess.run(command, check=True, capture_output=True)
                spent = time.perf_counter() - begin
                cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - cpu
                page, history = Path(folder, "page", "index.html"), Path(folder, f"{count}.jsonl")
                print(
                    f"{count:>6} {size / 1e6:>7.1f} MB {page.stat().st_size / 1e6:>6.1f} MB "
                    f"{history.stat().st_size / 1e6:>6.1f} MB {spent:>8.1f} {cpu:>7.1f}",
                    flush=True,
                )


def copy_of_node(results: Path, into: Path, node: str) -> None:
    """The results of one node as another's: files, ids and labels of its own."""
    into.mkdir(parents=True)
    names = {file.name: f"{node}-{file.name}" for file in results.iterdir() if file.is_file()}
    for name, own in names.items():
        if not name.endswith(".json"):
            shutil.copy(results / name, into / (name if name == "environment.properties" else own))
            continue
        text = (results / name).read_text(encoding="utf-8")
        for other, renamed in names.items():
            if "-attachment." in other:
                text = text.replace(f'"{other}"', f'"{renamed}"')
        data = json.loads(text)
        if name.endswith("-result.json"):
            data["uuid"] = f"{node}-{data['uuid']}"
            for told in (*data.get("labels", ()), *data.get("parameters", ())):
                if told["name"] == "node":
                    told["value"] = node
        (into / own).write_text(json.dumps(data), encoding="utf-8")


def measure(cards: int, hours: float, period: float, out: Path | None) -> dict[str, float]:
    """One page of an invented run."""
    from pytest_thermal.reporting.run_page import judged_subject, page_html

    recording, summary = invented(cards, hours, period)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, cpu = time.perf_counter(), time.process_time()
    text = page_html(judged_subject(recording, summary))
    spent, cpu_spent = time.perf_counter() - begin, time.process_time() - cpu
    if out is not None:
        out.write_text(text, encoding="utf-8")
    return {
        "readings": sum(len(series) for series in recording.series.values()),
        "bytes": len(text.encode()),
        "seconds": spent,
        "cpu_seconds": cpu_spent,
        "added_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


def invented(cards: int, hours: float, period: float):
    """A run with a baseline and a cooldown of five minutes, requests, gaps, and a card that slows itself down."""
    import numpy as np

    from pytest_thermal.model import Sensor, Unit
    from pytest_thermal.model.series import Phase, Series
    from pytest_thermal.recording import Labels, Recording, Requests

    rng, start = np.random.default_rng(1), 1.8e9
    count = int(hours * 3600 / period)
    times = start + np.arange(count) * period + rng.uniform(0, 0.002, count)
    end = start + count * period
    on = 1 - np.exp(-np.clip(times - start - 300, 0, None) / 240)
    on *= np.exp(-np.clip(times - end + 300, 0, None) / 240)
    series = {}
    for card in range(cards):
        device = f"gpu{card}"
        for name, idle, added, noise, step in PER_CARD:
            values = idle + added * on * (1 + 0.02 * rng.standard_normal()) + noise * rng.standard_normal(count)
            if "throttle" in name:
                values = np.cumsum(np.where((card == 3) & (times > start + 4000) & (times < start + 5000), 200.0, 0.0))
            values = np.round(values / step) * step
            values[rng.random(count) < 2e-5] = np.nan
            sensor = Sensor(
                id=f"{device}.{name}",
                unit=Unit(name.rpartition("_")[2]),
                device=device,
                identity=f"GPU-{card:04}",
                source="invented",
                limits={},
            )
            series[sensor.id] = Series(sensor=sensor, time_seconds=times, values=values, period_seconds=period)
    phases = tuple(
        Phase(name=name, start_seconds=low, end_seconds=high)
        for name, low, high in (
            ("baseline", start, start + 300),
            ("ramp", start + 300, start + 420),
            ("steady", start + 420, end - 300),
            ("cooldown", end - 300, end),
        )
    )
    starts = np.arange(start + 300, end - 300, 0.25)
    latency = rng.lognormal(0.5, 0.3, starts.size)
    bad = rng.random(starts.size) < 0.002
    requests = Requests(
        start_seconds=starts,
        ttft_seconds=latency / 5,
        latency_seconds=latency,
        status=np.where(bad, 503, 200),
        error=Labels.of("503 Service Unavailable" if one else "" for one in bad),
        prompt_tokens=np.full(starts.size, 50.0),
        completion_tokens=np.full(starts.size, 128.0),
        phase=Labels.of(["steady"] * starts.size),
        domain=Labels.of(["rack-1"] * starts.size),
        limit=Labels.of([""] * starts.size),
    )
    recording = Recording(
        path=Path("invented"), state="finished", series=series, phases=phases, notes=(), requests=requests
    )
    return recording, {"simulated": True, "time_scale": 1.0, "findings": [], "limits": [], "figures": {}}


if __name__ == "__main__":
    main()
