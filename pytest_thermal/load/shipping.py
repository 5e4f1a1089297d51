"""The ledger of a process that sends a share of the requests: whatever is entered goes to the one that counts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import astuple

from pytest_thermal.load.answers import Answer
from pytest_thermal.load.later import Later
from pytest_thermal.load.ledger import Issued
from pytest_thermal.load.pulse import Beats
from pytest_thermal.load.spread import Counted
from pytest_thermal.load.tally import fault_words
from pytest_thermal.load.wire import Beat, Burst, Finished, News, to_line

WAIT_SECONDS = 0.05
"""What is lost with a process that is killed. Shorter would be dear for the one that reads a hundred of them."""
AT_ONCE = 64
"""Requests in a line; a few with long answers are a millisecond of work, which other answers wait for."""


class Shipping:
    """`load.ledger.Ledger`, and all else that the other process hears of this one."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.issued = Issued()
        self._send = send
        self._finished: Later[tuple[Answer, str, float | None]] = Later(
            self._ship, wait_seconds=WAIT_SECONDS, at_once=AT_ONCE
        )
        self._told = 0
        self._ok = 0
        self._latency_sum = 0.0
        self._burst_numbers = itertools.count()
        self._bursts: dict[int, asyncio.Future[str]] = {}

    @property
    def mean_latency_seconds(self) -> float | None:
        """`Ledger.mean_latency_seconds`, of this process."""
        return self._latency_sum / self._ok if self._ok else None

    def enter(self, answer: Answer, *, phase: str, due_seconds: float | None) -> None:
        """`Ledger.enter`."""
        self._finished.add((answer, phase, due_seconds))

    def trouble(self, kind: str) -> None:
        """`Ledger.trouble`."""
        self._tell(troubles=[kind.encode("utf-8", "replace").decode()])

    def fault(self, error: BaseException) -> None:
        """`Ledger.fault`."""
        self.trouble(fault_words(error))

    def close(self) -> None:
        """Send what waits."""
        self._finished.close()

    def ready(self) -> None:
        """It can begin."""
        self._tell(ready=True)

    def beat(self, pulse: Beats) -> None:
        """It is alive, and so it is."""
        self._tell(beat=Beat(pulse.observed_seconds, pulse.lag_p99_seconds, pulse.cpu_share))

    def last_words(self) -> None:
        """All has been told."""
        self._tell(all_told=self._told)

    async def burn(self, seconds: float) -> str:
        """`load.generator.Burn`, by the other process: bursts of all processes are one fire."""
        number = next(self._burst_numbers)
        self._bursts[number] = burnt = asyncio.get_running_loop().create_future()
        self._tell(burst=Burst(number, seconds))
        try:
            trouble: str = await burnt
            return trouble
        finally:
            del self._bursts[number]

    def burnt(self, number: int, trouble: str) -> None:
        """The answer to a burst."""
        waiting = self._bursts.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(trouble)

    def _ship(self, some: Sequence[tuple[Answer, str, float | None]]) -> None:
        gaps = Counted()
        finished = []
        for answer, phase, due_seconds in some:
            finished.append(Finished.of(answer, phase=phase, due_seconds=due_seconds))
            if answer.ok:
                if answer.gaps_seconds:
                    gaps.add(answer.gaps_seconds)
                self._ok += 1
                self._latency_sum += answer.latency_seconds
        self._told += len(finished)
        self._tell(finished=finished, gap_steps=list(gaps.steps.items()), gap_most_seconds=gaps.most_seconds)

    def _tell(self, **words: object) -> None:
        self._send(to_line(News(issued=astuple(self.issued), **words)))  # type: ignore[arg-type]  # as News has them
