"""Asking for a thermal run, and what is refused before anything is loaded."""

from __future__ import annotations

import re

import pytest

from tests.plugin.plugin_runs import REPO, Run
from tests.plugin.thermal_runs import THERMAL


def test_a_plain_run_of_all_suites_loads_nothing(run: Run) -> None:
    result = run(REPO / "suites", "-k", "rise or phase", "-rs")
    result.assert_outcomes(skipped=2)
    assert "not asked for: a thermal run loads the machine; pytest -m thermal" in result.stdout.str()


def test_a_test_of_ones_own_that_nobody_named_loads_nothing(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_mine(thermal_run):\n    thermal_run.ensure('ramp')\n")
    run().assert_outcomes(skipped=1)
    run("-m", "not thermal").assert_outcomes(deselected=1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("suites", "-m", "thermal"),
        ("suites/thermal",),
        ("suites/thermal/test_03_heat.py",),
        ("suites", "--duration", "20"),
        ("suites", "--demo"),
    ],
)
def test_it_is_run_where_it_is_asked_for(run: Run, arguments: tuple[str, ...]) -> None:
    first, *more = arguments
    result = run(REPO / first, *more, "--collect-only", "-q", "-k", "rise")
    assert "test_rise[gpu0.temperature_celsius]" in result.stdout.str()


@pytest.mark.parametrize(
    "arguments, why",
    [
        (("--duration", "soon"), "'soon' is no duration: seconds as a number, or 90s, 60m, 1h"),
        (("--duration", "0.1"), "holds fewer than 3 readings"),
        (("--baseline", "0.2s"), "try: command line --baseline of at least"),
        (("--request-rate", "0"), "'0' is no rate of requests per second above 0"),
        (("--load-profile", "novel"), "invalid choice: 'novel'"),
        (("--settling", "mine"), "no settling rate 'mine'; there are: default"),
        (("--prometheus-port", "bench:9105"), "'bench' is no IP address of this machine"),
        (("--prometheus-port", "203.0.113.7:9105"), "try: ip address lists those that it has"),
        (("--against", "nowhere"), "--against nowhere: there is no such run in "),
        (("--sysfs", "/nowhere", "--bench", "workstation"), "--sysfs /nowhere: there is no such folder"),
        (("--accelerator-cmd", "'open"), "--accelerator-cmd 'open: No closing quotation"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(run: Run, arguments: tuple[str, ...], why: str) -> None:
    bench = () if "--bench" in arguments else ("--demo",)
    environ = {"TAOTOKEN_API_KEY": "sk-nothing-0123456789"}
    result = run(THERMAL, *bench, "-k", "phase or rise", "-m", "thermal", *arguments, env=environ)
    assert why in result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_an_unknown_fault_lists_those_of_the_machine_too(run: Run) -> None:
    result = run(THERMAL, "--demo-fault", "hot")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "pump_stop" in result.stderr.str()
    assert "key-wrong" in result.stderr.str()


def test_the_demo_machines_sensors_are_listed_as_simulated(run: Run) -> None:
    result = run("--sensors", "--demo")
    result.stdout.fnmatch_lines(
        ["thermal: DEMO bench, all simulated*", "demo: simulated*", "*gpu1.temperature_celsius*°C"]
    )


def test_the_search_for_a_concurrency_ends_with_a_number(run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    locks = tmp_path_factory.mktemp("locks")
    result = run("--find-concurrency", "--demo", env={"PYTEST_THERMAL_LOCK_DIR": str(locks)})
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "thermal: DEMO bench, all simulated*",
            "*requests*utilisation*hottest*latency p50*",
            "*8 *%*°C*s*",
            "concurrent_requests = *: *",
        ]
    )
    # Which it is depends on how busy this machine is: a step in which it stood still is no steady one.
    last = next(line for line in reversed(result.outlines) if line.startswith("concurrent_requests"))
    reasons = r"utilisation is \d+ % and the temperature is steady|latency is [\d.]+ times that at 8, for .*"
    assert re.fullmatch(rf"concurrent_requests = \d+: ({reasons})", last)


def test_a_run_that_cannot_begin_says_why_and_shows_nothing_of_our_inside(run: Run, pytester: pytest.Pytester) -> None:
    result = run(THERMAL, "--demo", env={"PYTEST_THERMAL_LOCK_DIR": str(pytester.path / "nowhere")})
    said = result.stdout.str()
    assert "nowhere: there is no such folder for the lock" in said
    assert "try: make it, for all users of this machine, or unset $PYTEST_THERMAL_LOCK_DIR" in said
    assert result.parseoutcomes()["errors"] == 1
    assert "os.open(" not in said
    assert "The above exception" not in said
