"""What one process tells another of its requests: it comes to the same as if they had been one."""

from __future__ import annotations

import asyncio
import random

import pytest

from pytest_thermal.load.answers import CANCELLED, Answer
from pytest_thermal.load.books import Books
from pytest_thermal.load.ledger import Issued
from pytest_thermal.load.pulse import Pulse
from pytest_thermal.load.shipping import AT_ONCE, Shipping
from pytest_thermal.load.spread import Counted, Spread
from pytest_thermal.load.tally import Tally
from pytest_thermal.load.wire import News, from_line, to_line
from pytest_thermal.recording import RequestRow, RunClock

CLOCK = RunClock(unix_seconds=1000.0, monotonic_seconds=0.0)
NONE = (0, 0, 0, 0)


def answers(many: int) -> list[Answer]:
    dice = random.Random(7)
    found = [
        Answer(
            started_seconds=dice.uniform(0, 100),
            ttft_seconds=dice.uniform(0, 1),
            latency_seconds=dice.uniform(1, 2),
            gaps_seconds=[dice.expovariate(50) for _ in range(20)],
            status=200,
            prompt_tokens=dice.randrange(100),
            completion_tokens=21,
            text="words, which stay where they are",
        )
        for _ in range(many)
    ]
    return [
        *found,
        Answer(started_seconds=3.5, latency_seconds=0.1, status=429, trouble="429 Too", detail="“\ud800, \n\t\x00”"),
        Answer(started_seconds=4.5, latency_seconds=0.2, trouble=CANCELLED, detail="so", gaps_seconds=[9.0]),
        Answer(started_seconds=5.5, latency_seconds=0.3, status=200),
    ]


def test_what_is_shipped_comes_to_the_same_as_what_is_kept() -> None:
    given = answers(2 * AT_ONCE + 5)
    lines: list[bytes] = []
    kept_rows: list[RequestRow] = []
    told_rows: list[RequestRow] = []
    kept, told = Tally(), Tally()

    async def work() -> None:
        shipping = Shipping(lines.append)
        books = Books(kept, clock=CLOCK, record=kept_rows.extend)
        for number, one in enumerate(given):
            due = one.started_seconds - 0.25 if number % 2 else None
            for ledger in (shipping, books):
                ledger.enter(one, phase="steady", due_seconds=due)
        assert lines == []
        for ledger in (shipping, books):
            ledger.close()
        shipping.last_words()
        assert shipping.mean_latency_seconds == pytest.approx(
            sum(one.latency_seconds for one in given if one.ok) / sum(one.ok for one in given)
        )
        books = Books(told, clock=CLOCK, record=told_rows.extend)
        for news in map(from_line, lines):
            for finished in news.finished:
                books.enter(finished.answer, phase=finished.phase, due_seconds=finished.due_seconds)
            told.took_gaps(news.gaps)
        books.close()

    asyncio.run(work())
    assert [len(from_line(line).finished) for line in lines] == [AT_ONCE, AT_ONCE, 8, 0]
    assert from_line(lines[-1]).all_told == len(given)
    assert [row for row in told_rows if row.status != 429] == [row for row in kept_rows if row.status != 429]
    refused = next(row for row in told_rows if row.status == 429)
    assert refused.error == "429 Too: “?, \n\t\x00”"
    assert told.status(concurrency=1) == kept.status(concurrency=1)
    assert told.vitals(Pulse()) == kept.vitals(Pulse())


def test_rows_leave_by_themselves_a_little_later() -> None:
    lines: list[bytes] = []

    async def work() -> None:
        shipping = Shipping(lines.append)
        shipping.issued.items_inference = 3
        shipping.enter(answers(0)[0], phase="ramp", due_seconds=None)
        while not lines:  # noqa: ASYNC110 - what is tested knows of no event
            await asyncio.sleep(0.005)

    asyncio.run(work())
    news = from_line(lines[0])
    assert (news.sent, news.finished[0].phase) == (Issued(items_inference=3), "ramp")


def test_bursts_are_asked_for_and_answered_each_for_itself() -> None:
    lines: list[bytes] = []

    async def work() -> list[str]:
        shipping = Shipping(lines.append)
        bursts = [asyncio.create_task(shipping.burn(seconds)) for seconds in (0.5, 1.5)]
        await asyncio.sleep(0)
        assert len(lines) == 2
        numbers = {news.burst.seconds: news.burst.number for news in map(from_line, lines) if news.burst}
        shipping.burnt(numbers[1.5], "no")
        shipping.burnt(numbers[0.5], "")
        shipping.burnt(99, "nobody asked")
        return list(await asyncio.gather(*bursts))

    assert asyncio.run(work()) == ["", "no"]


@pytest.mark.parametrize(
    "line, words",
    [
        (b"", "line: Invalid JSON"),
        (b"Warning: something was imported\n", "line: Invalid JSON"),
        (b"{}", "issued: Field required"),
        (b'{"issued":[0,0,0]}', "issued.3: Field required"),
        (b'{"issued":[0,0,-1,0]}', "issued.2: Input should be greater"),
        (b'{"issued":[0,0,0,0],"more":1}', "more: Unexpected"),
        (b'{"issued":[0,0,0,0],"gap_steps":[[99999,1]]}', "gap_steps.0.0: Input should be less"),
        (
            b'{"issued":[0,0,0,0],"finished":[[1.0,null,"long",200,"","",1,1,"steady",null]]}',
            "finished.0.2: Input",
        ),
        (
            b'{"issued":[0,0,0,0],"finished":[[1.0,null,NaN,200,"","",1,1,"steady",null]]}',
            "finished.0.2: Input",
        ),
        (b'{"issued":[0,0,0,0],"finished":[[1.0,null,1.0,200,"","",1,1]]}', "finished.0.8: Field required"),
    ],
)
def test_what_is_no_news_is_told_from_it(line: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        from_line(line)


def test_a_line_is_one_line() -> None:
    line = to_line(News(issued=NONE, troubles=["one\ntwo"]))
    assert line.count(b"\n") == 1
    assert from_line(line).troubles == ["one\ntwo"]


def test_counts_of_several_are_those_of_one() -> None:
    dice = random.Random(5)
    values = [dice.expovariate(30) for _ in range(3000)]
    one, many = Spread(), Spread()
    one.add(values)
    for begin in range(3):
        counted = Counted()
        counted.add(values[begin::3])
        many.add_counted(Counted(counted.steps.items(), most_seconds=counted.most_seconds))
    for share in (0.01, 0.5, 0.99, 1.0):
        assert many.quantile(share) == one.quantile(share)
    assert many.most == one.most == max(values)


def test_what_several_sent_is_the_sum() -> None:
    assert Issued.total([Issued(1, 2, 3, 4), Issued(10, 20, 30, 40)]) == Issued(11, 22, 33, 44)
    assert Issued.total([Issued(1, 2, 3, 4)]) == Issued(1, 2, 3, 4)
