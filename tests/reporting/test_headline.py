"""The one number of a finding."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.findings import CHECKS
from pytest_thermal.model import Outcome
from pytest_thermal.model.findings import Scalar
from pytest_thermal.reporting.allure_descriptions import evidence_table
from pytest_thermal.reporting.headline import headline
from pytest_thermal.reporting.measured import unit_of
from tests.findings.recordings import healthy, judged
from tests.reporting.observations import finding


def test_each_thermal_check_of_a_machine_that_is_well_has_its_number_and_keeps_its_limit() -> None:
    numbers = {
        found.check: headline(found) for found in judged(healthy()).findings() if found.outcome is Outcome.PASSED
    }
    assert set(numbers) == set(CHECKS) - {"drift"}  # there is no earlier run
    for check, number in numbers.items():
        assert number is not None, check
        assert number.unit, check
        if number.limit is not None:
            assert number.limit_origin == "default", check
            assert number.value >= number.limit if number.at_least else number.value <= number.limit, check
    with_limit = {check for check, number in numbers.items() if number is not None and number.limit is not None}
    assert with_limit == {"baseline", "threshold", "rise", "settled", "throttling", "rebound", "throughput"}


def test_a_limit_is_of_the_checks_own_number_wherever_that_stands() -> None:
    """A page and the gate must not tell the same finding with two limits."""
    evidence: dict[str, Scalar] = {"ambient_celsius": 24.0, "rise_celsius": 41.0, "limit_celsius": 40.0}
    found = finding(Outcome.FAILED, "rise", evidence={**evidence, "limit_origin": "default"})
    number = headline(found)
    assert number is not None
    assert (number.value, number.limit) == (41.0, 40.0)
    rows = evidence_table(found.evidence, check="rise")
    assert "| rise | 41.0 °C | ≤ 40 °C (default) | **-1.0 °C** |" in rows
    assert "| ambient | 24.0 °C | | |" in rows


def test_the_target_of_an_interconnect_is_its_limit() -> None:
    evidence: dict[str, Scalar] = {"latency_us": 6.5, "target_us": 5.0}
    number = headline(finding(Outcome.FAILED, "interconnect_latency", evidence=evidence))
    assert number is not None
    assert (number.value, number.unit, number.limit) == (6.5, "microseconds", 5.0)
    assert number.limit_origin == "latency_target_us of the bench"
    (row,) = evidence_table(evidence, check="interconnect_latency")[2:]
    assert row == "| latency | 6.5 µs | ≤ 5 µs (latency\\_target\\_us of the bench) | **-1.5 µs** |"


@pytest.mark.parametrize(
    "evidence, expected",
    [
        ({"value_celsius": 5.0, "limit_celsius": 4.0, "limit_origin": "the rack"}, (5.0, "celsius", 4.0, "the rack")),
        ({"value_watts": np.float32(5.0)}, (5.0, "watts", None, "")),
        ({"value": 7}, (7.0, "", None, "")),
        ({"value_celsius": float("nan"), "limit_celsius": 4.0}, None),
        ({"value_celsius": None}, None),
        ({"value_celsius": True}, None),
        ({"value_celsius": "5"}, None),
        ({"valued": 3.0}, None),
        ({}, None),
    ],
)
def test_somebody_elses_check_has_one_by_its_names(
    evidence: dict[str, Scalar], expected: tuple[float, str, float | None, str] | None
) -> None:
    number = headline(finding(Outcome.PASSED, "door_open", evidence=evidence))
    assert expected == (number and (number.value, number.unit, number.limit, number.limit_origin))


@pytest.mark.parametrize(
    "name, unit",
    [
        ("slope_celsius_per_minute", "celsius/minute"),
        ("rise_celsius", "celsius"),
        ("latency_us", "microseconds"),
        ("steady_thermal_milliseconds", "milliseconds"),
        ("status", ""),
        ("against", ""),
    ],
)
def test_the_unit_stands_in_the_name(name: str, unit: str) -> None:
    assert unit_of(name) == unit
