"""`--gate` in real runs: the file, the exit code, the last words."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest

from pytest_thermal.demo import DemoGateway
from pytest_thermal.plugin.evidence.gate_file import forget_earlier_answer
from pytest_thermal.plugin.evidence.gate_run import GateRun
from pytest_thermal.plugin.evidence.observing import Observer
from pytest_thermal.recording import seal
from pytest_thermal.reporting.gate_document import schema
from pytest_thermal.reporting.observed import How, Observed
from tests.findings.archives import moved, write_run
from tests.findings.recordings import PLAN, healthy
from tests.plugin.plugin_runs import CANARY, REPO, Run, everything_below, write_bench
from tests.reporting.observations import PASSED, own

STALE = '{"decision": "go"}'


def answer(folder: Path) -> dict[str, Any]:
    """The gate's answer, as its schema describes it."""
    told: dict[str, Any] = json.loads((folder / "reports" / "gate.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker()).validate(told)
    return told


def assert_nothing_is_decided(folder: Path, because: str) -> None:
    told = answer(folder)
    assert (told["decision"], told["state"]) == ("not decided", "running")
    assert because in told["because"]


def kinds(told: dict[str, Any]) -> dict[str, int]:
    found = [item["kind"] for item in told["blocking"]]
    return {kind: found.count(kind) for kind in found}


@pytest.fixture
def stale(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What an earlier run left: go."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # the pytest that is tried is nobody's worker
    file = pytester.path / "reports" / "gate.json"
    file.parent.mkdir()
    file.write_text(STALE)
    return file


def test_a_demo_bench_that_passes_everything_is_not_decided(gate: Run, pytester: pytest.Pytester) -> None:
    result = gate("--demo", "--gate", "-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes().get("failed", 0) == 0
    told = answer(pytester.path)
    assert told["decision"] == "not decided"
    assert kinds(told)["simulated"] >= 15
    assert told["counts"]["critical_passed"] == 0
    assert [(bench["name"], bench["simulated"]) for bench in told["benches"]] == [("demo", True)]
    assert {found["simulated"] for found in told["findings"]} == {True}
    result.stdout.fnmatch_lines(
        [
            "*= gate =*",
            "NOT DECIDED: no thermal check was collected; *",
            "*because they are simulated",
            "  simulated: *",
        ]
    )
    assert sum(line.startswith("NOT DECIDED") for line in result.outlines) == 1


def test_a_failure_is_no_go_and_ends_what_an_earlier_run_said(
    gate: Run, pytester: pytest.Pytester, stale: Path
) -> None:
    result = gate("--demo-fault", "key-wrong", "--gate", "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = answer(pytester.path)
    assert told["decision"] == "no-go"
    first = told["blocking"][0]
    assert (first["kind"], first["layer"], first["test"].rsplit("::")[-1]) == ("failed", "key", "test_key[demo]")
    assert first["seen"].startswith("401")
    assert first["likely"].startswith("the key in $THERMAL_DEMO_KEY")
    assert first["try"]
    assert kinds(told)["not run"] >= 15
    result.stdout.fnmatch_lines(["NO-GO: 1 failed, *", "  failed: key?demo?: 401*", "    likely: *", "    try: *"])


def test_what_was_left_out_is_missing(gate: Run, pytester: pytest.Pytester) -> None:
    result = gate("--demo", "--gate", "-k", "test_key")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = answer(pytester.path)
    assert told["decision"] == "not decided"
    left_out = {item["check"] for item in told["blocking"] if item["kind"] == "deselected"}
    assert {"chat", "models_route_default", "http_health"} <= left_out
    assert "not asked" not in kinds(told)


def test_own_tests_end_in_every_way(run: Run, pytester: pytest.Pytester, stale: Path) -> None:
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.critical\ndef test_good(): pass\n"
        "@pytest.mark.critical\ndef test_bad(): assert 1 == 2, 'one is not two'\n"
        "@pytest.mark.critical\ndef test_told(): pytest.fail('too warm')\n"
        "@pytest.mark.critical\ndef test_error(): raise OSError('no such device')\n"
        "@pytest.mark.critical\ndef test_skipped(): pytest.skip('no time')\n"
        "@pytest.mark.critical\n@pytest.mark.xfail\ndef test_known(): assert False\n"
        "@pytest.mark.advisory\n@pytest.mark.xfail\ndef test_advice(): assert False\n"
        "@pytest.fixture\ndef broken():\n    yield\n    raise OSError('fell over')\n"
        "@pytest.mark.critical\ndef test_after(broken): pass\n"
        "def test_not_critical(): pytest.skip('whatever')\n"
    )
    run("--gate")
    told = answer(pytester.path)
    found = {
        item["test"].rpartition("::")[2]: (item["kind"], item["seen"]) for item in told["blocking"] if item["test"]
    }
    assert told["decision"] == "no-go"
    assert found == {
        "test_bad": ("failed", "AssertionError: one is not two"),
        "test_told": ("failed", "too warm"),
        "test_error": ("broken", "OSError: no such device"),
        "test_skipped": ("skipped", "no time"),
        "test_known": ("expected failure", "known to fail (xfail), so it proves nothing"),
        "test_after": ("broken", "OSError: fell over"),
    }
    assert {item["seen"] for item in told["blocking"] if item["kind"] == "run"} == {
        "no access check was collected",
        "no thermal check was collected",
    }


def test_ctrl_c_leaves_it_undecided(run: Run, pytester: pytest.Pytester, stale: Path) -> None:
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.critical\ndef test_good(): pass\n"
        "@pytest.mark.critical\ndef test_long(): raise KeyboardInterrupt\n"
    )
    result = run("--gate")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    told = answer(pytester.path)
    assert told["decision"] == "not decided"
    assert told["because"].startswith("interrupted: ")
    assert [item["test"].rpartition("::")[2] for item in told["blocking"] if item["kind"] == "not run"] == ["test_long"]


def test_a_worker_that_crashes_leaves_it_undecided(run: Run, pytester: pytest.Pytester, stale: Path) -> None:
    pytester.makepyfile(
        "import os, pytest\n"
        "@pytest.mark.critical\ndef test_good(): pass\n"
        "@pytest.mark.critical\ndef test_crash(): os._exit(3)\n"
    )
    result = run("--gate", "-n", "1", "--max-worker-restart", "0")
    assert result.ret != 0
    told = answer(pytester.path)
    assert told["decision"] == "not decided"
    told_of = [item["seen"] for item in told["blocking"]]
    assert any("crashed" in seen and "test_crash" in seen for seen in told_of)
    assert any(seen.startswith("xdist's worker gw0") for seen in told_of)


def test_a_conftest_or_a_file_that_cannot_be_read_leaves_no_go_behind(
    run: Run, pytester: pytest.Pytester, stale: Path
) -> None:
    pytester.makepyfile("import nowhere")
    assert run("--gate").ret == pytest.ExitCode.INTERRUPTED
    assert answer(pytester.path)["because"].startswith("1 could not be collected: ")
    stale.write_text(STALE)
    pytester.makeconftest("import nowhere")
    assert run("--gate").ret == pytest.ExitCode.USAGE_ERROR
    assert_nothing_is_decided(pytester.path, "refused")


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("--duration", "abc"), "refused"),  # refused by the parser, before any hook of a run
        (("--bench", "nowhere"), "nowhere"),
    ],
)
def test_a_run_that_is_refused_leaves_no_go_behind(
    run: Run, pytester: pytest.Pytester, stale: Path, arguments: tuple[str, ...], told: str
) -> None:
    assert run("--gate", *arguments).ret == pytest.ExitCode.USAGE_ERROR
    assert_nothing_is_decided(pytester.path, told)


