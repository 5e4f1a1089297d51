"""What sampling costs, and how late it is while the machine burns.

A recorder samples a made-up /sys of 8 cards with 9 sensors each (plain files: a driver's own time comes on top).

cost      1 Hz on a machine that is left alone. CPU seconds and wake-ups of the recorder and of each of its lanes,
          from the scheduler's own account (/proc/PID/task/TID/schedstat, nanoseconds).
lateness  10 Hz beside four burners a core at the sampler's own niceness (the plugin's are niced) and the load generator
          at full rate against the reference server. Two recorders side by side, one of which does not ask for
          SCHED_FIFO, so that both have the same machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pytest_thermal.bench import Monitor, load_bench
from pytest_thermal.load import Loads, Work, cpu_work
from pytest_thermal.load.inference_work import inference_work
from pytest_thermal.recording import RunClock, RunningRecorder, SourceOrder, create_run, read_run, start_recorder
from pytest_thermal.sensors.specs import bench_specs

CARDS = 8
INPUTS = {
    "temp1": ("edge", 45_000), "temp2": ("junction", 52_000), "temp3": ("mem", 58_000), "temp4": ("vrm", 61_000),
    "temp5": ("board", 41_000), "fan1": ("fan", 1_800), "fan2": ("pump", 2_800),
    "power1": ("board", 310_000_000), "power2": ("memory", 42_000_000),
}  # fmt: skip
BURNERS_A_CORE = 4
SLOTS = 64
SETTLING_SECONDS = 3.0


def tree(root: Path) -> Path:
    """A /sys of nothing but these cards."""
    for card in range(CARDS):
        chip = root / "class" / "hwmon" / f"hwmon{card}"
        chip.mkdir(parents=True)
        (chip / "name").write_text("amdgpu\n", encoding="utf-8")
        for name, (label, value) in INPUTS.items():
            (chip / f"{name}_label").write_text(f"{label}\n", encoding="utf-8")
            (chip / f"{name}_input").write_text(f"{value + card}\n", encoding="utf-8")
    return root


# --- what processes used -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Used:
    """By one process so far."""

    name: str
    cpu_seconds: float
    wakes: int


def used(process: int) -> dict[int, Used]:
    """By it and all below it."""
    found: dict[int, Used] = {}
    waiting = [process]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            nanoseconds = wakes = 0
            for task in Path(f"/proc/{one}/task").iterdir():
                nanoseconds += int((task / "schedstat").read_text("ascii").split()[0])
                status = (task / "status").read_text("utf-8")
                wakes += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
                waiting += [int(word) for word in (task / "children").read_text("ascii").split()]
            command = Path(f"/proc/{one}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
            found[one] = Used(name=command[-1].rpartition(".")[2], cpu_seconds=nanoseconds / 1e9, wakes=wakes)
    return found


# --- the recorders -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def recorder(
    folder: Path, names: Sequence[str], *, period_seconds: float, raise_priority: bool = True
) -> Iterator[RunningRecorder]:
    """A recorder of those sources of the made-up machine, ready; with no names, of every source there is."""
    specs = [
        replace(spec, least_period_seconds=0.0)
        for spec in bench_specs(Monitor(), sysfs=str(folder / "sys"))
        if not names or spec.name in names
    ]
    with start_recorder(
        create_run(folder / "runs", facts={"bench": "benchmark"}),
        sources=[SourceOrder(source=spec) for spec in specs],
        period_seconds=period_seconds,
        raise_priority=raise_priority,
    ) as running:
        running.wait_ready()
        yield running


def cost(folder: Path, seconds: float) -> None:
    """At 1 Hz."""
    print(f"\n### 1 Hz, {CARDS} cards x {len(INPUTS)} sensors, {seconds:g} s\n")
    print("| sources | process | % of a core | wake-ups/s |\n|---|---|--:|--:|", flush=True)
    for what, names in (("the cards", ["hwmon"]), ("every source of this machine and the cards", [])):
        with recorder(folder, names, period_seconds=1.0) as running:
            time.sleep(SETTLING_SECONDS)
            begin, before = time.monotonic(), used(running.process_id)
            time.sleep(seconds)
            wall, after = time.monotonic() - begin, used(running.process_id)
        rows = [
            (after[one].name, after[one].cpu_seconds - before[one].cpu_seconds, after[one].wakes - before[one].wakes)
            for one in after
            if one in before
        ]
        rows.append(("**together**", sum(row[1] for row in rows), sum(row[2] for row in rows)))
        for name, cpu_seconds, wakes in rows:
            print(f"| {what} | {name} | {100 * cpu_seconds / wall:.2f} | {wakes / wall:.1f} |", flush=True)


# --- what it stands against ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The reference server, which answers at once."""
    command = [sys.executable, "-m", "pytest_thermal.load.reference_server", "--whole-seconds", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None or process.stdin is None:
            raise RuntimeError("no pipes")
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def works(folder: Path, url: str, seconds: float) -> tuple[Work, Work]:
    """Burners and requests."""
    cores = len(os.sched_getaffinity(0))
    burn = cpu_work(workers=BURNERS_A_CORE * cores, limit_seconds=seconds, environ={})
    bench = folder / "bench"
    bench.mkdir()
    (bench / "settings.json").write_text(
        f'{{"api": {{"base_url": "{url}", "api_key": "none"}}, "inference": {{"model": "m", "stream": false}}, '
        f'"stress_test": {{"concurrent_requests": {SLOTS}, "request_interval_ms": 0}}}}',
        encoding="utf-8",
    )
    described = load_bench(bench, environ={})
    ask = inference_work(
        domains=described.domains,
        inference=described.inference,
        stress=described.stress,
        timeouts=described.timeouts,
        run=None,
        clock=RunClock.start(),
        limit_seconds=seconds,
        environ={},
        calibration_seconds=0.0,
    )
    return replace(burn, nice=0), ask


def lateness(folder: Path, seconds: float) -> None:
    """At 10 Hz, under load."""
    cores = len(os.sched_getaffinity(0))
    before, begin = cpu_ticks(), 0.0
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(server())
        loads = stack.enter_context(Loads())
        first = stack.enter_context(recorder(folder, ["hwmon"], period_seconds=0.1))
        second = stack.enter_context(recorder(folder, ["hwmon"], period_seconds=0.1, raise_priority=False))
        burn, ask = loads.start(works(folder, url, seconds + 60.0))
        while not ask.status().requests:
            time.sleep(0.1)
        before, begin, asked = cpu_ticks(), time.monotonic(), ask.status().requests
        from_seconds = first.clock.now(), second.clock.now()
        time.sleep(seconds)
        until_seconds = first.clock.now(), second.clock.now()
        after, wall = cpu_ticks(), time.monotonic() - begin
        rate = (ask.status().requests - asked) / wall
        tool = burn.work.tool
    busy, stolen = ((after[i] - before[i]) / (after[1] - before[1]) for i in (0, 2))
    print(
        f"\n### 10 Hz, {CARDS} cards x {len(INPUTS)} sensors, {seconds:g} s, beside {BURNERS_A_CORE * cores} burners "
        f"({tool}) and {rate:,.0f} requests/s; {cores} cores {busy:.0%} busy, "
        f"{stolen:.1%} taken by the hypervisor\n"
    )
    print("| sampler | ticks due | lost | late p50 ms | p99 ms | max ms | over 10 ms | a reading p50 ms | max ms |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for running, start, end in zip((first, second), from_seconds, until_seconds, strict=True):
        timing = read_run(running.run).timing["hwmon"]
        due = timing.time_seconds - np.nan_to_num(timing.lateness_ms) / 1e3
        inside = (due >= start) & (due < end)
        taken = inside & np.isfinite(timing.lateness_ms)
        late, read = timing.lateness_ms[taken], timing.read_ms[taken]
        ticks = round((due[inside][-1] - due[inside][0]) / timing.period_seconds) + 1
        priority = timing.priority.partition(":")[0]
        print(
            f"| {priority} | {ticks} | {ticks - late.size} | {np.median(late):.2f} | {np.percentile(late, 99):.2f} "
            f"| {late.max():.2f} | {np.count_nonzero(late > 10)} | {np.median(read):.2f} | {read.max():.2f} |",
            flush=True,
        )
        if "SCHED_FIFO" not in priority:
            print(f"\n{timing.priority}", flush=True)


def cpu_ticks() -> tuple[int, int, int]:
    """Busy, all, and stolen ticks of the machine."""
    numbers = [int(word) for word in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
    return sum(numbers) - numbers[3] - numbers[4] - numbers[7], sum(numbers), numbers[7]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each measurement; 10 are a quick look")
    parser.add_argument("--only", choices=("cost", "lateness"), help="one of the two")
    options = parser.parse_args()
    parts = {"cost": cost, "lateness": lateness}
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.release()}; load average "
          f"{os.getloadavg()[0]:.1f} before")  # fmt: skip
    for name, part in parts.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="sampler-") as folder:
                tree(Path(folder, "sys"))
                part(Path(folder), options.seconds)
    print(f"\nload average {os.getloadavg()[0]:.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
