"""Limits, on a clock of the test's own."""

from __future__ import annotations

from pytest_thermal.demo.limits import Budget, KeyLimits


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def limits(clock: Clock, **given: int) -> KeyLimits:
    names = ("requests_per_minute", "tokens_per_minute", "parallel_limit")
    return KeyLimits(**{name: given.get(name) for name in names}, clock=clock)


def test_no_limits_admit_everything_and_announce_nothing() -> None:
    none = limits(Clock())
    assert [none.admit(tokens=10**6) for _ in range(100)] == [None] * 100
    assert none.headers() == {}


def test_the_minute_slides() -> None:
    clock = Clock()
    key = limits(clock, requests_per_minute=2)
    assert key.admit(tokens=1) is None
    clock.seconds += 30
    assert key.admit(tokens=1) is None
    clock.seconds += 10.5
    refusal = key.admit(tokens=1)
    assert refusal is not None
    assert (refusal.kind, refusal.limit, refusal.used, refusal.requested) == ("requests", 2, 2, 1)
    assert refusal.retry_after_seconds == 20, "19.5 s, rounded up so that whoever obeys is not early"
    clock.seconds += 20
    assert key.admit(tokens=1) is None
    assert key.admit(tokens=1) is not None


def test_whoever_waits_as_told_is_admitted() -> None:
    clock = Clock()
    key = limits(clock, tokens_per_minute=100)
    for tokens in (30, 30, 30):
        assert key.admit(tokens=tokens) is None
        clock.seconds += 7
    refusal = key.admit(tokens=60)
    assert refusal is not None
    assert refusal.retry_after_seconds == 60 - 14, "two of the three have to leave the minute"
    clock.seconds += refusal.retry_after_seconds - 1
    assert key.admit(tokens=60) is not None
    clock.seconds += 1
    assert key.admit(tokens=60) is None


def test_more_than_the_limit_is_never_admitted() -> None:
    refusal = limits(Clock(), tokens_per_minute=100).admit(tokens=101)
    assert refusal is not None
    assert (refusal.kind, refusal.retry_after_seconds) == ("tokens", None)


def test_a_refused_request_counts_for_nothing() -> None:
    clock = Clock()
    key = limits(clock, requests_per_minute=5, tokens_per_minute=10)
    assert key.admit(tokens=8) is None
    for _ in range(10):
        assert key.admit(tokens=8) is not None
    assert key.headers()["x-ratelimit-remaining-requests"] == "4"
    assert key.headers()["x-ratelimit-remaining-tokens"] == "2"


def test_parallel_requests_are_released() -> None:
    key = limits(Clock(), parallel_limit=1)
    assert key.admit(tokens=1) is None
    refusal = key.admit(tokens=1)
    assert refusal is not None
    assert refusal.kind == "max_parallel_requests"
    key.release()
    assert key.admit(tokens=1) is None


def test_a_budget_resets_when_its_last_spending_is_a_minute_old() -> None:
    clock = Clock()
    budget = Budget(10, clock=clock)
    assert budget.reset_seconds == 0
    budget.spend(4)
    clock.seconds += 10
    budget.spend(3)
    assert (budget.used, budget.remaining, budget.reset_seconds) == (7, 3, 60)
    clock.seconds += 50
    assert (budget.used, budget.remaining, budget.reset_seconds) == (3, 7, 10)
    clock.seconds += 10
    assert (budget.used, budget.remaining, budget.reset_seconds) == (0, 10, 0)
