"""Slots, rates and mixtures, with engines and burners of the test's own."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_thermal.load.answers import CANCELLED, Answer
from pytest_thermal.load.books import Books
from pytest_thermal.load.generator import Generator, Way
from pytest_thermal.load.orders import InferenceOrders
from pytest_thermal.load.share import Share
from pytest_thermal.load.tally import Tally
from pytest_thermal.recording import RequestRow, RunClock
from tests.load.helpers import PATIENCE_SECONDS

Reply = Callable[[Mapping[str, Any]], Answer]


def good(_: Mapping[str, Any]) -> Answer:
    return Answer(started_seconds=time.monotonic(), status=200, completion_tokens=3, text="words")


def bad(_: Mapping[str, Any]) -> Answer:
    return Answer(started_seconds=time.monotonic(), status=503, trouble="503 Service Unavailable")


class FakeConnection:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def send(self, body: Mapping[str, Any]) -> Answer:
        engine = self._engine
        engine.in_flight += 1
        engine.most_in_flight = max(engine.most_in_flight, engine.in_flight)
        engine.bodies.append(body)
        try:
            answer = engine.reply(body)
            await asyncio.sleep(engine.seconds)
            answer.latency_seconds = engine.latency_seconds or time.monotonic() - answer.started_seconds
        except asyncio.CancelledError:
            answer.trouble = CANCELLED
        finally:
            engine.in_flight -= 1
        return answer

    async def close(self) -> None:
        self._engine.closed += 1


class FakeEngine:
    def __init__(self, reply: Reply = good, *, seconds: float = 0.002, latency_seconds: float = 0.0) -> None:
        self.reply, self.seconds = reply, seconds
        self.latency_seconds = latency_seconds
        """What it tells of the time that it took; 0 for what was measured."""
        self.in_flight = self.most_in_flight = self.made = self.closed = 0
        self.bodies: list[Mapping[str, Any]] = []

    def connection(self) -> FakeConnection:
        self.made += 1
        return FakeConnection(self)


class FakeBursts:
    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble
        self.seconds: list[float] = []

    async def burn(self, seconds: float) -> str:
        self.seconds.append(seconds)
        await asyncio.sleep(0.001)
        return self.trouble


def orders(
    *,
    concurrency: int = 4,
    interval_seconds: float = 0.0,
    rate_per_second: float | None = None,
    most_in_flight: int = 100,
    inference_ratio: float = 1.0,
) -> InferenceOrders:
    return InferenceOrders(
        domains=(),
        connect_seconds=1.0,
        read_seconds=1.0,
        max_tokens=5,
        temperature=0.0,
        stream=True,
        profile="chat",
        concurrency=concurrency,
        interval_seconds=interval_seconds,
        rate_per_second=rate_per_second,
        most_in_flight=most_in_flight,
        inference_ratio=inference_ratio,
        burner=(),
        run=None,
        clock=RunClock.start(),
        limit_seconds=60.0,
    )


class Run:
    """A generator that ran until a condition came true."""

    def __init__(
        self,
        told: InferenceOrders,
        *engines: FakeEngine,
        until: Callable[[Run], object],
        bursts: FakeBursts | None = None,
    ) -> None:
        self.rows: list[RequestRow] = []
        ways = [Way(engine, model=f"model-{index}") for index, engine in enumerate(engines)]  # type: ignore[arg-type]
        self.tally = Tally()
        books = Books(self.tally, clock=told.clock, record=self.rows.extend)
        self.generator = Generator(told, ways=ways, ledger=books, burn=bursts.burn if bursts else None)
        self.generator.phase = "ramp"
        asyncio.run(self._run(until))

    @property
    def items(self) -> int:
        return self.tally.issued.items_inference + self.tally.issued.items_compute

    async def _run(self, until: Callable[[Run], object]) -> None:
        self.generator.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not until(self):
            assert time.monotonic() < deadline, "waited in vain"
            await asyncio.sleep(0.005)
        await self.generator.end()


def test_as_many_are_in_flight_as_there_are_slots() -> None:
    engine = FakeEngine()
    run = Run(orders(concurrency=7), engine, until=lambda run: len(run.rows) > 70)
    assert (engine.made, engine.most_in_flight) == (7, 7)
    assert len(engine.bodies) == len(run.rows)
    assert engine.closed == 7
    assert run.tally.issued.in_flight == 0


def test_what_is_in_flight_at_the_end_is_recorded_as_cancelled() -> None:
    run = Run(orders(concurrency=5), FakeEngine(seconds=60.0), until=lambda run: run.tally.issued.in_flight == 5)
    assert [row.error for row in run.rows] == [CANCELLED] * 5
    assert run.tally.cancelled == 5


def test_rows_carry_the_phase_that_they_began_in() -> None:
    def until(run: Run) -> bool:
        # The first four are in flight when it changes.
        run.generator.phase = "steady" if run.tally.issued.items_inference else "ramp"
        return len(run.rows) > 12

    run = Run(orders(concurrency=4), FakeEngine(seconds=0.1), until=until)
    assert [row.phase for row in run.rows[:4]] == ["ramp"] * 4
    assert {row.phase for row in run.rows[4:]} == {"steady"}
    assert all(row.status == 200 and row.completion_tokens == 3 for row in run.rows if not row.error)


def test_rows_are_stamped_by_the_runs_clock() -> None:
    told = orders(concurrency=1)
    begin = told.clock.now()
    run = Run(told, FakeEngine(), until=lambda run: len(run.rows) > 2)
    assert begin <= run.rows[0].start_seconds <= run.rows[1].start_seconds <= told.clock.now()


def test_slots_are_dealt_out_to_domains_in_turn() -> None:
    east, west = FakeEngine(), FakeEngine()
    Run(orders(concurrency=5), east, west, until=lambda run: len(run.rows) > 20)
    assert (east.made, west.made) == (3, 2)
    assert {body["model"] for body in east.bodies} == {"model-0"}
    assert {body["model"] for body in west.bodies} == {"model-1"}


def test_a_slot_waits_after_an_answer() -> None:
    engine = FakeEngine(seconds=0.0)
    begin = time.monotonic()
    run = Run(orders(concurrency=1, interval_seconds=0.05), engine, until=lambda run: len(run.rows) >= 5)
    assert len(run.rows) <= 1 + (time.monotonic() - begin) / 0.05


def test_slots_come_and_go_as_told() -> None:
    engine = FakeEngine(seconds=0.01)
    seen: list[int] = []

    def until(run: Run) -> bool:
        seen.append(engine.in_flight)
        wanted = 2 if len(run.rows) < 20 else 6 if len(run.rows) < 100 else 3
        run.generator.set_concurrency(wanted)
        return len(run.rows) > 100 and engine.in_flight == 3 and engine.closed == 3

    run = Run(orders(concurrency=2), engine, until=until)
    assert engine.most_in_flight == 6
    assert run.generator.concurrency == 3


def test_an_error_storm_neither_spins_nor_ends_the_load() -> None:
    engine = FakeEngine(bad, seconds=0.0)
    begin = time.monotonic()
    run = Run(orders(concurrency=4), engine, until=lambda run: len(run.rows) >= 12)
    # 4 at once, 4 after 0.1 s, 4 after another 0.2 s.
    assert time.monotonic() - begin >= 0.3
    assert {row.error for row in run.rows} == {"503 Service Unavailable"}
    assert run.tally.failed == len(run.rows)


def test_after_a_storm_it_goes_on_as_before() -> None:
    left = iter(range(6))
    engine = FakeEngine(lambda body: good(body) if next(left, None) is None else bad(body), seconds=0.001)
    run = Run(orders(concurrency=2), engine, until=lambda run: run.tally.ok >= 50)
    assert run.tally.failed == 6


def test_a_slot_that_breaks_is_told_and_not_silent() -> None:
    def broken(_: Mapping[str, Any]) -> Answer:
        raise RuntimeError("a bug")

    run = Run(orders(concurrency=1), FakeEngine(broken), until=lambda run: not run.generator._tasks)
    errors = run.tally.status(concurrency=1)["errors"]
    assert list(errors) == ["a fault of the load generator itself: RuntimeError: a bug"]


def test_the_open_loop_keeps_its_rate() -> None:
    told = orders(rate_per_second=200.0, most_in_flight=10_000)
    run = Run(told, FakeEngine(seconds=0.05), until=lambda run: len(run.rows) >= 60)
    starts = [row.start_seconds for row in run.rows]
    gaps = [after - before for before, after in itertools.pairwise(sorted(starts))]
    assert gaps == pytest.approx([0.005] * len(gaps), abs=1e-4)


def test_in_the_open_loop_latency_counts_from_when_it_was_due() -> None:
    def held_up(_: Mapping[str, Any]) -> Answer:
        time.sleep(0.03)  # the whole loop: what was due meanwhile leaves late
        return good(_)

    run = Run(orders(rate_per_second=100.0), FakeEngine(held_up), until=lambda run: len(run.rows) >= 20)
    latencies = [row.latency_seconds for row in run.rows if row.latency_seconds is not None]
    # Each falls another 20 ms behind.
    assert latencies[18] > latencies[2] + 0.2


def test_what_the_open_loop_cannot_issue_is_counted() -> None:
    engine = FakeEngine(seconds=60.0)
    run = Run(
        orders(rate_per_second=500.0, most_in_flight=10),
        engine,
        until=lambda run: run.tally.issued.not_issued > 20,
    )
    assert engine.most_in_flight == 10
    assert len(run.rows) == 10


@pytest.mark.parametrize("share", [0.1, 0.5, 0.6, 0.75])
def test_a_mixed_load_reaches_its_share(share: float) -> None:
    bursts = FakeBursts()
    run = Run(
        orders(concurrency=8, inference_ratio=share), FakeEngine(), until=lambda run: run.items >= 200, bursts=bursts
    )
    tally = run.tally
    assert tally.issued.items_inference / run.items == pytest.approx(share, abs=0.02)
    assert len(bursts.seconds) >= tally.issued.items_compute > 0


def test_only_bursts_and_only_requests() -> None:
    bursts, engine = FakeBursts(), FakeEngine()
    run = Run(orders(inference_ratio=0.0), engine, until=lambda run: run.items >= 50, bursts=bursts)
    assert engine.bodies == []
    run = Run(orders(inference_ratio=1.0), engine, until=lambda run: run.items >= 50)
    assert run.tally.issued.items_compute == 0


def test_a_burst_is_about_as_long_as_a_request() -> None:
    bursts = FakeBursts()
    run = Run(
        orders(concurrency=4, inference_ratio=0.5),
        FakeEngine(seconds=0.01, latency_seconds=0.3),
        until=lambda run: run.tally.ok >= 8,
        bursts=bursts,
    )
    assert bursts.seconds[0] == 0.2
    assert bursts.seconds[-1] == pytest.approx(run.tally.mean_latency_seconds) == pytest.approx(0.3)


def test_a_burst_that_could_not_be_is_no_item() -> None:
    run = Run(
        orders(concurrency=2, inference_ratio=0.5),
        FakeEngine(),
        until=lambda run: run.tally.ok >= 3,
        bursts=FakeBursts("no compute burst: torch is gone"),
    )
    assert run.tally.issued.items_compute == 0
    assert "no compute burst: torch is gone" in run.tally.status(concurrency=2)["errors"]


def test_what_a_gateway_teaches_is_heeded() -> None:
    def picky(body: Mapping[str, Any]) -> Answer:
        if "max_tokens" in body:
            return Answer(
                started_seconds=time.monotonic(),
                status=400,
                trouble="400 Bad Request",
                words="use max_completion_tokens",
            )
        return good(body)

    engine = FakeEngine(picky)
    run = Run(orders(concurrency=1), engine, until=lambda run: run.tally.ok >= 5)
    assert run.tally.failed == 1
    assert "max_completion_tokens" in engine.bodies[-1]


class Shared:
    """Generators in one process, each with its share of one load, until a condition came true."""

    def __init__(self, told: InferenceOrders, *engines: FakeEngine, of: int, until: Callable[[Shared], object]) -> None:
        self.rows: list[list[RequestRow]] = [[] for _ in range(of)]
        self.generators = []
        for index, rows in enumerate(self.rows):
            ways = [Way(engine, model=f"model-{number}") for number, engine in enumerate(engines)]  # type: ignore[arg-type]
            books = Books(Tally(), clock=told.clock, record=rows.extend)
            own = replace(told, share=Share(index=index, of=of))
            self.generators.append(Generator(own, ways=ways, ledger=books))
        self.begin_seconds = 0.0
        asyncio.run(self._run(until))

    async def _run(self, until: Callable[[Shared], object]) -> None:
        self.begin_seconds = time.monotonic() + 0.02
        for generator in self.generators:
            generator.start(self.begin_seconds)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not until(self):
            assert time.monotonic() < deadline, "waited in vain"
            await asyncio.sleep(0.005)
        for generator in self.generators:
            await generator.end()


def test_a_schedule_that_is_shared_is_the_schedule() -> None:
    told = orders(rate_per_second=300.0, most_in_flight=10_000)
    engine = FakeEngine(seconds=0.01)
    shared = Shared(told, engine, of=3, until=lambda shared: all(len(rows) >= 20 for rows in shared.rows))
    for index, rows in enumerate(shared.rows):
        # The third of all that are due, from the very first on.
        due = [shared.begin_seconds + (index + 3 * number) / 300.0 for number in range(20)]
        starts = sorted(row.start_seconds for row in rows)[:20]
        assert starts == pytest.approx([told.clock.at(at) for at in due], abs=1e-6)


def test_what_several_may_have_in_flight_is_what_one_may() -> None:
    engine = FakeEngine(seconds=60.0)
    shared = Shared(
        orders(rate_per_second=500.0, most_in_flight=10),
        engine,
        of=3,
        until=lambda shared: all(one._ledger.issued.not_issued > 5 for one in shared.generators),
    )
    assert engine.most_in_flight == 10
    assert sorted(len(rows) for rows in shared.rows) == [3, 3, 4]


def test_slots_that_are_shared_go_where_they_would_go_and_come_and_go_together() -> None:
    east, west = FakeEngine(seconds=0.01), FakeEngine(seconds=0.01)
    wanted = 7

    def until(shared: Shared) -> bool:
        nonlocal wanted
        if wanted == 7 and all(len(rows) > 10 for rows in shared.rows):
            assert (east.made, west.made) == (4, 3)
            wanted = 3
        for generator in shared.generators:
            generator.set_concurrency(wanted)
        return wanted == 3 and (east.closed, west.closed) == (2, 2)

    Shared(orders(concurrency=7), east, west, of=2, until=until)
    assert (east.made, west.made) == (4, 3)
