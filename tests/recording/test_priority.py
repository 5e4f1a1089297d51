"""Real-time priority: asked for, and told where it is refused."""

from __future__ import annotations

import os

import pytest

from pytest_thermal.recording.priority import raise_priority


def test_the_lowest_real_time_priority_is_asked_for_and_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int, int]] = []
    monkeypatch.setattr(
        os, "sched_setscheduler", lambda who, policy, param: asked.append((who, policy, param.sched_priority))
    )
    assert raise_priority() == "SCHED_FIFO 1"
    assert asked == [(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 1)]


def test_a_refusal_is_told_with_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refused)
    assert raise_priority() == (
        "default: SCHED_FIFO is not allowed (Operation not permitted); it takes root or `ulimit -r 1`"
    )


def test_a_system_without_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "SCHED_FIFO")
    assert raise_priority() == "default: this system has no SCHED_FIFO"
