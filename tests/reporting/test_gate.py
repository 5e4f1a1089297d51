"""The gate's one rule: go only where every critical check was measured on the machine itself and passed."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.reporting.gate import Acceptance, Decision, Need, Trouble, decide, doubts, twins, unseen
from pytest_thermal.reporting.observed import How, Observed
from tests.reporting.observations import PASSED, asked, finding, own

GO, NO_GO, NOT_DECIDED = Decision.GO, Decision.NO_GO, Decision.NOT_DECIDED


def test_all_that_is_critical_passed() -> None:
    found = decide([PASSED, own(How.PASSED)], needs=[Need(check="key", subject="rack-1")])
    assert (found.decision, found.blocking) == (GO, ())
    assert found.because == "all 2 critical checks were measured and passed"


@pytest.mark.parametrize(
    "beside, decision, kind",
    [
        (asked(Outcome.FAILED, "chat"), NO_GO, "failed"),
        (asked(Outcome.FAILED, "chat", simulated=True), NO_GO, "failed"),
        (asked(Outcome.INCONCLUSIVE, "chat"), NOT_DECIDED, "inconclusive"),
        (asked(Outcome.BLOCKED, "chat"), NOT_DECIDED, "blocked"),
        (asked(Outcome.SKIPPED, "chat"), NOT_DECIDED, "skipped"),
        (asked(Outcome.PASSED, "chat", simulated=True), NOT_DECIDED, "simulated"),
        (own(How.FAILED), NO_GO, "failed"),
        (own(How.BROKEN), NOT_DECIDED, "broken"),
        (own(How.SKIPPED), NOT_DECIDED, "skipped"),
        (own(How.SKIPPED, message="blocked: the run broke"), NOT_DECIDED, "blocked"),
        (own(How.EXPECTED), NOT_DECIDED, "expected failure"),
        (own(How.NOT_RUN), NOT_DECIDED, "not run"),
        (own(How.DESELECTED), NOT_DECIDED, "deselected"),
        # What is not critical blocks only where pytest itself fails because of it.
        (own(How.FAILED, critical=False), NO_GO, "failed"),
        (own(How.BROKEN, critical=False), NOT_DECIDED, "broken"),
        (own(How.SKIPPED, critical=False), GO, None),
        (own(How.DESELECTED, critical=False), GO, None),
        (own(How.NOT_RUN, critical=False), GO, None),
        (own(How.PASSED, critical=False, simulated=True), GO, None),
        # Advice fails nothing, whatever it has to say.
        (own(How.EXPECTED, advisory=True), GO, None),
        (asked(Outcome.FAILED, "chat_limit", advisory=True, how=How.EXPECTED), GO, None),
    ],
)
def test_one_thing_beside_a_pass(beside: Observed, decision: Decision, kind: str | None) -> None:
    found = decide([PASSED, beside])
    assert found.decision is decision
    assert [item.kind for item in found.blocking] == [kind] * (kind is not None)


def test_what_failed_comes_first_and_is_told_in_its_own_words() -> None:
    found = decide([asked(Outcome.INCONCLUSIVE, "chat"), asked(Outcome.FAILED)], troubles=[Trouble(seen="Ctrl-C")])
    first = found.blocking[0]
    assert (found.decision, first.name, first.test) == (NO_GO, "key[rack-1]", "suites/x.py::test_key[rack-1]")
    assert (first.seen, first.likely, first.advice) == ("key was failed", "a cause", "a remedy")
    assert found.because == "1 failed, 1 more of 2 critical checks are open"


def test_the_finding_that_ended_the_test_is_told_and_not_its_last_good_one() -> None:
    several = Observed(
        test="mine.py::test_mine",
        how=How.FAILED,
        critical=True,
        findings=(finding(Outcome.FAILED, "chat"), finding(Outcome.PASSED, "stream")),
    )
    assert decide([several]).blocking[0].seen == "chat was failed"


def test_a_failure_of_ones_own_after_good_findings_is_told_by_its_own_words() -> None:
    one = Observed(
        test="mine.py::test_mine",
        how=How.BROKEN,
        critical=True,
        findings=(finding(Outcome.PASSED),),
        message="no tool\nlikely: not installed\ntry: install it",
    )
    item = decide([one]).blocking[0]
    assert (item.kind, item.seen, item.likely, item.advice) == ("broken", "no tool", "not installed", "install it")


@pytest.mark.parametrize(
    "need, missing",
    [
        (Need(check="key", subject="rack-1"), False),
        (Need(check="key"), False),
        (Need(check="key", subject="rack-2"), True),
        (Need(check="chat", subject="rack-1"), True),
    ],
)
def test_what_nobody_asked_is_missing(need: Need, missing: bool) -> None:
    found = decide([PASSED], needs=[need])
    assert (found.decision is NOT_DECIDED) is missing
    assert [(item.kind, item.name) for item in found.blocking] == [("not asked", need.name)] * missing


def passed(*findings: Finding) -> Observed:
    """A critical test of a suite that is told as passed, with what was found in it."""
    return Observed(
        test="suites/x.py::test_key[rack-1]",
        how=How.PASSED,
        critical=True,
        check="key",
        subject="rack-1",
        findings=findings,
    )


@pytest.mark.parametrize(
    "one, decision, kind, seen",
    [
        (passed(), NOT_DECIDED, "not asked", "its test passed, and nothing was measured in it"),
        (passed(finding(Outcome.FAILED)), NO_GO, "failed", "its test is told as passed, but key was failed"),
        (passed(finding(Outcome.INCONCLUSIVE)), NOT_DECIDED, "inconclusive", "but key was inconclusive"),
        (passed(finding(Outcome.SKIPPED)), NOT_DECIDED, "inconclusive", "but key was skipped"),
        (passed(finding(Outcome.PASSED, "chat")), NOT_DECIDED, "not asked", "nothing was measured"),
        (passed(finding(Outcome.PASSED, subject="rack-2")), NOT_DECIDED, "not asked", "nothing was measured"),
    ],
)
def test_a_pass_without_its_finding_proves_nothing(one: Observed, decision: Decision, kind: str, seen: str) -> None:
    found = decide([one, own(How.PASSED)], needs=[Need(check="key", subject="rack-1")])
    (item,) = found.blocking
    assert (found.decision, item.kind, item.name) == (decision, kind, "key[rack-1]")
    assert seen in item.seen


def test_what_failed_is_not_shown_by_a_skip_that_is_accepted() -> None:
    sly = Observed(
        test="mine.py::test_mine",
        how=How.SKIPPED,
        critical=True,
        findings=(finding(Outcome.FAILED), finding(Outcome.SKIPPED, "tls")),
    )
    found = decide([sly, own(How.PASSED)], needs=[Need(check="chat", subject="rack-1")], acceptances=accept("*"))
    assert found.decision is NOT_DECIDED
    assert found.blocking[0].name == "chat[rack-1]"


@pytest.mark.parametrize("how", [How.DESELECTED, How.NOT_RUN])
def test_what_did_not_run_is_named_once(how: How) -> None:
    left_out = Observed(test="x.py::test_chat[rack-1]", how=how, critical=True, check="chat", subject="rack-1")
    found = decide([PASSED, left_out], needs=[Need(check="chat", subject="rack-1")])
    assert [item.kind for item in found.blocking] == [str(how)]


@pytest.mark.parametrize("beside", [own(How.PASSED, critical=False), asked(Outcome.PASSED, critical=False)])
def test_only_a_critical_test_asks_what_is_needed(beside: Observed) -> None:
    assert decide([own(How.PASSED), beside], needs=[Need(check="key")]).decision is NOT_DECIDED


def test_nothing_at_all_is_never_go() -> None:
    for observed in ([], [own(How.PASSED, critical=False)]):
        found = decide(observed)
        assert found.decision is NOT_DECIDED
        assert "no critical check was measured" in found.because


@pytest.mark.parametrize(
    "outcome, decision", [(Outcome.FAILED, NO_GO), (Outcome.INCONCLUSIVE, NOT_DECIDED), (Outcome.PASSED, GO)]
)
def test_third_parties_have_a_word(outcome: Outcome, decision: Decision) -> None:
    assert decide([PASSED], besides=[finding(outcome, "door_open")]).decision is decision


def test_a_run_that_did_not_end_is_not_decided() -> None:
    found = decide([PASSED], troubles=[Trouble(seen="interrupted: Ctrl-C")])
    assert (found.decision, found.because) == (NOT_DECIDED, "interrupted: Ctrl-C")


# ---------------------------------------------------------------------------------------------------------- accepting


def accept(pattern: str) -> list[Acceptance]:
    return [Acceptance(pattern=pattern, reason="no fabric in this one, J. D.", origin="ini")]


@pytest.mark.parametrize(
    "pattern, covered",
    [
        ("interconnect", True),
        ("interconnect*", True),
        ("interconnect[rack-1]", True),
        ("interconnect[rack-*]", True),
        ("*", True),
        ("interconnect[rack-2]", False),
        ("interconnect_latency", False),
        ("inter", False),
    ],
)
def test_a_skip_can_be_accepted_by_name(pattern: str, covered: bool) -> None:
    found = decide([PASSED, asked(Outcome.SKIPPED, "interconnect")], acceptances=accept(pattern))
    assert (found.decision is GO) is covered
    assert [one.acceptance.reason for one in found.accepted] == ["no fabric in this one, J. D."] * covered


def test_a_skipped_test_of_ones_own_is_accepted_by_its_name() -> None:
    assert decide([PASSED, own(How.SKIPPED)], acceptances=accept("test_mine")).decision is GO


@pytest.mark.parametrize(
    "beside",
    [
        asked(Outcome.FAILED, "chat"),
        asked(Outcome.INCONCLUSIVE, "chat"),
        asked(Outcome.BLOCKED, "chat"),
        asked(Outcome.PASSED, "chat", simulated=True),
        own(How.NOT_RUN),
        own(How.DESELECTED),
        own(How.EXPECTED),
    ],
)
def test_nothing_but_a_skip_can_be_accepted(beside: Observed) -> None:
    found = decide([PASSED, beside], needs=[Need(check="stream")], acceptances=accept("*"))
    assert found.decision is not GO
    assert found.accepted == ()
    assert {item.kind for item in found.blocking} >= {"not asked"}


def test_accepting_everything_measures_nothing() -> None:
    assert decide([asked(Outcome.SKIPPED)], acceptances=accept("*")).decision is NOT_DECIDED


# --------------------------------------------------------------------------------------------------------- recordings


def utc(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, tz=dt.timezone.utc).isoformat(timespec="milliseconds")


def recorded(**more: Any) -> dict[str, Any]:
    return {"directory": "runs/a", "source": "replayed", "state": "finished", "bench": "lab-7", "changed": [], **more}


@pytest.mark.parametrize(
    "run, bench, told",
    [
        (recorded(), "lab-7", ""),
        (recorded(), None, ""),
        (recorded(source="made", bench="other"), "lab-7", ""),
        (recorded(state="cut off"), "lab-7", "is cut off"),
        (recorded(changed=["samples/a.csv: edited"]), "lab-7", "1 of its files are not as they were"),
        (recorded(), "lab-8", "recorded on bench lab-7, and this gate is about lab-8"),
        (recorded(source="log", state="foreign"), "lab-7", "nothing says of which machine this log is"),
    ],
)
def test_a_recording_is_evidence_only_of_the_bench_it_is_of(run: dict[str, Any], bench: str | None, told: str) -> None:
    found = doubts(run, bench)
    assert len(found) == bool(told)
    assert all(told in one.seen for one in found)


NOON = 1_800_000_000.0
HOUR = 3600.0


@pytest.mark.parametrize(
    "run, told",
    [
        (recorded(ended=utc(NOON - HOUR)), ""),
        (recorded(ended=utc(NOON - 23.9 * HOUR)), ""),
        (recorded(ended=utc(NOON - 30 * HOUR)), "it ended 30 h ago, and this gate takes none older than 24 h"),
        (recorded(ended=utc(NOON + 0.5 * HOUR)), ""),
        (recorded(ended=utc(NOON + 3 * HOUR)), "it ends 3.0 h from now"),
        (recorded(ended=None), "it does not say when it ended"),
        (recorded(ended="yesterday"), "it does not say when it ended"),
        (recorded(ended=utc(NOON - 30 * HOUR), source="made"), ""),
    ],
)
def test_a_recording_of_another_day_is_no_evidence_of_today(run: dict[str, Any], told: str) -> None:
    found = doubts(run, "lab-7", now_seconds=NOON, oldest_seconds=24 * HOUR)
    assert [told in one.seen for one in found] == [True] * bool(told)


def test_one_run_under_two_names_is_one_machine() -> None:
    both = [recorded(host="node-1", samples="a" * 64), recorded(host="node-2", samples="a" * 64, directory="runs/b")]
    (trouble,) = twins([*both, recorded(host="node-3", samples="b" * 64), recorded(host="node-4", samples="")])
    assert trouble.seen == "runs/b holds the same samples as runs/a, under another name"
    assert not twins([both[0], both[0]])


@pytest.mark.parametrize(
    "bench, cards, fleet_nodes, told",
    [
        ({}, 1, 1, ""),
        ({"cards": 8}, 8, None, ""),
        ({"cards": 8}, 16, None, ""),  # two chips a card
        ({"cards": 8}, 7, None, "gpu_per_node of the bench is 8; accelerators measured: 7"),
        ({"cards": 8}, 0, None, "accelerators measured: 0"),
        ({"nodes": 48}, 8, None, ""),  # the gate of one node
        ({"nodes": 48}, 8, 48, ""),
        ({"nodes": 48}, 8, 1, "node_count of the bench is 48; nodes of the fleet that was judged: 1"),
    ],
)
def test_what_the_bench_files_count_has_to_be_seen(
    bench: dict[str, Any], cards: int, fleet_nodes: int | None, told: str
) -> None:
    found = unseen([bench], [recorded(cards=cards)], fleet_nodes=fleet_nodes)
    assert [told in one.seen for one in found] == [True] * bool(told)
