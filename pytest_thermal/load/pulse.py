"""The event loop's own pulse: how late it is, and what it costs."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol

BEAT_SECONDS = 0.05
WINDOW_SECONDS = 10.0
WINDOW_BEATS = round(WINDOW_SECONDS / BEAT_SECONDS)


class Beats(Protocol):
    """How an event loop is."""

    @property
    def observed_seconds(self) -> float:
        """How much time the figures are of."""

    @property
    def lag_p99_seconds(self) -> float | None:
        """How late it came, 99 of 100 times at most; None before the first beat."""

    @property
    def cpu_share(self) -> float | None:
        """CPU time of its thread, as a share of one core."""


class Pulse:
    """Beats in the loop that it watches; figures are of the last ten seconds."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=WINDOW_BEATS)
        self._used: deque[tuple[float, float]] = deque(maxlen=WINDOW_BEATS + 1)

    async def beat(self) -> None:
        """Until cancelled."""
        due = time.monotonic()
        self._used.append((due, time.thread_time()))
        while True:
            due += BEAT_SECONDS
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            self._late(now - due)
            self._used.append((now, time.thread_time()))
            due = max(due, now - BEAT_SECONDS)  # beats that were missed are not made up for

    def _late(self, seconds: float) -> None:
        """A beat came so late. Those that it kept from coming count too, each as late as it would have been.

        Else a loop that stood still for three seconds of ten were late once in seventy times, and its 99th percentile
        good: what was in flight meanwhile waited for us all the same.
        """
        missed = min(int(max(0.0, seconds) / BEAT_SECONDS), WINDOW_BEATS)
        self._lags.extend(max(0.0, seconds - number * BEAT_SECONDS) for number in range(missed + 1))

    @property
    def observed_seconds(self) -> float:
        """How much time the figures are of."""
        return self._used[-1][0] - self._used[0][0] if self._used else 0.0

    @property
    def lag_p99_seconds(self) -> float | None:
        """How late the loop came, 99 of 100 times at most; None before the first beat."""
        return sorted(self._lags)[int(0.99 * (len(self._lags) - 1))] if self._lags else None

    @property
    def cpu_share(self) -> float | None:
        """CPU time of this thread, as a share of one core."""
        wall = self.observed_seconds
        return (self._used[-1][1] - self._used[0][1]) / wall if wall > 0 else None
