"""Among how many processes an inference load is shared, and what of it is each one's."""

from __future__ import annotations

import math
from dataclasses import dataclass

PER_PROCESS = 256
"""Requests in parallel for which one process is taken. As streams of 50 tokens a second they need about half of a core,
and `engine_health.MOST_CPU_SHARE` of one is the most with which times are true."""
LEAST_CORES = 4
"""With fewer, what shares a load takes the cores from whatever else is measured here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """What one of several processes has of a load: every ``of``-th slot, and every ``of``-th request of a schedule.

    So slots and requests bear the numbers that they would bear in one process, and go to the same domains.
    """

    index: int = 0
    of: int = 1

    def size(self, total: int) -> int:
        """How many of so many are its own."""
        return len(range(self.index, total, self.of))

    def number(self, own: int) -> int:
        """The number among all of what it has as its ``own``-th, from 0."""
        return self.index + own * self.of


def processes_for(parallel: int, *, cores: float, asked: int | None = None) -> int:
    """How many processes send ``parallel`` requests at a time, on so many cores; ``asked`` is a person's word.

    One core is left to whatever else runs; nothing is shared without being asked for below ``LEAST_CORES``.
    """
    if asked is not None:
        return max(1, min(asked, parallel))
    if cores < LEAST_CORES:
        return 1
    return max(1, min(math.ceil(parallel / PER_PROCESS), int(cores) - 1))
