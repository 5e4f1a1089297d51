"""Shares are reached evenly, and an error storm neither spins nor ends the load."""

from __future__ import annotations

import pytest

from pytest_thermal.load.pacing import LONGEST_BACKOFF_SECONDS, LONGEST_RETRY_AFTER_SECONDS, Backoff, Mixture


@pytest.mark.parametrize("share", [0.0, 0.01, 0.25, 1 / 3, 0.5, 0.6, 0.9, 0.999, 1.0])
def test_a_share_is_reached_at_every_moment(share: float) -> None:
    mixture = Mixture(share)
    requests = 0
    for items in range(1, 2001):
        requests += mixture.next_is_request()
        assert abs(requests - share * items) <= 0.5 + 1e-6


def test_all_and_nothing_are_exact() -> None:
    assert all(Mixture(1.0).next_is_request() for _ in range(100))
    nothing = Mixture(0.0)
    assert not any(nothing.next_is_request() for _ in range(100))


def test_requests_and_bursts_are_not_bunched() -> None:
    mixture = Mixture(0.5)
    dealt = [mixture.next_is_request() for _ in range(20)]
    assert dealt in ([True, False] * 10, [False, True] * 10)


def test_the_pause_grows_while_nothing_succeeds_up_to_a_few_seconds() -> None:
    backoff = Backoff()
    pauses = [backoff.after(ok=False, slots=4) for _ in range(60)]
    assert pauses[0] == pauses[3] == 0.1
    assert pauses[4] == 0.2
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_BACKOFF_SECONDS


def test_one_success_ends_the_growth() -> None:
    backoff = Backoff()
    for _ in range(100):
        backoff.after(ok=False, slots=1)
    assert backoff.after(ok=True, slots=1) == 0.0
    assert backoff.after(ok=False, slots=1) == 0.1


def test_a_storm_for_days_overflows_nothing() -> None:
    backoff = Backoff()
    for _ in range(100_000):
        pause = backoff.after(ok=False, slots=1)
    assert pause == LONGEST_BACKOFF_SECONDS


def test_what_the_gateway_asks_for_is_waited_for_within_reason() -> None:
    assert Backoff().after(ok=False, slots=8, retry_after_seconds=7.5) == 7.5
    assert Backoff().after(ok=False, slots=8, retry_after_seconds=3600) == LONGEST_RETRY_AFTER_SECONDS
    assert Backoff().after(ok=True, slots=8, retry_after_seconds=7.5) == 0.0
