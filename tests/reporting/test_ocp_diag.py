"""Findings as OCP Test & Validation output: what a test executive may rely on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ocptv.output as tv
import pytest
from ocptv.output.config import get_config

from pytest_thermal.model import Outcome
from pytest_thermal.reporting.observed import How, Observed
from pytest_thermal.reporting.ocp_diag import ocp_lines
from tests.reporting.observations import PASSED, asked, own

ALLOWED = {("COMPLETE", "PASS"), ("COMPLETE", "FAIL"), ("ERROR", "NOT_APPLICABLE"), ("SKIP", "NOT_APPLICABLE")}
"""Of the standard, version 2.0: every other pair of status and result is invalid."""
RISE = asked(
    Outcome.PASSED,
    "rise",
    "gpu0.temperature_celsius",
    evidence={
        "rise_celsius": 31.5,
        "steady_celsius": 66.5,
        "uncertainty_celsius": float("nan"),
        "limit_celsius": 40.0,
        "limit_origin": "config.toml",
        "phase": "steady",
    },
    start_seconds=1_800_000_010.0,
    stop_seconds=1_800_000_011.5,
)


def output(observed: Sequence[Observed], **more: Any) -> list[dict[str, Any]]:
    """The documents, after what the standard asks of any output."""
    lines = ocp_lines(
        observed,
        **{
            "version": "0.1.0",
            "host": "lab-7",
            "command": "pytest suites",
            "bench": "lab-7",
            "started_seconds": 1_800_000_000.0,
            "ended_seconds": 1_800_000_060.0,
            **more,
        },
    )
    documents = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert [one["sequenceNumber"] for one in documents] == list(range(len(documents)))
    assert all(one["timestamp"].endswith("Z") for one in documents)
    assert documents[0]["schemaVersion"] == {"major": 2, "minor": 0}
    assert "testRunStart" in documents[1]["testRunArtifact"]
    ends = [one["testRunArtifact"]["testRunEnd"] for one in documents if "testRunEnd" in one.get("testRunArtifact", {})]
    assert ends == [documents[-1]["testRunArtifact"]["testRunEnd"]]
    assert (ends[0]["status"], ends[0]["result"]) in ALLOWED
    known = {
        part["hardwareInfoId"] for part in documents[1]["testRunArtifact"]["testRunStart"]["dutInfo"]["hardwareInfos"]
    }
    for step in by_step(documents).values():
        assert list(step[0]) == ["testStepStart"]
        assert list(step[-1]) == ["testStepEnd"]
        assert [name for part in step[1:-1] for name in part if name in ("testStepStart", "testStepEnd")] == []
        named = {body["hardwareInfoId"] for part in step for body in part.values() if "hardwareInfoId" in body}
        assert named <= known
    return documents


def by_step(documents: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    steps: dict[str, list[dict[str, Any]]] = {}
    for one in documents:
        if "testStepArtifact" in one:
            part = dict(one["testStepArtifact"])
            steps.setdefault(part.pop("testStepId"), []).append(part)
    return steps


def parts(documents: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [part[kind] for step in by_step(documents).values() for part in step if kind in part]


def end(observed: Sequence[Observed], **more: Any) -> tuple[str, str]:
    told = output(observed, **more)[-1]["testRunArtifact"]["testRunEnd"]
    return told["status"], told["result"]


def test_a_finding_is_a_measurement_with_its_limit_and_a_diagnosis_of_its_device() -> None:
    documents = output([RISE])
    rise, steady = parts(documents, "measurement")
    assert (rise["name"], rise["value"], rise["unit"]) == ("rise_celsius", 31.5, "celsius")
    (validator,) = rise["validators"]
    assert (validator["type"], validator["value"]) == ("LESS_THAN_OR_EQUAL", 40.0)
    assert validator["metadata"] == {"origin": "config.toml"}
    assert (steady["name"], steady["validators"]) == ("steady_celsius", [])
    (diagnosis,) = parts(documents, "diagnosis")
    assert (diagnosis["verdict"], diagnosis["type"]) == ("rise-pass", "PASS")
    assert diagnosis["message"].startswith("gpu0.temperature_celsius: rise: rise was passed")
    (hardware,) = documents[1]["testRunArtifact"]["testRunStart"]["dutInfo"]["hardwareInfos"]
    assert hardware["name"] == "gpu0"
    assert hardware["hardwareInfoId"] == diagnosis["hardwareInfoId"] == rise["hardwareInfoId"]


def test_times_are_those_of_the_tests() -> None:
    times = [one["timestamp"] for one in output([RISE])]
    assert times[0] == "2027-01-15T08:00:00.000Z"
    assert times[2] == "2027-01-15T08:00:10.000Z"
    assert times[-2:] == ["2027-01-15T08:00:11.500Z", "2027-01-15T08:01:00.000Z"]


@pytest.mark.parametrize(
    "outcome, kind, status",
    [
        (Outcome.PASSED, "PASS", "COMPLETE"),
        (Outcome.FAILED, "FAIL", "COMPLETE"),
        (Outcome.INCONCLUSIVE, "UNKNOWN", "ERROR"),
        (Outcome.BLOCKED, "UNKNOWN", "SKIP"),
        (Outcome.SKIPPED, None, "SKIP"),
    ],
)
def test_every_outcome_has_its_diagnosis(outcome: Outcome, kind: str | None, status: str) -> None:
    documents = output([asked(outcome, "chat_usage")])
    assert [one["type"] for one in parts(documents, "diagnosis")] == [kind] * (kind is not None)
    assert all(one["verdict"] == f"chat-usage-{kind.lower()}" for one in parts(documents, "diagnosis") if kind)
    assert [one["status"] for one in parts(documents, "testStepEnd")] == [status]


@pytest.mark.parametrize(
    "beside, expected",
    [
        ([], ("COMPLETE", "PASS")),
        ([asked(Outcome.SKIPPED, "tls")], ("COMPLETE", "PASS")),
        ([asked(Outcome.FAILED, "chat")], ("COMPLETE", "FAIL")),
        ([own(How.FAILED), own(How.BROKEN)], ("COMPLETE", "FAIL")),
        ([asked(Outcome.INCONCLUSIVE, "chat")], ("ERROR", "NOT_APPLICABLE")),
        ([asked(Outcome.BLOCKED, "chat")], ("ERROR", "NOT_APPLICABLE")),
        ([own(How.BROKEN)], ("ERROR", "NOT_APPLICABLE")),
        ([own(How.NOT_RUN)], ("ERROR", "NOT_APPLICABLE")),
        ([asked(Outcome.PASSED, "chat", simulated=True)], ("SKIP", "NOT_APPLICABLE")),
        ([asked(Outcome.FAILED, "chat_limit", advisory=True, how=How.EXPECTED)], ("COMPLETE", "PASS")),
    ],
)
def test_the_whole_passes_only_where_nothing_is_open(beside: list[Observed], expected: tuple[str, str]) -> None:
    assert end([PASSED, *beside]) == expected


def test_nothing_measured_and_an_interrupt_pass_nothing() -> None:
    assert end([]) == ("SKIP", "NOT_APPLICABLE")
    assert end([asked(Outcome.SKIPPED)]) == ("SKIP", "NOT_APPLICABLE")
    assert end([PASSED], interrupted="Ctrl-C") == ("ERROR", "NOT_APPLICABLE")


def test_advice_is_a_warning_and_no_diagnosis() -> None:
    documents = output([asked(Outcome.FAILED, "chat_limit", advisory=True, how=How.EXPECTED)])
    assert parts(documents, "diagnosis") == []
    assert [one["severity"] for one in parts(documents, "log")] == ["WARNING"]


def test_simulated_is_said_everywhere() -> None:
    documents = output([asked(Outcome.PASSED, simulated=True)])
    assert documents[1]["testRunArtifact"]["testRunStart"]["dutInfo"]["metadata"] == {"simulated": True}
    assert documents[2]["testRunArtifact"]["log"]["message"].startswith("SIMULATED")
    (diagnosis,) = parts(documents, "diagnosis")
    assert diagnosis["verdict"] == "simulated-key-pass"
    assert diagnosis["message"].startswith("simulated: ")


def test_a_test_of_ones_own_is_told_in_its_words() -> None:
    documents = output([own(How.FAILED, message="too warm"), own(How.BROKEN, message="no tool")])
    assert [(one["verdict"], one["message"]) for one in parts(documents, "diagnosis")] == [
        ("test-mine-fail", "too warm")
    ]
    assert [one["message"] for one in parts(documents, "error")] == ["no tool"]


def test_the_librarys_own_settings_are_left_as_they_were() -> None:
    before = get_config().writer
    output([PASSED])
    assert get_config().writer is before
    assert isinstance(before, tv.StdoutWriter)
