"""Which slots of a lane have been answered, which were left out, and which are overdue. Knows no processes."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_thermal.recording.schedule import Grid

LONGEST_GAP_SLOTS = 10_000
"""Slots told one by one when many were missed at once (a machine that slept): beyond that, the gap says it."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A slot with its reading: what was missed before it, and why."""

    missed: range
    why: str
    """Empty where the process that answers was not there yet."""


class SlotBook:
    """Accounts for every slot of one lane, so that none is forgotten and none is told twice."""

    def __init__(self, grid: Grid, *, first: int, deadline_seconds: float) -> None:
        self.grid = grid
        self.next = first
        """The first slot that nothing is known of yet."""
        self.answered_count = 0
        self.missed_count = 0
        self.late_count = 0
        """Answers that came after their slot had been given up."""
        self._deadline_seconds = deadline_seconds
        self._last_end_seconds: float | None = None
        self._anew = False

    def begin_anew(self) -> None:
        """The process that answers is another one now."""
        self._last_end_seconds = None
        self._anew = True

    def answered(self, slot: int, *, ended_seconds: float) -> Answered | None:
        """A reading came; None where its slot had been given up already."""
        last_end_seconds, self._last_end_seconds = self._last_end_seconds, ended_seconds
        if slot < self.next:
            self.late_count += 1
            return None
        skipped = slot - self.next
        why = ""
        if skipped:
            if last_end_seconds is not None and last_end_seconds > self.grid.due(self.next):
                why = "the reading before took longer than the period"
            elif not self._anew:
                why = "the sampler was not run in time: the machine was overloaded, or it slept"
        missed = range(self.next, slot)[:LONGEST_GAP_SLOTS]
        self._anew = False
        self.missed_count += skipped
        self.answered_count += 1
        self.next = slot + 1
        return Answered(missed=missed, why=why)

    def overdue(self, now_seconds: float, *, answering: bool) -> range:
        """Give up slots without an answer: after the deadline, or at once while nobody is there to answer."""
        patience_seconds = self._deadline_seconds if answering else self.grid.period_seconds
        first, self.next = self.next, max(self.next, self.grid.last_due(now_seconds - patience_seconds) + 1)
        self.missed_count += self.next - first
        return range(first, self.next)[:LONGEST_GAP_SLOTS]

    def next_overdue(self, *, answering: bool) -> float:
        """When the next slot is given up."""
        return self.grid.due(self.next) + (self._deadline_seconds if answering else self.grid.period_seconds)
