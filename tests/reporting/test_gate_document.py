"""What stands in gate.json is what its schema says, whatever happened."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from pytest_thermal.model import Outcome
from pytest_thermal.reporting.gate import Acceptance, Need, Trouble, decide
from pytest_thermal.reporting.gate_document import Circumstances, as_text, ended, running, schema
from pytest_thermal.reporting.observed import How, Observed
from tests.reporting.observations import PASSED, asked, own

RISE = asked(
    Outcome.PASSED,
    "rise",
    "gpu0.temperature_celsius",
    evidence={
        "rise_celsius": 31.5,
        "steady_celsius": float("nan"),
        "limit_celsius": 40.0,
        "limit_origin": "config.toml [thermal] rise_gpu_most",
    },
)


def circumstances(**more: Any) -> Circumstances:
    given: dict[str, Any] = {
        "started_seconds": 1_800_000_000.0,
        "ended_seconds": 1_800_000_060.5,
        "version": "0.1.0",
        "commit": "0" * 40,
        "modified": False,
        "pytest": "9.2.0",
        "python": "3.12.1",
        "host": "lab-7",
        "command": ["suites", "--gate"],
        "benches": [
            {
                "name": "lab-7",
                "chosen_by": "--bench lab-7",
                "simulated": False,
                "fault": "",
                "domains": [{"name": "rack-1", "gateway": "https://gateway.example/v1"}],
            }
        ],
        "runs": [
            {
                "directory": "/reports/runs/a",
                "source": "made",
                "state": "finished",
                "bench": "lab-7",
                "host": "lab-7",
                "recorded": "2027-01-15T08:00:00.000+00:00",
                "simulated": False,
                "changed": [],
            }
        ],
    }
    return Circumstances(**{**given, **more})


def valid(document: dict[str, Any]) -> dict[str, Any]:
    """The document as a reader gets it, held against the schema."""
    told: dict[str, Any] = json.loads(as_text(document))
    checker = jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker())
    checker.validate(told)
    return told


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_go_tells_each_finding_with_its_limit_and_where_that_came_from() -> None:
    observed = [PASSED, RISE]
    told = valid(ended(circumstances(), decide(observed), observed))
    assert (told["decision"], told["state"], told["blocking"]) == ("go", "ended", [])
    assert (told["started"], told["ended"]) == ("2027-01-15T08:00:00.000+00:00", "2027-01-15T08:01:00.500+00:00")
    rise = next(one for one in told["findings"] if one["check"] == "rise")
    assert (rise["value"], rise["unit"], rise["limit"], rise["limit_is"]) == (31.5, "celsius", 40.0, "most")
    assert rise["limit_origin"] == "config.toml [thermal] rise_gpu_most"
    assert rise["evidence"]["steady_celsius"] is None
    assert told["counts"]["critical_passed"] == told["counts"]["critical"] == 2


@pytest.mark.parametrize(
    "beside",
    [
        *(asked(outcome, "chat") for outcome in Outcome if outcome is not Outcome.PASSED),
        *(own(how) for how in How if how is not How.PASSED),
        asked(Outcome.PASSED, "chat", simulated=True),
    ],
)
def test_every_way_to_end_has_its_place(beside: Observed) -> None:
    observed = [PASSED, beside]
    verdict = decide(observed, needs=[Need(check="stream")], troubles=[Trouble(seen="Ctrl-C")])
    told = valid(ended(circumstances(), verdict, observed))
    assert told["decision"] == ("no-go" if beside.how is How.FAILED else "not decided")
    assert {item["kind"] for item in told["blocking"]} >= {"not asked", "run"}
    assert sum(told["counts"][name] for name in told["counts"] if not name.startswith("critical")) == 2


def test_what_was_accepted_stands_there_with_its_reason() -> None:
    observed = [PASSED, asked(Outcome.SKIPPED, "tls")]
    accepted = [Acceptance(pattern="tls", reason="a loopback address, J. D.", origin="ini key thermal_gate_accept")]
    told = valid(ended(circumstances(), decide(observed, acceptances=accepted), observed))
    assert told["decision"] == "go"
    assert [(one["check"], one["reason"]) for one in told["accepted"]] == [("tls", "a loopback address, J. D.")]


def test_until_the_end_nothing_is_decided() -> None:
    told = valid(running(circumstances(ended_seconds=None, benches=[], runs=[], commit=None, modified=None), "goes on"))
    assert (told["decision"], told["because"], told["ended"]) == ("not decided", "goes on", None)


@pytest.mark.parametrize(
    "change",
    [
        {"decision": "no-go"},
        {"decision": "maybe"},
        {"state": "running"},
        {"ended": None},
        {"because": ""},
        {"more": 1},
    ],
)
def test_the_schema_refuses_what_contradicts_itself(change: dict[str, Any]) -> None:
    told = copy.deepcopy(valid(ended(circumstances(), decide([PASSED]), [PASSED])))
    with pytest.raises(jsonschema.ValidationError):
        valid({**told, **change})


def test_the_schema_refuses_a_go_with_something_in_its_way() -> None:
    observed = [PASSED, own(How.NOT_RUN)]
    told = valid(ended(circumstances(), decide(observed), observed))
    with pytest.raises(jsonschema.ValidationError):
        valid({**told, "decision": "go"})
