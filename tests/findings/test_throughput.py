"""Inference throughput: held or not, and whose fault it is."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from pytest_thermal.findings import stretch
from pytest_thermal.model import Finding, Outcome
from pytest_thermal.recording import Event, Labels, Recording, Requests
from tests.analysis.signals import Floats, Plan
from tests.findings.recordings import (
    GPU,
    HOT,
    PLAN,
    USE,
    changed,
    healthy,
    judged,
    requests,
    without,
    without_phase,
)

PASSED, FAILED, OPEN = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE
STEADY = PLAN.phases["steady"]
LATER = STEADY.start_seconds + 0.6 * PLAN.steady


def found(run: Recording, **more: object) -> Finding:
    return judged(run, **more).finding("throughput", "inference")


def slowed(latency: float = 4.0, per_second: float = 2.0) -> Requests:
    """Half as many requests from the second half of steady on, each of which takes so long."""
    before = np.arange(PLAN.load_on, LATER, 0.25)
    after = np.arange(LATER, PLAN.load_off - latency, 1 / per_second)
    return requests(
        np.concatenate([before, after]), np.concatenate([np.full(before.size, 2.0), np.full(after.size, latency)])
    )


def with_requests(rows: Requests, run: Recording | None = None) -> Recording:
    return replace(run or healthy(), requests=rows)


def late(values: Floats, plan: Plan, to: float) -> Floats:
    return np.where(plan.times >= LATER, to, values).astype(np.float64)


def test_throughput_that_held() -> None:
    one = found(healthy())
    assert one.outcome is PASSED
    assert re.fullmatch(
        r"throughput: throughput at the end of steady was 100( ± \d)? % of that at its start \(512 → 512 tokens/s\), "
        r"at least 90 % \(default\)",
        one.message,
    )


def test_without_counts_of_tokens_requests_are_counted() -> None:
    rows = healthy().requests
    assert rows is not None
    one = found(with_requests(replace(rows, completion_tokens=np.full(len(rows), np.nan))))
    assert one.outcome is PASSED
    assert "(4 → 4 requests/s)" in one.seen


def test_it_fell_by_heat() -> None:
    run = changed(with_requests(slowed()), HOT, lambda _, plan: np.maximum(plan.times - LATER, 0.0).clip(0, 900))
    one = found(run)
    assert one.outcome is FAILED
    assert re.fullmatch(
        r"throughput: throughput at the end of steady was 50( ± \d)? % of that at its start \(512 → 256 tokens/s\), "
        r"less than 90 % \(default\)",
        one.message.splitlines()[0],
    )
    assert "likely: heat: gpu0 slowed itself down for" in one.message


def test_it_fell_while_a_card_was_too_hot() -> None:
    run = changed(with_requests(slowed()), GPU, lambda values, plan: late(values, plan, 90.0))
    assert "likely: heat: gpu0.temperature_celsius was at 90.0 °C at the end of steady, more than 83 °C (default)" in (
        found(run).message
    )


def test_it_fell_because_the_gateway_refuses() -> None:
    rows = healthy().requests
    assert rows is not None
    refused = (rows.start_seconds > LATER) & (np.arange(len(rows)) % 2 == 0)
    status = np.where(refused, 429, 200)
    error = ["status 429: too many requests" if bad else "" for bad in refused]
    one = found(with_requests(replace(rows, status=status, error=Labels.of(error))))
    assert one.outcome is FAILED
    assert (
        "likely: the access layer refuses: 0 % of the requests failed at first, 50 % at the end "
        "(status 429: too many requests)"
    ) in one.message
    assert one.warnings[0].endswith("requests in steady failed: status 429: too many requests")


def test_it_fell_with_errors_of_another_kind() -> None:
    rows = healthy().requests
    assert rows is not None
    bad = (rows.start_seconds > LATER) & (np.arange(len(rows)) % 2 == 0)
    error = tuple("no answer within 120 s" if one else "" for one in bad)
    one = found(with_requests(replace(rows, status=np.where(bad, 0, 200), error=Labels.of(error))))
    assert "likely: the access layer: 0 % of the requests failed at first, 50 % at the end (no answer" in one.message


def test_it_fell_while_cards_idle_and_answers_take_longer() -> None:
    run = changed(with_requests(slowed()), USE, lambda values, plan: late(values, plan, 40.0))
    one = found(run)
    assert one.outcome is FAILED
    assert (
        "likely: the access layer: latency went from 2.00 s to 4.00 s while gpu0 was busy for 40 % only; "
        "temperatures are fine (at most 65 °C)"
    ) in one.message


def test_it_fell_while_cards_idle_for_want_of_work() -> None:
    run = changed(with_requests(slowed(latency=2.0)), USE, lambda values, plan: late(values, plan, 40.0))
    one = found(run)
    assert (
        "likely: concurrency or the CPU side: temperatures are fine (at most 65 °C), and gpu0 was busy for 40 % only"
    ) in one.message
    assert "try: --find-concurrency" in one.message


def test_it_fell_and_nothing_that_is_measured_says_why() -> None:
    one = found(with_requests(slowed()))
    assert (
        "likely: not heat, as far as is measured: temperatures are fine (at most 65 °C); and not errors" in one.message
    )


def test_nothing_but_errors() -> None:
    rows = healthy().requests
    assert rows is not None
    failing = replace(rows, status=np.full(len(rows), 401), error=Labels.of(["status 401"] * len(rows)))
    one = found(with_requests(failing))
    assert one.outcome is FAILED
    assert one.message.splitlines()[0].endswith("requests in steady failed: status 401")
    assert "try: pytest suites/supernode" in one.message


def test_what_the_end_of_the_load_cut_off_did_not_fail() -> None:
    rows = healthy().requests
    assert rows is not None
    cut = rows.start_seconds > PLAN.load_off - 10
    error = tuple("cancelled: the load was taken off" if one else "" for one in cut)
    one = found(with_requests(replace(rows, status=np.where(cut, 0, 200), error=Labels.of(error))))
    assert one.outcome is PASSED
    assert one.evidence["failed"] == 0


def test_too_few_requests() -> None:
    few = np.arange(PLAN.load_on, PLAN.load_off, 120.0, dtype=np.float64)
    assert found(with_requests(requests(few, np.full(few.size, 2.0)))).outcome is OPEN
    none = replace(healthy(), requests=None)
    one = judged(none).finding("throughput", "inference")
    assert one.outcome is OPEN
    assert one.message.splitlines()[0] == "inconclusive: throughput: no inference request was recorded"


def test_a_fall_within_what_chance_does_is_an_open_question() -> None:
    starts = np.arange(PLAN.load_on, PLAN.load_off - 2.0, 12.0, dtype=np.float64)
    fewer = np.delete(starts, np.flatnonzero(starts > PLAN.load_off - 400)[::6])
    one = found(with_requests(requests(fewer, np.full(fewer.size, 2.0))))
    assert one.outcome is OPEN
    assert "too few requests to say whether at least 90 % (default) held" in one.seen


def test_it_held_but_nobody_knows_of_the_load() -> None:
    run = changed(healthy(), USE, lambda values, _: values * 0.3)
    one = found(run)
    assert one.outcome is OPEN
    assert "gpu0 was not loaded in full in steady" in one.seen


def test_without_any_card_the_answers_stand_for_themselves() -> None:
    run = healthy()
    run = without(run, *(name for name in run.series if name.startswith("gpu0")))
    assert found(run).outcome is PASSED


def test_without_steady() -> None:
    assert found(without_phase(healthy(), "steady")).outcome is OPEN


def test_rates_and_latencies_are_told_in_wall_time() -> None:
    run = changed(with_requests(slowed()), USE, lambda values, plan: late(values, plan, 40.0))
    wall = stretch(run, 1 / 20)
    one = found(wall, time_scale=20.0)
    assert one.outcome is FAILED
    assert one.evidence["first_latency_seconds"] == 0.1
    assert "(10,240 → 5,1" in one.seen


def test_nothing_is_said_of_a_gateway_where_the_load_generator_was_the_limit() -> None:
    def limited(phase: str, rows: Requests | None = None) -> Finding:
        detail = {"what": "client-limited", "phase": phase, "text": "client-limited: it used 90% of its core"}
        run = with_requests(rows) if rows is not None else healthy()
        return found(replace(run, events=(Event(time_seconds=LATER, kind="load", detail=detail),)))

    fell = limited("steady", slowed())
    assert fell.outcome is OPEN
    assert "whether the gateway was slower is not known: client-limited: it used 90% of its core" in fell.message
    held = limited("steady")  # what was counted was counted
    assert held.outcome is PASSED
    assert held.warnings == ("client-limited: it used 90% of its core",)
    assert limited("ramp").outcome is PASSED
    assert limited("ramp", slowed()).outcome is FAILED
