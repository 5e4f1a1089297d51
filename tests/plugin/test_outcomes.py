"""What a user sees of the access suite: outcomes, messages, exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.plugin.plugin_runs import SUITE, Run, cases

INNER = ("stream", "concurrency", "quota", "scheduler", "interconnect")


def test_healthy_bench_is_green_and_marked_as_demo(gate: Run, pytester: pytest.Pytester) -> None:
    result = gate("--demo", "--junitxml", "j.xml")
    assert result.ret == 0
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] >= 20
    assert "failed" not in outcomes
    result.stdout.fnmatch_lines(["thermal: DEMO bench, all simulated (--demo)*", "*= access =*", "*DEMO bench*"])
    result.stdout.fnmatch_lines(["tokens: * output and * prompt tokens in * requests*"])
    junit = (pytester.path / "j.xml").read_text()
    assert junit.count('name="thermal_simulated" value="True"') >= 20
    spent = [int(number) for number in re.findall(r'name="thermal_output_tokens" value="(\d+)"', junit)]
    assert f"tokens: {sum(spent)} output" in result.stdout.str()
    assert sum(spent) > 0


def test_no_bench_at_all_is_the_demo_bench_and_says_so(gate: Run) -> None:
    result = gate("-k", "connection")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["thermal: DEMO bench, all simulated (no bench configured*"])


@pytest.mark.parametrize(
    "fault,test,layer,outer",
    [
        ("refused", "test_connection", "connection", "connection"),
        ("bad-gateway", "test_http", "http", "http"),
        ("key-wrong", "test_key", "key", "key"),
        ("key-missing", "test_key", "key", "key"),
        ("tls-expired", "test_tls", "tls", "tls"),
        ("path-too-deep", "test_models", "models", "models"),
        ("route-missing", "test_models_route", "models", "models"),
        ("engine-dead", "test_chat", "chat", "chat"),
        ("usage-sum", "test_chat_usage", "chat", "chat"),
        ("stream-truncated", "test_stream", "stream", "stream"),
        ("burst-503", "test_concurrency", "concurrency", "concurrency"),
        ("quota-429", "test_concurrency", "quota", "quota"),
    ],
)
def test_fault_fails_one_layer_and_blocks_the_inner_ones(
    gate: Run, pytester: pytest.Pytester, fault: str, test: str, layer: str, outer: str
) -> None:
    result = gate("--demo-fault", fault, "--junitxml", "j.xml")
    assert result.ret == 1
    found = cases(pytester.path / "j.xml")
    failures = {name: message for name, (outcome, message) in found.items() if outcome == "failure"}
    assert [name.split("[")[0] for name in failures] == [test]
    message = next(iter(failures.values()))
    lines = message.splitlines()
    assert lines[0].startswith(f"{layer}: ")
    assert lines[1].startswith("likely: ")
    assert lines[2].startswith("try: ")
    blocked = [message for outcome, message in found.values() if outcome == "skipped" and "blocked: " in message]
    assert blocked, "an outer fault leaves inner checks blocked"
    assert all(f"since {outer}: " in message for message in blocked)
    result.stdout.fnmatch_lines([f"E   {layer}: *", "E   likely: *", "E   try: *"])
    assert "Traceback" not in result.stdout.str()
    assert "fixtures_access" not in result.stdout.str()


def test_message_stands_in_the_short_summary(gate: Run) -> None:
    result = gate("--demo-fault", "key-wrong", env={"COLUMNS": "200"})
    result.stdout.fnmatch_lines(["FAILED *test_key*demo* - key: 401 Unauthorized from GET /v1/models*"])


def test_asked_for_alone_an_inner_check_measures_the_outer_ones_first(gate: Run) -> None:
    result = gate("--demo-fault", "key-wrong", "-k", "test_chat_usage", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["SKIPPED*test_03_inference.py:*blocked: chat: not tried, since key: 401 Unauthorized*"]
    )


def test_advice_fails_nothing_and_is_told(gate: Run) -> None:
    result = gate("--demo-fault", "stream-no-done", "-rx")
    assert result.ret == 0
    assert result.parseoutcomes()["xfailed"] == 1
    result.stdout.fnmatch_lines(["*advice*stream_done*ended without*", "XFAIL *test_stream_done*stream: *"])


def test_what_cannot_be_measured_is_no_pass(gate: Run, pytester: pytest.Pytester) -> None:
    result = gate("--demo", "--token-budget", "10", "-k", "test_concurrency", "--junitxml", "j.xml")
    assert result.ret == 1
    outcome, message = cases(pytester.path / "j.xml")["test_concurrency[demo]"]
    assert outcome == "failure"
    assert message.startswith("inconclusive: concurrency: 16 more output tokens are needed")
    result.stdout.fnmatch_lines(["*INCONCLUSIVE*concurrency*"])


def test_a_run_asks_for_at_most_a_hundred_tokens(gate: Run) -> None:
    result = gate("--demo")
    line = next(line for line in result.outlines if line.startswith("tokens: "))
    assert int(line.split()[1]) <= 100


def test_number_of_requests_and_workers_are_options(gate: Run) -> None:
    result = gate("--demo", "--probe-requests", "5", "--probe-workers", "2", "-k", "test_concurrency", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*5 requests at 2 workers all*"])


def test_health_break_during_the_suite_is_reported_with_its_times(gate: Run) -> None:
    result = gate("--demo-fault", "flapping", env={"COLUMNS": "200"})
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED *test_http_health*http: 1 break in * health polls: *503*from GET /v1/models*"])
    result.stdout.re_match_lines([r"health: demo: (since )?\d\d:\d\d:\d\d.*"])


def test_first_failure_ends_the_run_with_x(gate: Run) -> None:
    result = gate("--demo-fault", "key-wrong", "-x")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert sum(outcomes.values()) < 10
    result.stdout.fnmatch_lines(["*FAILED*key *401*"])


def test_last_failed_runs_the_failed_check_again(pytester: pytest.Pytester, run: Run) -> None:
    arguments = (SUITE, "-o", f"cache_dir={pytester.path / 'cache'}")
    first = pytester.runpytest_subprocess(*map(str, arguments), "--demo-fault", "usage-sum")
    assert first.parseoutcomes()["failed"] == 1
    again = pytester.runpytest_subprocess(*map(str, arguments), "--demo", "--lf")
    again.assert_outcomes(passed=1, deselected=again.parseoutcomes().get("deselected", 0))


def test_long_traceback_is_there_for_who_asks(gate: Run) -> None:
    result = gate("--demo-fault", "key-wrong", "--tb=long")
    result.stdout.fnmatch_lines(["*access.require*key*", "*FindingFailed: key: 401*"])


def test_nothing_is_left_behind(gate: Run, pytester: pytest.Pytester) -> None:
    gate("--demo")
    own = ("runpytest", "stdout", "stderr")
    assert [path.name for path in Path(pytester.path).iterdir() if not path.name.startswith(own)] == []