@pytest.mark.parametrize(
    "arguments, environ, ini, forgotten",
    [
        (("--gate",), "", "", True),
        (("suites", "--thermal-gate", "--maxfail"), "", "", True),
        (("suites",), "-q --gate", "", True),
        (("suites",), "", "--gate -q", True),
        (("@more.txt",), "", "", True),
        (("suites", "--gates"), "", "", False),
        (("suites", "-k", "gate"), "", "", False),
        (("--gate", "--help"), "", "", False),
        (("suites",), "", "", False),
    ],
)
def test_whoever_asks_for_the_gate_forgets_the_last_answer_before_any_option_is_read(
    pytester: pytest.Pytester,
    stale: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environ: str,
    ini: str,
    forgotten: bool,
) -> None:
    (pytester.path / "more.txt").write_text("-q\n--gate\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", environ)
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(args=arguments, dir=pytester.path),
        getini=lambda _: ini.split(),
        stash=pytest.Stash(),
    )
    forget_earlier_answer(cast("pytest.Config", config))
    assert (stale.read_text() == STALE) is not forgotten
    if forgotten:
        assert_nothing_is_decided(pytester.path, "refused")


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_run(pytester: pytest.Pytester) -> None:
    (pytester.path / "reports").write_text("a file, and no folder")
    with pytest.raises(pytest.UsageError) as told:
        GateRun(pytester.parseconfig("--gate"))
    lines = str(told.value).splitlines()
    assert lines[0].startswith(f"--gate: {pytester.path / 'reports'}: cannot be written: ")
    assert [line.partition(":")[0] for line in lines[1:]] == ["likely", "try"]


