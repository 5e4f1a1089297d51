"""How figures that come by the thousand are spread, of about the last half minute, in little room."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable

TURN_SECONDS = 15.0
"""What is told is of this turn and the one before it."""
_LEAST_SECONDS = 1e-5
_STEPS_PER_E = 25
"""Each step is 4 % more than the one before: a quantile is right within 2 %."""
STEPS = 500


class Counted:
    """Durations by the step that they fall into, to be added to a `Spread` elsewhere."""

    def __init__(self, steps: Iterable[tuple[int, int]] = (), *, most_seconds: float = 0.0) -> None:
        self.steps: Counter[int] = Counter(dict(steps))
        self.most_seconds = most_seconds

    def add(self, values_seconds: Iterable[float]) -> None:
        """Count these."""
        for value in values_seconds:
            self.steps[_step(value)] += 1
            self.most_seconds = max(self.most_seconds, value)


class Spread:
    """Durations, counted by their order of magnitude."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turned_at = clock()
        self._now, self._before = _Turn(), _Turn()

    def add(self, values_seconds: Iterable[float]) -> None:
        """Count these."""
        self._turn()
        for value in values_seconds:
            self._now.add(value)

    def add_counted(self, counted: Counted) -> None:
        """Count what was counted elsewhere."""
        self._turn()
        now = self._now
        for step, count in counted.steps.items():
            now.counts[step] += count
            now.total += count
        now.most = max(now.most, counted.most_seconds)

    def quantile(self, share: float) -> float | None:
        """The value that about this share of them do not exceed; None of nothing."""
        self._turn()
        total = self._now.total + self._before.total
        if not total:
            return None
        left = max(1, math.ceil(share * total))
        for step in range(STEPS):
            left -= self._now.counts[step] + self._before.counts[step]
            if left <= 0:
                return min(_LEAST_SECONDS * math.exp((step + 0.5) / _STEPS_PER_E), self.most or 0.0)
        return self.most

    @property
    def most(self) -> float | None:
        """The greatest; None of nothing."""
        self._turn()
        return max(self._now.most, self._before.most) if self._now.total + self._before.total else None

    def _turn(self) -> None:
        spent = self._clock() - self._turned_at
        if spent >= TURN_SECONDS:
            self._before = self._now if spent < 2 * TURN_SECONDS else _Turn()
            self._now = _Turn()
            self._turned_at = self._clock()


class _Turn:
    def __init__(self) -> None:
        self.counts = [0] * STEPS
        self.total = 0
        self.most = 0.0

    def add(self, value: float) -> None:
        self.counts[_step(value)] += 1
        self.total += 1
        self.most = max(self.most, value)


def _step(value: float) -> int:
    return min(int(math.log(value / _LEAST_SECONDS) * _STEPS_PER_E), STEPS - 1) if value > _LEAST_SECONDS else 0
