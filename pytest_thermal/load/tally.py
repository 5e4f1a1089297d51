"""Counts what the inference load does, and says it in one line."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from pytest_thermal.access.reading import cut
from pytest_thermal.load.answers import CANCELLED, Answer
from pytest_thermal.load.engine_health import Vitals
from pytest_thermal.load.ledger import Issued
from pytest_thermal.load.pulse import Beats
from pytest_thermal.load.spread import Counted, Spread

WINDOW_SECONDS = 30.0
_MOST_IN_WINDOW = 4096
_MOST_KINDS = 8
_KIND_CHARACTERS = 60


class Tally:
    """What was asked and what came of it."""

    def __init__(self) -> None:
        self.issued = Issued()
        self.ok = 0
        self.failed = 0
        self.cancelled = 0
        self._errors: Counter[str] = Counter()
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._latency_sum = 0.0
        self._window: deque[tuple[float, float, float | None]] = deque(maxlen=_MOST_IN_WINDOW)
        self._gaps = Spread()
        self._late = Spread()

    @property
    def mean_latency_seconds(self) -> float | None:
        """Of all good answers so far; None before the first."""
        return self._latency_sum / self.ok if self.ok else None

    def took(self, answer: Answer, *, latency_seconds: float, ttft_seconds: float | None) -> None:
        """Count a finished request."""
        self._prompt_tokens += answer.prompt_tokens or 0
        self._completion_tokens += answer.completion_tokens or 0
        if answer.ok:
            self.ok += 1
            self._latency_sum += latency_seconds
            self._window.append((time.monotonic(), latency_seconds, ttft_seconds))
            if answer.gaps_seconds:
                self._gaps.add(answer.gaps_seconds)
            return
        if answer.trouble == CANCELLED:
            self.cancelled += 1
        else:
            self.failed += 1
        self.trouble(answer.trouble)

    def took_gaps(self, gaps: Counted) -> None:
        """Count gaps between tokens that were counted elsewhere, of good answers that are told without them."""
        self._gaps.add_counted(gaps)

    def left_late(self, seconds: float) -> None:
        """A request of the open loop left so long after it was due."""
        self._late.add((max(0.0, seconds),))

    def vitals(self, pulse: Beats) -> Vitals:
        """How the engine is, for `client_limit`."""
        latencies = [latency if ttft is None else ttft for _, latency, ttft in self._window]
        late = self._late.quantile(0.99)
        return Vitals(
            observed_seconds=pulse.observed_seconds,
            loop_lag_p99_seconds=pulse.lag_p99_seconds,
            cpu_share=pulse.cpu_share,
            measured_seconds=quantile(latencies, 0.5),
            due=0 if late is None else self.issued.items_inference + self.issued.items_compute + self.issued.not_issued,
            not_issued=self.issued.not_issued,
            late_p99_seconds=late,
        )

    def trouble(self, kind: str) -> None:
        """Count something that went wrong, by its kind."""
        kind = cut(kind, _KIND_CHARACTERS)
        known = kind in self._errors or len(self._errors) < _MOST_KINDS
        self._errors[kind if known else "other"] += 1

    def fault(self, error: BaseException) -> None:
        """Count a fault of the load generator itself."""
        self.trouble(fault_words(error))

    def status(self, *, concurrency: int) -> dict[str, Any]:
        """For `LoadStatus`."""
        since = time.monotonic() - WINDOW_SECONDS
        while self._window and self._window[0][0] < since:
            self._window.popleft()
        latencies = [latency for _, latency, _ in self._window]
        return {
            "text": self._text(),
            "requests": self.ok + self.failed + self.cancelled,
            "ok": self.ok,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "not_issued": self.issued.not_issued,
            "in_flight": self.issued.in_flight,
            "concurrency": concurrency,
            "errors": dict(self._errors.most_common()),
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
            "latency_p50_seconds": quantile(latencies, 0.5),
            "latency_p95_seconds": quantile(latencies, 0.95),
            "ttft_p50_seconds": quantile([ttft for _, _, ttft in self._window if ttft is not None], 0.5),
            "itl_p50_seconds": self._gaps.quantile(0.5),
            "itl_p99_seconds": self._gaps.quantile(0.99),
            "itl_max_seconds": self._gaps.most,
            "items_inference": self.issued.items_inference,
            "items_compute": self.issued.items_compute,
        }

    def _text(self) -> str:
        parts = [f"{self.issued.in_flight} in flight", f"{self.ok:,} answered", f"{self.failed:,} failed"]
        if self.issued.not_issued:
            parts.append(f"{self.issued.not_issued:,} due and not issued")
        items = self.issued.items_inference + self.issued.items_compute
        if self.issued.items_compute:
            parts.append(f"{self.issued.items_inference / items:.1%} of {items:,} items were requests")
        failures = [(kind, count) for kind, count in self._errors.most_common(2) if kind != CANCELLED]
        if failures:
            parts.append(f"mostly: {failures[0][0]}")
        return ", ".join(parts)


def fault_words(error: BaseException) -> str:
    """A fault of the load generator itself, as it is counted."""
    return f"a fault of the load generator itself: {type(error).__name__}: {error}"


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value that a share of them do not exceed; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
