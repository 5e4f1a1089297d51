"""A finding's message is what people grep by: the design's form, line by line."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pytest_thermal.model import LAYERS, Finding, Outcome, is_outside


def finding(outcome: Outcome = Outcome.FAILED, **changes: Any) -> Finding:
    known: dict[str, Any] = {"check": "key", "layer": "key", "subject": "east", "seen": "401", **changes}
    return Finding(**known, outcome=outcome)


def test_a_failure_says_layer_cause_and_what_to_try() -> None:
    message = finding(seen="401 Unauthorized from GET /v1/models", likely="disabled", advice="look").message
    assert message == "key: 401 Unauthorized from GET /v1/models\nlikely: disabled\ntry: look"


@pytest.mark.parametrize(
    "outcome, lead",
    [
        (Outcome.PASSED, "key: 401"),
        (Outcome.FAILED, "key: 401"),
        (Outcome.SKIPPED, "key: 401"),
        (Outcome.INCONCLUSIVE, "inconclusive: key: 401"),
        (Outcome.BLOCKED, "blocked: key: 401"),
    ],
)
def test_how_each_outcome_begins(outcome: Outcome, lead: str) -> None:
    assert finding(outcome).message == lead


def test_lines_without_words_are_left_out() -> None:
    assert finding(advice="look").message == "key: 401\ntry: look"
    assert finding(likely="disabled").message == "key: 401\nlikely: disabled"


def test_the_layer_is_the_one_at_fault_and_not_the_checks() -> None:
    assert finding(check="concurrency", layer="quota").message.startswith("quota: ")


def test_outcomes_are_plain_words() -> None:
    assert [str(outcome) for outcome in Outcome] == ["passed", "failed", "inconclusive", "blocked", "skipped"]
    assert f"{Outcome.PASSED}" == "passed"
    assert Outcome("passed") is Outcome.PASSED


def test_a_finding_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding().seen = "else"  # type: ignore[misc]


def test_layers_stand_from_outside_in() -> None:
    assert " ".join(LAYERS) == (
        "name connection tls http key models chat stream concurrency quota scheduler interconnect"
    )
    for index, layer in enumerate(LAYERS):
        assert [is_outside(layer, other) for other in LAYERS] == [position > index for position in range(len(LAYERS))]


def test_a_layer_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError):
        is_outside("thermal", "name")
