"""Requests in stretches of time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.recording import Labels, Requests
from pytest_thermal.reporting.run_page.traffic import errors, tally, traffic
from tests.findings.recordings import requests


def some(*, scale: float = 1.0) -> Requests:
    """Eight that take 2 s, one a second from 100 on; the third fails, the last is cut off."""
    error = ["", "", "timed out", "", "", "", "", "cancelled: the load was taken off"]
    status = [200, 200, 0, 200, 200, 200, 200, 0]
    return requests((100.0 + np.arange(8.0, dtype=np.float64)) * scale, np.full(8, 2.0) * scale, status, error)


def test_a_request_counts_where_it_ended() -> None:
    found = traffic(some(), start_seconds=100.0, duration_seconds=12.0, step_seconds=4.0, time_scale=1.0)
    assert found.answered_per_second.tolist() == [0.5, 0.75, 0.25]
    assert found.failed_per_second.tolist() == [0.0, 0.25, 0.0]
    assert found.latency_p50_seconds.tolist() == [2.0, 2.0, 2.0]
    assert found.tokens_per_second.tolist() == [64.0, 96.0, 32.0]


def test_where_none_ended_there_is_no_latency() -> None:
    found = traffic(some(), start_seconds=0.0, duration_seconds=200.0, step_seconds=50.0, time_scale=1.0)
    assert np.isnan(found.latency_p99_seconds).tolist() == [True, True, False, True]
    assert found.answered_per_second.tolist() == [0.0, 0.0, 6 / 50, 0.0]


def test_a_stretched_runs_requests_are_told_as_they_were() -> None:
    found = traffic(some(scale=20.0), start_seconds=2000.0, duration_seconds=240.0, step_seconds=80.0, time_scale=20.0)
    assert found.answered_per_second.tolist() == [0.5, 0.75, 0.25]
    assert found.latency_p50_seconds.tolist() == [2.0, 2.0, 2.0]
    assert tally(some(scale=20.0), time_scale=20.0).latency_p50_seconds == pytest.approx(2.0)


def test_what_was_cut_off_did_not_fail() -> None:
    counted = tally(some(), time_scale=1.0)
    assert (counted.total, counted.failed, counted.cut_off) == (7, 1, 1)
    assert tally(some(), time_scale=1.0, phase="ramp").total == 0
    assert errors(some()) == {"timed out": (1, 102.0)}


def test_an_answer_that_is_none_is_an_error_without_a_word() -> None:
    assert errors(replace(some(), status=np.full(8, 500), error=Labels.of([""] * 8))) == {"HTTP 500": (8, 100.0)}
