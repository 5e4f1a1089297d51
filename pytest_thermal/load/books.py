"""What finished requests come to, counted and written down between the requests that are under way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from pytest_thermal.load.answers import Answer
from pytest_thermal.load.tally import Tally
from pytest_thermal.recording import RequestRow, RunClock

WAIT_SECONDS = 0.01
"""What is lost with a load that is killed."""
AT_ONCE = 32
"""Rows that share a ``write()``; answers that arrive meanwhile wait for no more than that, half a millisecond."""


class Books:
    """Takes answers, and does the rest a little later: a row a request costs as much as the request itself."""

    def __init__(self, tally: Tally, *, clock: RunClock, record: Callable[[Sequence[RequestRow]], None]) -> None:
        self._tally = tally
        self._clock = clock
        self._record = record
        self._finished: deque[tuple[Answer, str, float | None]] = deque()
        self._due: asyncio.TimerHandle | asyncio.Handle | None = None

    def enter(self, answer: Answer, *, phase: str, due_seconds: float | None) -> None:
        """A request has its answer. ``due_seconds``, of the monotonic clock, is when it should have left."""
        self._finished.append((answer, phase, due_seconds))
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(WAIT_SECONDS, self._some)

    def close(self) -> None:
        """Write down what waits."""
        if self._due is not None:
            self._due.cancel()
        while self._finished:
            self._write()

    def _some(self) -> None:
        self._write()
        self._due = asyncio.get_running_loop().call_soon(self._some) if self._finished else None

    def _write(self) -> None:
        some = [self._finished.popleft() for _ in range(min(AT_ONCE, len(self._finished)))]
        try:
            self._record([self._row(*one) for one in some])
        except Exception as error:  # noqa: BLE001 - told with the others' troubles; the rows after these go on
            self._tally.fault(error)

    def _row(self, answer: Answer, phase: str, due_seconds: float | None) -> RequestRow:
        begin = answer.started_seconds if due_seconds is None else due_seconds
        # In the open loop a request that could only leave late is slow for whoever waits for it.
        late_seconds = answer.started_seconds - begin
        if due_seconds is not None:
            self._tally.left_late(late_seconds)
        latency_seconds = answer.latency_seconds + late_seconds
        ttft_seconds = None if answer.ttft_seconds is None else answer.ttft_seconds + late_seconds
        self._tally.took(answer, latency_seconds=latency_seconds, ttft_seconds=ttft_seconds)
        return RequestRow(
            start_seconds=self._clock.at(begin),
            ttft_seconds=ttft_seconds,
            latency_seconds=latency_seconds,
            status=answer.status,
            error=answer.error,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            phase=phase,
        )
