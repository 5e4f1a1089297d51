"""What finished requests come to, counted and written down between the requests that are under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_thermal.load.answers import Answer
from pytest_thermal.load.later import Later
from pytest_thermal.load.ledger import Issued
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
        self._finished: Later[tuple[Answer, str, float | None]] = Later(
            self._write, wait_seconds=WAIT_SECONDS, at_once=AT_ONCE
        )

    @property
    def issued(self) -> Issued:
        """`Ledger.issued`."""
        return self._tally.issued

    @property
    def mean_latency_seconds(self) -> float | None:
        """`Ledger.mean_latency_seconds`."""
        return self._tally.mean_latency_seconds

    def enter(self, answer: Answer, *, phase: str, due_seconds: float | None) -> None:
        """`Ledger.enter`."""
        self._finished.add((answer, phase, due_seconds))

    def trouble(self, kind: str) -> None:
        """`Ledger.trouble`."""
        self._tally.trouble(kind)

    def fault(self, error: BaseException) -> None:
        """`Ledger.fault`."""
        self._tally.fault(error)

    def close(self) -> None:
        """Write down what waits."""
        self._finished.close()

    def _write(self, some: Sequence[tuple[Answer, str, float | None]]) -> None:
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
            domain=answer.domain,
            limit=answer.limit,
        )