def test_a_file_that_can_no_longer_be_written_is_told_and_fails(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pathlib, shutil\n"
        "def test_it():\n"
        "    shutil.rmtree('reports')\n"
        "    pathlib.Path('reports').write_text('in the way')\n"
    )
    result = run("--gate")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert [line for line in result.outlines if line.startswith(("GO", "NO-GO", "NOT DECIDED"))] == ["NOT DECIDED:"]
    assert "cannot be written" in result.stdout.str()


@pytest.mark.parametrize(
    "arguments, lines, told",
    [
        ((), "tls", "try: check = why it may be skipped"),
        ((), "tls =", "try: check = why it may be skipped"),
        ((), "= a reason", "try: check = why it may be skipped"),
        (("--sensors",), "", "--gate and --sensors contradict each other"),
        (("--find-concurrency",), "", "--gate and --find-concurrency contradict each other"),
    ],
)
def test_a_gate_that_could_not_be_decided_is_refused(
    pytester: pytest.Pytester, stale: Path, arguments: tuple[str, ...], lines: str, told: str
) -> None:
    pytester.makeini(f"[pytest]\nthermal_gate_accept =\n    {lines}\n")
    with pytest.raises(pytest.UsageError, match=told):
        GateRun(pytester.parseconfig("--gate", *arguments))
    assert_nothing_is_decided(pytester.path, told)


# -------------------------------------------------------------------------------------------------------------- tricks

TRICKS = """
import pytest
from _pytest.runner import runtestprotocol

NAMES = ("test_rewritten", "test_second_try", "test_left_out")

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if item.originalname == "test_rewritten":
        report.outcome, report.longrepr = "passed", None
    return report

def pytest_runtest_protocol(item, nextitem):
    if item.originalname != "test_second_try":
        return None
    runtestprotocol(item, nextitem=nextitem, log=False)
    item._initrequest()
    runtestprotocol(item, nextitem=nextitem)
    return True

def pytest_pyfunc_call(pyfuncitem):
    return True if pyfuncitem.originalname == "test_key" else None

def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.originalname not in ("test_models", "test_left_out")]
    for item in items:
        if item.originalname == "test_http":
            item.add_marker("advisory")

@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session):
    yield
    session.exitstatus = 0
"""


def test_no_trick_of_another_plugin_makes_a_pass_of_what_was_not_measured(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        tricks=TRICKS,
        test_mine="import pytest\npytestmark = pytest.mark.critical\ntries = []\n"
        "def test_rewritten(): assert 88 < 83, 'too warm'\n"
        "def test_second_try():\n    tries.append(1)\n    assert len(tries) > 1, 'fell out once'\n"
        "def test_left_out(): pass\n",
    )
    suite = REPO / "suites" / "supernode" / "test_02_gateway.py"
    result = run(suite, "test_mine.py", "-p", "tricks", "--demo", "--gate", env={"PYTHONPATH": str(pytester.path)})
    assert result.parseoutcomes().get("failed", 0) == 0
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = answer(pytester.path)
    assert told["decision"] == "no-go"
    found = {(one["check"] or one["test"].rpartition("::")[2]): (one["kind"], one["seen"]) for one in told["blocking"]}
    assert found["test_rewritten"] == ("failed", "AssertionError: too warm")
    assert found["test_second_try"] == ("failed", "AssertionError: fell out once")
    assert found["test_left_out"][0] == found["models"][0] == "deselected"
    assert found["key"] == ("not asked", "its test passed, and nothing was measured in it")
    assert found["http"] == ("not asked", "no critical test of this run asked for it")


def decided(config: pytest.Config, *observed: Observed) -> GateRun:
    """A gate that ended with these tests, of both kinds."""
    gate, observer = GateRun(config), Observer(config)
    observer.kinds = {"access", "thermal"}
    observer._ended = {(one.test, ""): one for one in observed}
    gate.finish(cast("pytest.Session", SimpleNamespace(exitstatus=pytest.ExitCode.OK)), observer, pytest.ExitCode.OK)
    return gate


@pytest.mark.parametrize("code, told", [(3, "exit code 3"), (1, "exit code 1"), (None, "by an exception")])
def test_what_ends_pytest_otherwise_after_the_decision_takes_it_back(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str], code: int | None, told: str
) -> None:
    gate = decided(pytester.parseconfig("--gate"), PASSED)
    assert answer(pytester.path)["decision"] == "go"
    assert gate.settle(code) == code
    (item,) = answer(pytester.path)["blocking"]
    assert told in item["seen"]
    assert f"NOT DECIDED: pytest ends {'with ' if code else ''}{told}" in capsys.readouterr().err


