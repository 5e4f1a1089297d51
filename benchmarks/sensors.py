"""What one sample costs a vendor's tool's source, beside the bare tool: a fake that prints a recorded answer."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pytest_thermal.sensors import Source, SourceSpec, open_source
from pytest_thermal.sensors.tools import known

OUTPUTS = Path(__file__).parents[1] / "fixtures" / "devices"
PRINTED = {
    "nvidia-smi": "nvidia-smi_query.txt",
    "npu-smi": "npu-smi_info_910c.txt",
    "cnmon": "cnmon_info.txt",
    "amd-smi": "amd-smi_metric.txt",
    "rocm-smi": "rocm-smi_json.txt",
    "hy-smi": "hy-smi_json.txt",
    "mthreads-gmi": "mthreads-gmi_json.txt",
    "ixsmi": "ixsmi_table.txt",
    "mx-smi": "mx-smi_table.txt",
    "efsmi": "efsmi_q.txt",
    "xpu-smi": "xpu-smi_table.txt",
    "xpu-smi-intel": "xpu-smi-intel_dump.txt",
    "hl-smi": "hl-smi_query.txt",
    "brsmi": "brsmi_query.txt",
}


def cost(call: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds, with those of children, and wall seconds of one call."""
    before, begin = os.times(), time.perf_counter()
    call()
    wall, after = time.perf_counter() - begin, os.times()
    return sum(after[:4]) - sum(before[:4]), wall


def measured(source: Source, program: str, pairs: int) -> str:
    """Sensors, and medians of CPU and wall of a sample and of the bare tool, in turns."""
    sensors = source.sensors()
    # As sparing as it gets: the tool started by itself, its output kept, nothing read.
    rows = [
        (*cost(source.read), *cost(lambda: subprocess.run([program], capture_output=True, check=True)))
        for _ in range(pairs)
    ]
    cpu, wall, bare_cpu, bare_wall = (statistics.mean(column) * 1000 for column in zip(*rows, strict=True))
    ratio = statistics.median(row[1] / row[3] for row in rows)
    return f"{len(sensors)} | {cpu:.1f} | {bare_cpu:.1f} | {wall:.1f} | {bare_wall:.1f} | {ratio:.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40, help="measured pairs of each row (default 40)")
    pairs = parser.parse_args().pairs
    print(f"Python {platform.python_version()}, {platform.machine()}, {pairs} pairs\n")
    print("| source | sensors | CPU ms a sample | CPU ms bare | wall ms a sample | wall ms bare | ratio of wall |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
        for tool, output in PRINTED.items():
            program = folder / next(one.program for one in known.TOOLS if one.name == tool)
            program.write_text(f"#!/bin/sh\ncat '{OUTPUTS / output}'\n", encoding="utf-8")
            program.chmod(0o755)
            spec = SourceSpec(name=tool, factory="pytest_thermal.sensors.tools.known:make", options={"tool": tool})
            source = open_source(spec)
            print(f"| {tool} | {measured(source, f'{program}', pairs)} |")
            source.close()


if __name__ == "__main__":
    main()
