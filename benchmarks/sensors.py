"""What one sample costs a source, beside the bare tool or request: fakes that give a recorded answer.

With ``--samples``: what becomes of each recorded output instead.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_thermal.bench import Monitor
from pytest_thermal.sensors import Source, SourceSpec, TellsAbsent, open_source
from pytest_thermal.sensors.prometheus.source import PrometheusSource
from pytest_thermal.sensors.specs import bench_specs
from pytest_thermal.sensors.tools import known

REPOSITORY = Path(__file__).parents[1]
OUTPUTS = REPOSITORY / "fixtures" / "devices"
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
    "ipmi": "ipmitool_elist.txt",
}
_CARDS, _METRICS = 8, ("GPU_TEMP", "MEMORY_TEMP", "POWER_USAGE", "GPU_UTIL", "SM_CLOCK")
_SERVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tests.sensors.fake_prometheus import FakePrometheus, serve
fake = FakePrometheus()
fake.write(sys.argv[2], job="dcgm", instance="node7:9400")
fake.write('up 1', job="dcgm", instance="node7:9400")
serve(fake)
print(fake.url, flush=True)
sys.stdin.read()
"""


def cost(call: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds, with those of children, and wall seconds of one call."""
    before, begin = os.times(), time.perf_counter()
    call()
    wall, after = time.perf_counter() - begin, os.times()
    return sum(after[:4]) - sum(before[:4]), wall


def measured(source: Source, bare: Callable[[], object], pairs: int) -> str:
    """Sensors, and means of CPU and wall of a sample and of the bare call, in turns."""
    sensors = source.sensors()
    rows = [(*cost(source.read), *cost(bare)) for _ in range(pairs)]
    cpu, wall, bare_cpu, bare_wall = (statistics.mean(column) * 1000 for column in zip(*rows, strict=True))
    ratio = statistics.median(row[1] / row[3] for row in rows)
    return f"{len(sensors)} | {cpu:.1f} | {bare_cpu:.1f} | {wall:.1f} | {bare_wall:.1f} | {ratio:.2f}"


def of_tool(folder: Path, tool: str, output: str, pairs: int) -> str:
    """A tool's row. As sparing as it gets: the tool started by itself, its output kept, nothing read."""
    program = folder / next(one.program for one in known.TOOLS if one.name == tool)
    program.write_text(f"#!/bin/sh\ncat '{OUTPUTS / output}'\n", encoding="utf-8")
    program.chmod(0o755)
    factory = "pytest_thermal.sensors.tools.known:" + ("make_bmc" if tool == "ipmi" else "make")
    source = open_source(SourceSpec(name=tool, factory=factory, options={"tool": tool}))
    row = measured(source, lambda: subprocess.run([f"{program}"], capture_output=True, check=True), pairs)
    source.close()
    return row


@contextlib.contextmanager
def prometheus() -> Iterator[str]:
    """A server in a process of its own that knows eight cards; its address."""
    page = "\n".join(
        f'DCGM_FI_DEV_{metric}{{gpu="{card}",UUID="GPU-{card}",device="nvidia{card}"}} {50 + card}'
        for metric in _METRICS
        for card in range(_CARDS)
    )
    command = [sys.executable, "-c", _SERVER, str(REPOSITORY), page]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None or process.stdin is None:
            raise RuntimeError("the server has no pipes")
        yield process.stdout.readline().strip()
        process.stdin.close()


def of_prometheus(url: str, pairs: int) -> str:
    """Prometheus' row. As sparing as it gets: the same query on a kept connection, its answer kept, nothing read."""
    (spec,) = [one for one in bench_specs(Monitor(prometheus_url=url)) if one.name == "prometheus"]
    made = open_source(spec)
    made.sensors()
    asked: list[str] = []
    spy = PrometheusSource(server=_Spy(url, asked), labels={}, named={})  # type: ignore[arg-type]
    spy.sensors()
    asked.clear()
    spy.read()
    body = urllib.parse.urlencode({"query": asked[0]})
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)

    def bare() -> None:
        connection.request("POST", "/api/v1/query", body, {"Content-Type": "application/x-www-form-urlencoded"})
        connection.getresponse().read()

    row = measured(made, bare, pairs)
    made.close()
    spy.close()
    return row


class _Spy:
    """A server that tells what it is asked."""

    def __init__(self, url: str, asked: list[str]) -> None:
        from pytest_thermal.sensors.prometheus.server import Server

        self._server = Server(url, user=None, environ={})
        self._asked = asked
        self.url = url
        self.unfit, self.close = self._server.unfit, self._server.close

    def ask(self, query: str) -> object:
        self._asked.append(query)
        return self._server.ask(query)


def samples() -> None:
    """What becomes of each recorded output, by the tool that prints it."""
    from tests.sensors.canned import EXPECTED, canned_file, user_command

    print("| tool | output | result |\n|---|---|---|")
    for name in sorted(EXPECTED):
        source = user_command(canned_file(name), EXPECTED[name]["command"])
        readings = source.read() if source.probe().ok else []
        got = sum(reading.value is not None for reading in readings)
        without = len(readings) - got + (len(source.absent()) if isinstance(source, TellsAbsent) else 0)
        told = (
            f"{got} values, {without} missing with a reason" if readings else f"refused: {source.probe().reason[:80]}"
        )
        tool = Path(shlex.split(EXPECTED[name]["command"])[0]).name if "command" in EXPECTED[name] else ""
        print(f"| {tool} | {name.rpartition('.')[0]} | {told.replace('|', chr(0x2502))} |")
        source.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40, help="measured pairs of each row (default 40)")
    parser.add_argument("--samples", action="store_true", help="what becomes of each recorded output")
    settings = parser.parse_args()
    sys.path.insert(0, str(REPOSITORY))
    if settings.samples:
        samples()
        return
    pairs = settings.pairs
    print(f"Python {platform.python_version()}, {platform.machine()}, {pairs} pairs\n")
    print("| source | sensors | CPU ms a sample | CPU ms bare | wall ms a sample | wall ms bare | ratio of wall |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
        for tool, output in PRINTED.items():
            print(f"| {tool} | {of_tool(folder, tool, output, pairs)} |", flush=True)
    with prometheus() as url:
        print(f"| prometheus | {of_prometheus(url, pairs)} |")


if __name__ == "__main__":
    main()