def test_exit_code_0_is_go_and_nothing_else_is(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig("--gate")
    assert GateRun(config).settle(0) == pytest.ExitCode.TESTS_FAILED  # it ended before any test: --fixtures, --markers
    assert decided(config, PASSED, own(How.SKIPPED)).settle(0) == pytest.ExitCode.TESTS_FAILED
    assert decided(config, PASSED).settle(0) == 0
    assert answer(pytester.path)["decision"] == "go"


@pytest.mark.parametrize("arguments, told", [(("--lf",), "(--lf)"), (("--collect-only",), "only listed")])
def test_options_that_leave_out_more_than_they_tell_are_told(
    pytester: pytest.Pytester, arguments: tuple[str, ...], told: str
) -> None:
    gate = decided(pytester.parseconfig("--gate", *arguments), PASSED)
    assert not gate.is_go
    assert told in answer(pytester.path)["because"]


# ----------------------------------------------------------------------------------------------------------------- go


@pytest.fixture
def lab(pytester: pytest.Pytester) -> Iterator[DemoGateway]:
    """A bench that is no demo bench to the plugin: a gateway of its own, and two runs of a machine that is well."""
    gateway = DemoGateway(token_seconds=0.002, key=CANARY)
    gateway.start()
    folder = write_bench(
        pytester.path / "lab-7",
        api_endpoint=gateway.url,
        api_key="${LAB_KEY}",
        model_route={"default": "demo-chat", "fallback": "demo-chat-mini"},
        health_check={"enabled": True, "interval_sec": 30, "endpoint": "/v1/models"},
    )
    (folder / "config.toml").write_text('[cluster]\nname = "lab-7"\n')
    # Ten minutes ago, when the machine's clock is asked: a run of another day is no evidence of today.
    ended = time.time() - 600
    later = ended - PLAN.end
    run = moved(healthy(), later)
    for days_ago in (7.0, 0.0):
        end = ended - days_ago * 86_400
        made = write_run(pytester.path / "runs", run, days_ago=days_ago - later / 86_400, end_seconds=end)
        asked = run.requests
        assert asked is not None
        rows = ["start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase"]
        rows += [f"{start:.3f},0.5,2.0,200,,50,128,steady" for start in asked.start_seconds.tolist()]
        (made / "requests.csv").write_text("\n".join(rows) + "\n")
        seal(made)
    yield gateway
    gateway.stop()


def lab_run(folder: Path) -> tuple[str, ...]:
    """The newest run on the bench, judged again."""
    newest = max((folder / "runs").iterdir(), key=lambda run: run.name)
    return ("--bench", "lab-7", "--runs", "runs", "--replay", str(newest))


ACCEPTED = """
[pytest]
thermal_gate_accept =
    name = an address in the lab's own network, J. D.
    tls = the same
    quota = the lab's own gateway has no quota
    interconnect* = one machine
"""


def test_go_is_said_of_a_bench_where_everything_was_measured(
    run: Run, pytester: pytest.Pytester, lab: DemoGateway
) -> None:
    pytester.makeini(ACCEPTED)
    env = {"LAB_KEY": CANARY}
    replay = lab_run(pytester.path)
    result = run(REPO / "suites", "--gate", *replay, "-c", "tox.ini", env=env)
    told = answer(pytester.path)
    assert told["decision"] == "go", told["blocking"]
    assert result.ret == pytest.ExitCode.OK
    assert {one["check"] for one in told["accepted"]} >= {"name", "tls", "quota", "interconnect_latency"}
    (recorded,) = told["thermal_runs"]
    assert (recorded["source"], recorded["bench"], recorded["simulated"]) == ("replayed", "lab-7", False)
    assert recorded["recorded"] < recorded["ended"] < told["started"]
    assert recorded["cards"] == 1
    rise = next(one for one in told["findings"] if one["check"] == "rise")
    assert (rise["unit"], rise["limit_origin"]) == ("celsius", "default")
    assert rise["value"] < rise["limit"]
    result.stdout.fnmatch_lines(["GO: all * critical checks were measured and passed; * more skipped, as accepted"])
    assert CANARY not in everything_below(pytester.path)

    # The same, and nobody asks after the rise of two sensors.
    one_sensor = REPO / "suites" / "thermal" / "test_03_heat.py"
    more = [REPO / "suites" / "supernode", *(REPO / "suites" / "thermal").glob("test_0[1245]*.py")]
    named = f"{one_sensor}::test_rise[gpu0.temperature_celsius]"
    result = run(
        *more, f"{one_sensor}::test_threshold", f"{one_sensor}::test_settled", named, "--gate", *replay, env=env
    )
    told = answer(pytester.path)
    assert (result.ret, told["decision"]) == (pytest.ExitCode.TESTS_FAILED, "not decided")
    missing = {(item["check"], item["subject"]) for item in told["blocking"] if item["kind"] == "not asked"}
    assert missing == {("rise", "cpu0.package.temperature_celsius")}
