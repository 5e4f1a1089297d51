"""When samples are due: absolute times on a grid, never "so long after the last one"."""

from __future__ import annotations

import math
from dataclasses import dataclass

LATEST_SHARE = 0.75
"""A slot may still be sampled this share of a period late. Later, it would crowd the next one and is left out."""

SLOW_SHARE = 0.5
"""A source whose reading takes more of a period than this is sampled less often."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Slots at ``start + n × period`` on the monotonic clock, in seconds."""

    start_seconds: float
    period_seconds: float

    def due(self, slot: int) -> float:
        """When that slot is due."""
        return self.start_seconds + slot * self.period_seconds

    def last_due(self, now_seconds: float) -> int:
        """The latest slot that is due by now; -1 before the first."""
        slot = math.floor((now_seconds - self.start_seconds) / self.period_seconds)
        # Division rounds: what is due at exactly this moment must count as due.
        while self.due(slot + 1) <= now_seconds:
            slot += 1
        while self.due(slot) > now_seconds:
            slot -= 1
        return max(slot, -1)

    def startable(self, now_seconds: float, *, after: int) -> int | None:
        """The slot that a sample begun now belongs to; None where it is for none and the next must be waited for.

        Slots up to ``after`` are done. Slots missed are left out, not made up for.
        """
        slot = self.last_due(now_seconds)
        if slot <= after or now_seconds - self.due(slot) > LATEST_SHARE * self.period_seconds:
            return None
        return slot

    def next_due(self, now_seconds: float, *, after: int) -> float:
        """When to look again: the next slot after now that is not done."""
        return self.due(max(self.last_due(now_seconds) + 1, after + 1))
