"""What the plugin costs before a test runs, and what the whole access suite takes, against plain pytest in pairs."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_thermal.demo import DemoGateway

SUITE = Path(__file__).parents[1] / "suites" / "supernode"
TESTS_IN_SUITE = 28
ANSWER_SECONDS = 0.02
"""Of the gateway, for each answer."""
KEY = "THERMAL_BENCHMARK_KEY"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds: CPU (user + system) of all processes up to now, and wall of this one."""

    cpu_seconds: float
    wall_seconds: float


def cost(command: Sequence[str], folder: Path) -> Cost:
    """Run ``command`` in ``folder`` and tell what it cost. Raises RuntimeError when it fails."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("THERMAL_") or name == KEY}
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, errors = process.communicate()
    wall = time.perf_counter() - begin
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {errors.decode(errors='replace')}")
    return Cost(cpu_seconds=_children_seconds(), wall_seconds=wall)


def _children_seconds() -> float:
    """CPU of all processes that have ended; ``os.times`` only counts hundredths of a second."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def paired(name: str, with_it: Sequence[str], without: Sequence[str], folder: Path, *, pairs: int) -> str:
    """A row: medians of both, and of their ratio pair by pair."""
    cost(with_it, folder), cost(without, folder)  # warm caches
    rows: list[tuple[float, float, float, float]] = []
    spent = _children_seconds()
    for _ in range(pairs):
        figures = []
        for command in (with_it, without):
            found = cost(command, folder)
            figures += [found.cpu_seconds - spent, found.wall_seconds]
            spent = found.cpu_seconds
        rows.append((figures[0], figures[1], figures[2], figures[3]))
    cpu, wall, plain_cpu, plain_wall = (statistics.median(column) for column in zip(*rows, strict=True))
    ratio = statistics.median(row[0] / row[2] for row in rows)
    extra = statistics.median((row[0] - row[2]) * 1000 for row in rows)
    longer = statistics.median((row[1] - row[3]) * 1000 for row in rows)
    return (
        f"| {name} | {cpu * 1000:.0f} | {plain_cpu * 1000:.0f} | {extra:+.0f} | {ratio:.2f} |"
        f" {wall * 1000:.0f} / {plain_wall * 1000:.0f} | {longer:+.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15, help="measured pairs of each row (default 15)")
    pairs = parser.parse_args().pairs
    pytest_alone = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    for other in ("anyio", "respx", "allure_pytest", "xdist", "timeout", "hypothesispytest"):
        pytest_alone += ["-p", f"no:{other}"]
    print(f"pytest {pytest.__version__}, Python {platform.python_version()}, {platform.machine()}, {pairs} pairs\n")
    print("| what | CPU ms with | CPU ms without | extra ms | ratio | wall ms with / without | longer ms |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "test_one.py").write_text("def test_it():\n    pass\n", encoding="utf-8")
        plain = folder / "plain"
        plain.mkdir()
        (plain / "test_plain.py").write_text(
            "".join(f"def test_{number}():\n    '''One.'''\n\n\n" for number in range(TESTS_IN_SUITE)), encoding="utf-8"
        )
        row = paired(
            "one test, plugin not used",
            [*pytest_alone, "test_one.py"],
            [*pytest_alone, "-p", "no:thermal", "test_one.py"],
            folder,
            pairs=pairs,
        )
        print(row)
        row = paired(
            f"--collect-only of suites/supernode against {TESTS_IN_SUITE} plain tests",
            [*pytest_alone, "--collect-only", str(SUITE)],
            [*pytest_alone, "-p", "no:thermal", "--collect-only", str(plain)],
            folder,
            pairs=pairs,
        )
        print(row)
        # In this process, which only waits meanwhile: the suite's own processes are what is measured.
        with DemoGateway(service_seconds=ANSWER_SECONDS, token_seconds=0.0) as gateway:
            bench = folder / "bench"
            bench.mkdir()
            settings = {
                "api_endpoint": gateway.url,
                "api_key": f"${{{KEY}}}",
                "model_route": {"default": "demo-chat", "fallback": "demo-chat-mini"},
            }
            (bench / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
            os.environ[KEY] = gateway.key
            row = paired(
                f"suites/supernode, answers in {ANSWER_SECONDS * 1000:.0f} ms, against {TESTS_IN_SUITE} plain tests",
                [*pytest_alone, str(SUITE), "--bench", str(bench)],
                [*pytest_alone, "-p", "no:thermal", str(plain)],
                folder,
                pairs=pairs,
            )
            print(row)
        row = paired(
            f"suites/supernode --demo against {TESTS_IN_SUITE} plain tests",
            [*pytest_alone, str(SUITE), "--demo"],
            [*pytest_alone, "-p", "no:thermal", str(plain)],
            folder,
            pairs=pairs,
        )
        print(row)


if __name__ == "__main__":
    main()
