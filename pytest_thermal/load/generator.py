"""The inference load itself: slots that ask one request after the other, or requests due at a rate."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pytest_thermal.load.books import Books
from pytest_thermal.load.bursts import Bursts
from pytest_thermal.load.engine import Engine
from pytest_thermal.load.orders import InferenceOrders
from pytest_thermal.load.pacing import Backoff, Mixture
from pytest_thermal.load.profiles import Conversation, Dialect, body_of
from pytest_thermal.load.tally import Tally
from pytest_thermal.recording import RequestRow

END_SECONDS = 0.4
"""For what is in flight to be given up."""
SHORTEST_BURST_SECONDS = 0.2
LONGEST_BURST_SECONDS = 30.0


class Way:
    """One domain as the generator uses it."""

    def __init__(self, engine: Engine, *, model: str) -> None:
        self.engine = engine
        self.model = model
        self.dialect = Dialect()


class Lane:
    """What a slot sends its requests with: a connection to a domain, and a conversation over it."""

    def __init__(self, way: Way, *, profile: str, slot: int) -> None:
        self.way = way
        self.connection = way.engine.connection()
        self.conversation = Conversation(profile, slot=slot)


class Generator:
    """Issues work items until it is told to end; finished requests go to ``record``, a few at a time."""

    def __init__(
        self, orders: InferenceOrders, *, ways: Sequence[Way], record: Callable[[Sequence[RequestRow]], None]
    ) -> None:
        self.tally = Tally()
        self.phase = ""
        self.concurrency = orders.concurrency
        self._orders = orders
        self._ways = tuple(ways)
        self._books = Books(self.tally, clock=orders.clock, record=record)
        self._mixture = Mixture(orders.inference_ratio)
        self._backoff = Backoff()
        self._bursts = Bursts(orders.burner, orders.environ) if orders.burner else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = 0
        self._started = False
        self._ending = False

    def start(self) -> None:
        """Begin, in the running loop."""
        self._started = True
        if self._orders.rate_per_second is None:
            self.set_concurrency(self.concurrency)
        else:
            self._run(self._open_loop(self._orders.rate_per_second))

    def set_concurrency(self, slots: int) -> None:
        """How many slots there are from now on; those too many end with the request that they have."""
        self.concurrency = slots
        while self._started and self._slots < slots and self._orders.rate_per_second is None:
            self._run(self._slot(self._slots))
            self._slots += 1

    async def end(self) -> None:
        """Give up what is in flight; it is recorded as cancelled."""
        self._ending = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=END_SECONDS)
        self._books.close()
        if self._bursts is not None:
            await self._bursts.close()

    # ---------------------------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.tally.fault(error)

    def _lane(self, slot: int) -> Lane:
        return Lane(self._ways[slot % len(self._ways)], profile=self._orders.profile, slot=slot)

    async def _slot(self, index: int) -> None:
        lane = self._lane(index)
        try:
            while index < self.concurrency:
                if self._mixture.next_is_request() or self._bursts is None:
                    pause_seconds = await self._request(lane)
                else:
                    pause_seconds = await self._burst(self._bursts)
                if self._ending:
                    return
                await asyncio.sleep(self._orders.interval_seconds + pause_seconds)
        finally:
            self._slots -= 1
            with contextlib.suppress(OSError):
                await lane.connection.close()

    async def _open_loop(self, rate_per_second: float) -> None:
        begin = time.monotonic()
        free: list[Lane] = []
        made = itertools.count()
        try:
            for number in itertools.count():
                due = begin + number / rate_per_second
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                is_request = self._mixture.next_is_request() or self._bursts is None
                if len(self._tasks) > self._orders.most_in_flight:  # this task is one of them
                    self.tally.not_issued += 1
                elif is_request:
                    self._run(self._due_request(free.pop() if free else self._lane(next(made)), free, due))
                elif self._bursts is not None:
                    self._run(self._due_burst(self._bursts))
        finally:
            for lane in free:
                await lane.connection.close()

    async def _due_request(self, lane: Lane, free: list[Lane], due: float) -> None:
        await self._request(lane, due_seconds=due)
        free.append(lane)

    async def _due_burst(self, bursts: Bursts) -> None:
        await self._burst(bursts)

    async def _request(self, lane: Lane, *, due_seconds: float | None = None) -> float:
        """One request; returns how long to wait before the next, beside the interval."""
        orders, tally = self._orders, self.tally
        phase = self.phase
        body = body_of(
            lane.conversation.messages(),
            model=lane.way.model,
            max_tokens=orders.max_tokens,
            temperature=orders.temperature,
            stream=orders.stream,
            dialect=lane.way.dialect,
        )
        tally.items_inference += 1
        tally.in_flight += 1
        try:
            answer = await lane.connection.send(body)
        finally:
            tally.in_flight -= 1
        self._books.enter(answer, phase=phase, due_seconds=due_seconds)
        lane.conversation.took(answer.text, ok=answer.ok)
        if lane.way.dialect.learn(answer.status, answer.detail):
            return 0.0
        return self._backoff.after(ok=answer.ok, slots=self.concurrency, retry_after_seconds=answer.retry_after_seconds)

    async def _burst(self, bursts: Bursts) -> float:
        """One compute burst, about as long as a request; returns how long to wait after it."""
        mean_seconds = self.tally.mean_latency_seconds or 0.0
        trouble = await bursts.burn(min(LONGEST_BURST_SECONDS, max(SHORTEST_BURST_SECONDS, mean_seconds)))
        if not trouble:
            self.tally.items_compute += 1
            return 0.0
        self.tally.trouble(trouble)
        return SHORTEST_BURST_SECONDS
