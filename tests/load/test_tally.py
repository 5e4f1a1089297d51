"""Figures of requests, and the line for a person."""

from __future__ import annotations

import pytest

from pytest_thermal.load.answers import CANCELLED, Answer
from pytest_thermal.load.tally import Tally, quantile


def answer(trouble: str = "", *, tokens: int = 5, ttft: float = 0.2, last: float = 1.0) -> Answer:
    return Answer(
        started_seconds=0.0,
        ttft_seconds=ttft,
        last_token_seconds=last,
        gaps_seconds=[0.1, 0.2, 0.2, 0.5],
        latency_seconds=1.1,
        trouble=trouble,
        prompt_tokens=10,
        completion_tokens=tokens,
    )


def took(tally: Tally, given: Answer, latency: float = 1.1) -> None:
    tally.took(given, latency_seconds=latency, ttft_seconds=given.ttft_seconds)


def test_what_came_of_requests_is_counted() -> None:
    tally = Tally()
    for latency in (1.0, 2.0, 3.0):
        took(tally, answer(), latency)
    took(tally, answer("429 Too Many Requests"))
    took(tally, answer("429 Too Many Requests"))
    took(tally, answer(CANCELLED))
    tally.issued.in_flight, tally.issued.items_inference = 4, 10
    status = tally.status(concurrency=8)
    assert {name: status[name] for name in ("requests", "ok", "failed", "cancelled", "in_flight")} == {
        "requests": 6,
        "ok": 3,
        "failed": 2,
        "cancelled": 1,
        "in_flight": 4,
    }
    assert status["errors"] == {"429 Too Many Requests": 2, "cancelled": 1}
    assert (status["prompt_tokens"], status["completion_tokens"]) == (60, 30)
    assert (status["latency_p50_seconds"], status["latency_p95_seconds"]) == (2.0, 3.0)
    assert status["ttft_p50_seconds"] == 0.2
    assert status["itl_p50_seconds"] == pytest.approx(0.2, rel=0.03)
    assert (status["itl_p99_seconds"], status["itl_max_seconds"]) == (0.5, 0.5)
    assert status["text"] == "4 in flight, 3 answered, 2 failed, mostly: 429 Too Many Requests"
    assert tally.mean_latency_seconds == 2.0


def test_before_the_first_answer_there_are_no_figures() -> None:
    status = Tally().status(concurrency=8)
    assert status["latency_p50_seconds"] is None
    assert status["text"] == "0 in flight, 0 answered, 0 failed"
    assert Tally().mean_latency_seconds is None


def test_what_is_cancelled_is_nobodys_fault() -> None:
    tally = Tally()
    took(tally, answer(CANCELLED))
    assert "mostly" not in tally.status(concurrency=1)["text"]


def test_many_kinds_of_errors_stay_few_lines() -> None:
    tally = Tally()
    for number in range(50):
        took(tally, answer(f"{'error ' * 30}{number}"))
        took(tally, answer(f"{number} error"))
    errors = tally.status(concurrency=1)["errors"]
    assert sum(errors.values()) == 100
    assert len(errors) <= 9
    assert all(len(kind) <= 60 for kind in errors)


def test_the_share_of_a_mixed_load_is_told() -> None:
    tally = Tally()
    tally.issued.items_inference, tally.issued.items_compute = 60, 40
    assert "60.0% of 100 items were requests" in tally.status(concurrency=1)["text"]


def test_what_the_open_loop_could_not_issue_is_told() -> None:
    tally = Tally()
    tally.issued.not_issued = 1234
    assert "1,234 due and not issued" in tally.status(concurrency=1)["text"]


def test_quantiles() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3.0], 0.95) == 3.0
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
