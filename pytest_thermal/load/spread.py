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
_MOST_SECONDS = _LEAST_SECONDS * math.exp((STEPS - 1) / _STEPS_PER_E)
"""More than an hour; the last step holds what is longer."""
_FIRST = -math.log(_LEAST_SECONDS) * _STEPS_PER_E


class Counted:
    """Durations by the step that they fall into."""

    def __init__(self, steps: Iterable[tuple[int, int]] = (), *, most_seconds: float = 0.0) -> None:
        self.steps: Counter[int] = Counter(dict(steps))
        self.most_seconds = most_seconds

    def add(self, values_seconds: Iterable[float]) -> None:
        """Count these: all at once, since each token of a stream comes by here."""
        values = list(values_seconds)
        most = max(values, default=0.0)
        self.most_seconds = max(self.most_seconds, most)
        if most > _MOST_SECONDS:
            values = [min(value, _MOST_SECONDS) for value in values]
        log = math.log
        self.steps.update(
            [int(log(value) * _STEPS_PER_E + _FIRST) if value > _LEAST_SECONDS else 0 for value in values]
        )

    def add_counted(self, other: Counted) -> None:
        """Count what was counted elsewhere."""
        self.steps.update(other.steps)
        self.most_seconds = max(self.most_seconds, other.most_seconds)


class Spread:
    """Durations, counted by their order of magnitude."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turned_at = clock()
        self._now, self._before = Counted(), Counted()

    def add(self, values_seconds: Iterable[float]) -> None:
        """Count these."""
        self._turn()
        self._now.add(values_seconds)

    def add_counted(self, counted: Counted) -> None:
        """Count what was counted elsewhere."""
        self._turn()
        self._now.add_counted(counted)

    def quantile(self, share: float) -> float | None:
        """The value that about this share of them do not exceed; None of nothing."""
        self._turn()
        steps = self._now.steps + self._before.steps
        left = max(1, math.ceil(share * steps.total()))
        for step in sorted(steps):
            left -= steps[step]
            if left <= 0:
                return min(_LEAST_SECONDS * math.exp((step + 0.5) / _STEPS_PER_E), self.most or 0.0)
        return None

    @property
    def most(self) -> float | None:
        """The greatest; None of nothing."""
        self._turn()
        has_any = self._now.steps or self._before.steps
        return max(self._now.most_seconds, self._before.most_seconds) if has_any else None

    def _turn(self) -> None:
        spent = self._clock() - self._turned_at
        if spent >= TURN_SECONDS:
            self._before = self._now if spent < 2 * TURN_SECONDS else Counted()
            self._now = Counted()
            self._turned_at = self._clock()
