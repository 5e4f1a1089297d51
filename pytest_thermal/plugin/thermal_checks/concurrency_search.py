"""`pytest --find-concurrency`: how many concurrent requests load this bench in full, told without running a test."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import active_bench
from pytest_thermal.plugin.columns import padded
from pytest_thermal.plugin.evidence.node import node_environ
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.sources import bench_sources
from pytest_thermal.plugin.thermal_checks.termination import end_on_signals

if TYPE_CHECKING:
    from pytest_thermal.experiment.concurrency_steps import Step

COLUMNS: Mapping[str, int] = {
    say("requests"): 9,
    say("utilisation"): 13,
    say("hottest"): 10,
    say("change"): 9,
    say("latency p50"): 13,
    say("per second"): 12,
    say("failed"): 8,
}
"""Title and width, in columns."""


def search(config: pytest.Config) -> int:
    """Search, and print each step as it ends; the exit code: 0 where the bench was loaded in full, else 1.

    Raises:
        pytest.UsageError: there is no bench.
    """
    from pytest_thermal.experiment import ExperimentBrokenError, lock_folder
    from pytest_thermal.experiment.find_concurrency import find_concurrency
    from pytest_thermal.experiment.plan import plan_for
    from pytest_thermal.load import LoadError
    from pytest_thermal.recording import RecordingError

    active = active_bench(config)
    told = catalogue(config)
    active.start()
    _say([*map(told, active.header()), "", head(told)])
    plan = plan_for(active.bench, {})
    restore = end_on_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="pytest-thermal-") as folder:
            found = find_concurrency(
                bench=active.bench,
                sources=bench_sources(config),
                folder=Path(folder),
                environ=active.environ,
                load_environ=active.load_environ,
                locks=lock_folder(node_environ(config)),
                period_seconds=min(plan.period_seconds, 1.0),
                time_scale=plan.time_scale,
                profile=options.value(config, "load-profile") or "chat",
                tell=lambda step: _say([row(step)]),
            )
    except (ExperimentBrokenError, RecordingError, LoadError) as error:
        _say(["", active.redactor.text(told(active.redactor.text(error.message)))])
        return int(pytest.ExitCode.TESTS_FAILED)
    finally:
        restore()
    decision = found.decision
    _say(
        [
            "",
            told(
                say(
                    "concurrent_requests = {concurrency}: {because}",
                    concurrency=decision.concurrency,
                    because=decision.because,
                )
            ),
        ]
    )
    if not decision.full:
        _say([told(say("the bench was not loaded in full by inference alone"))])
    return int(pytest.ExitCode.OK if decision.full else pytest.ExitCode.TESTS_FAILED)


def head(told: Callable[[str], str]) -> str:
    """The table's first line."""
    return "".join(padded(told(title), width, right=True) for title, width in COLUMNS.items())


def row(step: Step) -> str:
    """One step as a line of the table."""
    return (
        f"{step.concurrency:>9}"
        f"{_shown(step.utilization_percent, '.0f', ' %'):>13}"
        f"{_shown(step.hottest_celsius, '.1f', ' °C'):>10}"
        f"{_shown(step.drift_kelvin, '+.1f', ' K'):>9}"
        f"{_shown(step.latency_p50_seconds, '.2f', ' s'):>13}"
        f"{step.requests_per_second:>12.1f}"
        f"{step.failed_share:>8.0%}"
    )


def _shown(value: float | None, form: str, unit: str) -> str:
    return "–" if value is None else f"{value:{form}}{unit}"


def _say(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
