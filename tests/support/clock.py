"""Clocks that stand in for a module's ``time``: what a test says of time, however busy the machine is."""

from __future__ import annotations

import time


class Leaping:
    """The machine's clock, and as far ahead of it as a test lets it leap."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def leap(self, seconds: float) -> None:
        self.ahead_seconds += seconds

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_seconds

    def perf_counter(self) -> float:
        return time.perf_counter() + self.ahead_seconds


class Standing:
    """A clock that stands still unless a test moves it; whoever sleeps moves it."""

    def __init__(self, now_seconds: float = 1000.0) -> None:
        self.now_seconds = now_seconds

    def at_least(self, seconds: float) -> None:
        self.now_seconds = max(self.now_seconds, seconds)

    def monotonic(self) -> float:
        return self.now_seconds

    def perf_counter(self) -> float:
        return self.now_seconds

    def sleep(self, seconds: float) -> None:
        self.now_seconds += seconds

    def time(self) -> float:
        return time.time()
