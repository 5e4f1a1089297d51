"""Under pytest-xdist: one bench stays on one worker, in every mode, and other projects keep their scheduler."""

from __future__ import annotations

import pytest

from tests.plugin.plugin_runs import Run

pytest.importorskip("xdist")


@pytest.mark.parametrize("mode", ["load", "loadscope", "loadfile", "loadgroup", "worksteal"])
def test_the_suite_is_measured_once(gate: Run, mode: str) -> None:
    result = gate("--demo", "-n", "4" if mode == "load" else "2", "--dist", mode)
    assert result.ret == 0, result.stdout.str()
    assert sum(line.startswith("tokens: ") for line in result.outlines) == 1
    assert result.parseoutcomes()["passed"] >= 20


def test_a_fault_is_told_once_and_blocks(gate: Run) -> None:
    result = gate("--demo-fault", "key-wrong", "-n", "2")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["skipped"] > 15
    result.stdout.fnmatch_lines(["*FAILED*key*401*", "*blocked*"])


def test_first_failure_ends_the_run_with_x(gate: Run) -> None:
    result = gate("--demo-fault", "refused", "-n", "2", "-x")
    assert result.ret != 0
    assert result.parseoutcomes()["failed"] == 1


def test_each_worker_is_a_bench_of_its_own_under_each(gate: Run) -> None:
    result = gate("--demo", "-n", "2", "--dist", "each")
    assert result.ret == 0
    assert sum(line.startswith("tokens: ") for line in result.outlines) == 2
    result.stdout.fnmatch_lines(["*= access (gw?) =*"])


def test_other_tests_are_spread_beside_the_bench(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_bench="import os, pytest\n"
        "@pytest.mark.parametrize('check', ['http', 'key', 'models', 'chat'])\n"
        "def test_bench(access, check):\n"
        "    access.require(check)\n"
        "    print('bench on', os.environ['PYTEST_XDIST_WORKER'])\n",
        test_other="import os, time, pytest\n"
        "@pytest.mark.parametrize('number', range(12))\n"
        "def test_other(number):\n"
        "    time.sleep(0.1)\n"
        "    print('other on', os.environ['PYTEST_XDIST_WORKER'])\n",
    )
    result = run("--demo", "-n", "2", "-rA")
    result.assert_outcomes(passed=16)
    bench = {line.removeprefix("bench on ") for line in result.outlines if line.startswith("bench on ")}
    others = {line.removeprefix("other on ") for line in result.outlines if line.startswith("other on ")}
    assert len(bench) == 1
    # How many the bench's own worker takes besides depends on how long the bench keeps it.
    assert others - bench


def test_a_project_without_a_bench_keeps_its_scheduler(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\n"
        "class Look:\n"
        "    @pytest.hookimpl(trylast=True)\n"
        "    def pytest_sessionfinish(self, session):\n"
        "        sched = session.config.pluginmanager.get_plugin('dsession').sched\n"
        "        inner = getattr(sched, '_inner', sched)\n"
        "        print('scheduled by', type(inner).__name__)\n"
        "def pytest_configure(config):\n"
        "    if not hasattr(config, 'workerinput'):\n"
        "        config.pluginmanager.register(Look())\n"
    )
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n):\n    pass\n")
    result = run("-n", "2", "-s")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*scheduled by LoadScheduling*"])


def test_a_bench_that_cannot_be_read_fails_without_hanging(gate: Run, pytester: pytest.Pytester) -> None:
    result = gate("-n", "2", "-k", "test_key", env={"THERMAL_BENCH": str(pytester.path / "nowhere")})
    text = result.stdout.str() + result.stderr.str()
    assert result.ret not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "nowhere" in text


def test_a_crashed_worker_does_not_hide_the_rest(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import os\n"
        "def test_a(access):\n    access.require('http')\n"
        "def test_b(access):\n    os._exit(3)\n"
        "def test_c(access):\n    access.require('key')\n"
    )
    result = run("--demo", "-n", "2")
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
