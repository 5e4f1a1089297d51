"""One clock for everything in a run: unix time that a step of the system's clock does not touch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RunClock:
    """Unix time, anchored once and carried on by the monotonic clock, which all processes of a boot share.

    Whatever sets the system's clock during a run, samples, requests and phases stay in step with each other.
    """

    unix_seconds: float
    monotonic_seconds: float

    @classmethod
    def start(cls) -> RunClock:
        """Anchor a clock now."""
        return cls(unix_seconds=time.time(), monotonic_seconds=time.monotonic())

    def now(self) -> float:
        """Unix seconds by this clock."""
        return self.at(time.monotonic())

    def at(self, monotonic_seconds: float) -> float:
        """Unix seconds of a moment of the monotonic clock."""
        return self.unix_seconds + (monotonic_seconds - self.monotonic_seconds)


class ClockWatch:
    """Notices that the system's clock was set: its distance from the run's clock changed."""

    def __init__(
        self,
        clock: RunClock,
        *,
        tolerance_seconds: float = 0.5,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._tolerance_seconds = tolerance_seconds
        self._wall = wall
        self._monotonic = monotonic
        self.offset_seconds = 0.0
        """System clock minus run clock, as last noted."""

    def step(self) -> float | None:
        """Seconds by which the system's clock was set since the last call; None where it was not."""
        before = self._monotonic()
        wall = self._wall()
        after = self._monotonic()
        if after - before > self._tolerance_seconds / 2:
            return None  # we were not run in between: no way to tell
        offset = wall - self._clock.at((before + after) / 2)
        step = offset - self.offset_seconds
        if abs(step) < self._tolerance_seconds:
            return None
        self.offset_seconds = offset
        return step
