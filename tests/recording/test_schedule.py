from __future__ import annotations

import itertools
import random

import pytest

from pytest_thermal.recording.schedule import Grid
from pytest_thermal.recording.slot_book import LONGEST_GAP_SLOTS, SlotBook


def test_slots_stand_at_absolute_times() -> None:
    grid = Grid(start_seconds=100.0, period_seconds=0.1)
    assert [grid.due(slot) for slot in (0, 3, 1_000_000)] == pytest.approx([100.0, 100.3, 100_100.0], abs=1e-9)


@pytest.mark.parametrize("period_seconds", [0.05, 0.1, 0.3, 1.0, 5.0, 7.7])
def test_a_slot_is_due_at_its_own_time_whatever_division_makes_of_it(period_seconds: float) -> None:
    grid = Grid(start_seconds=12345.678, period_seconds=period_seconds)
    for slot in random.Random(1).sample(range(1_000_000), 500):
        assert grid.last_due(grid.due(slot)) == slot


def test_before_the_first_slot_nothing_is_due() -> None:
    assert Grid(start_seconds=10.0, period_seconds=1.0).last_due(3.0) == -1


@pytest.mark.parametrize(
    "now, after, expected",
    [
        (9.5, -1, None),
        (10.0, -1, 0),
        (10.7, -1, 0),
        (10.8, -1, None),  # so late that it would crowd the next one
        (10.4, 0, None),  # done already
        (13.2, 0, 3),  # slots 1 and 2 are left out, not made up for
        (13.8, 0, None),
    ],
)
def test_what_may_be_sampled_now(now: float, after: int, expected: int | None) -> None:
    assert Grid(start_seconds=10.0, period_seconds=1.0).startable(now, after=after) == expected


@pytest.mark.parametrize("now, after, expected", [(9.0, -1, 10.0), (10.2, 0, 11.0), (13.7, 0, 14.0), (10.2, 4, 15.0)])
def test_when_to_look_again(now: float, after: int, expected: float) -> None:
    assert Grid(start_seconds=10.0, period_seconds=1.0).next_due(now, after=after) == expected


def test_a_lane_that_obeys_the_grid_never_drifts_and_never_bunches() -> None:
    """Simulated: waking late by up to 2.5 periods and reading for up to 1.5, at random."""
    random_ = random.Random(7)
    grid = Grid(start_seconds=0.0, period_seconds=1.0)
    now, done, begun_at = 0.0, -1, []
    while now < 2000:
        slot = grid.startable(now, after=done)
        if slot is None:
            now = grid.next_due(now, after=done) + random_.choice([0.0, 0.001, 0.3, 2.5])
            continue
        assert slot > done
        begun_at.append(now)
        done = slot
        now += random_.choice([0.001, 0.4, 1.5])
    assert all(0 <= begun - grid.due(grid.last_due(begun)) <= 0.75 for begun in begun_at)
    assert all(later - earlier >= 0.25 for earlier, later in itertools.pairwise(begun_at))


def book(first: int = 0) -> SlotBook:
    return SlotBook(Grid(start_seconds=0.0, period_seconds=1.0), first=first, deadline_seconds=3.0)


def test_every_slot_is_told_once_answered_or_missing() -> None:
    accounts = book()
    told: list[int] = []
    for slot, ended in ((0, 0.1), (1, 4.2), (5, 5.1)):
        answered = accounts.answered(slot, ended_seconds=ended)
        assert answered is not None
        told += [*answered.missed, slot]
    told += accounts.overdue(11.5, answering=True)
    assert told == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert (accounts.answered_count, accounts.missed_count) == (3, 6)


def test_why_slots_were_left_out() -> None:
    accounts = book()
    accounts.answered(0, ended_seconds=2.7)
    slow = accounts.answered(3, ended_seconds=3.1)
    late = accounts.answered(6, ended_seconds=6.1)
    assert slow is not None
    assert late is not None
    assert "longer than the period" in slow.why
    assert "not run in time" in late.why


def test_an_answer_after_its_slot_was_given_up_counts_as_late_and_nothing_is_told_twice() -> None:
    accounts = book()
    assert list(accounts.overdue(4.5, answering=True)) == [0, 1]
    assert accounts.answered(0, ended_seconds=4.6) is None
    assert accounts.late_count == 1
    answered = accounts.answered(5, ended_seconds=5.1)
    assert answered is not None
    assert list(answered.missed) == [2, 3, 4]


def test_nobody_there_to_answer_means_no_patience() -> None:
    assert list(book().overdue(2.5, answering=False)) == [0, 1]


def test_a_machine_that_slept_for_days_does_not_fill_the_disk() -> None:
    accounts = book()
    accounts.answered(0, ended_seconds=0.1)
    answered = accounts.answered(1_000_000, ended_seconds=1e6)
    assert answered is not None
    assert len(answered.missed) == LONGEST_GAP_SLOTS
    assert accounts.missed_count == 999_999
    assert len(list(accounts.overdue(5e6, answering=True))) == LONGEST_GAP_SLOTS
    assert accounts.next > 4_999_990


def test_another_process_is_not_blamed_for_the_one_before() -> None:
    accounts = book()
    accounts.answered(0, ended_seconds=0.5)
    accounts.begin_anew()
    answered = accounts.answered(3, ended_seconds=3.1)
    assert answered is not None
    assert (list(answered.missed), answered.why) == ([1, 2], "")
