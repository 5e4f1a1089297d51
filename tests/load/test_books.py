"""Finished requests: counted and written down a little later, and all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pytest_thermal.load.answers import Answer
from pytest_thermal.load.books import AT_ONCE, Books
from pytest_thermal.load.tally import Tally
from pytest_thermal.recording import RequestRow, RunClock

CLOCK = RunClock(unix_seconds=1000.0, monotonic_seconds=0.0)


def answer(started_seconds: float) -> Answer:
    return Answer(started_seconds=started_seconds, latency_seconds=0.5, ttft_seconds=0.25, status=200)


def written(many: int, *, wait: bool) -> tuple[Tally, list[Sequence[RequestRow]]]:
    tally, written = Tally(), list[Sequence[RequestRow]]()

    async def work() -> None:
        books = Books(tally, clock=CLOCK, record=written.append)
        for number in range(many):
            books.enter(answer(float(number)), phase="steady", due_seconds=None)
        assert written == []
        while wait and sum(map(len, written)) < many:  # noqa: ASYNC110 - what is tested knows of no event
            await asyncio.sleep(0.005)
        books.close()
        books.close()

    asyncio.run(work())
    return tally, written


def test_all_are_written_in_their_order_a_few_at_a_time() -> None:
    for wait in (True, False):
        tally, some = written(2 * AT_ONCE + 5, wait=wait)
        assert [row.start_seconds for rows in some for row in rows] == [1000.0 + n for n in range(2 * AT_ONCE + 5)]
        assert [len(rows) for rows in some] == [AT_ONCE, AT_ONCE, 5]
        assert tally.ok == 2 * AT_ONCE + 5


def test_a_request_that_left_late_is_slow_for_whoever_waited() -> None:
    rows: list[RequestRow] = []

    async def work() -> None:
        books = Books(Tally(), clock=CLOCK, record=rows.extend)
        books.enter(answer(10.0), phase="steady", due_seconds=9.0)
        books.close()

    asyncio.run(work())
    assert (rows[0].start_seconds, rows[0].latency_seconds, rows[0].ttft_seconds) == (1009.0, 1.5, 1.25)


def test_rows_that_cannot_be_written_are_told_and_take_no_others_along() -> None:
    tally, rows = Tally(), list[RequestRow]()

    def record(some: Sequence[RequestRow]) -> None:
        if some[0].start_seconds == 1000.0:
            raise RuntimeError("no such thing")
        rows.extend(some)

    async def work() -> None:
        books = Books(tally, clock=CLOCK, record=record)
        for number in range(2 * AT_ONCE):
            books.enter(answer(float(number)), phase="steady", due_seconds=None)
        while not rows:  # noqa: ASYNC110 - what is tested knows of no event
            await asyncio.sleep(0.005)

    asyncio.run(work())
    assert len(rows) == AT_ONCE
    told = tally.status(concurrency=1)
    assert told["errors"] == {"a fault of the load generator itself: RuntimeError: no …": 1}
