"""The inference load itself: slots that ask one request after the other, or requests due at a rate."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from pytest_thermal.load.answers import Target
from pytest_thermal.load.engine import Engine
from pytest_thermal.load.ledger import Ledger
from pytest_thermal.load.orders import DomainOrders, InferenceOrders
from pytest_thermal.load.pacing import Backoff, Mixture
from pytest_thermal.load.profiles import Conversation, Dialect, body_of

END_SECONDS = 0.4
"""For what is in flight to be given up."""
SHORTEST_BURST_SECONDS = 0.2
LONGEST_BURST_SECONDS = 30.0

Burn = Callable[[float], Awaitable[str]]
"""Takes a compute burst of so many seconds; returns why there was none, or nothing."""


class Way:
    """One domain as the generator uses it."""

    def __init__(self, engine: Engine, *, model: str, name: str = "") -> None:
        self.engine = engine
        self.model = model
        self.name = name
        self.dialect = Dialect()

    @classmethod
    def to(cls, domain: DomainOrders, orders: InferenceOrders) -> Way:
        """To a domain; its model may still have to be asked for. Raises what `Engine` raises."""
        target = Target(
            base_url=domain.base_url,
            key=domain.key,
            connect_seconds=orders.connect_seconds,
            read_seconds=orders.read_seconds,
        )
        return cls(Engine(target, os.environ), model=domain.model or "", name=domain.name)


class Lane:
    """What a slot sends its requests with: a connection to a domain, and a conversation over it."""

    def __init__(self, way: Way, *, profile: str, slot: int) -> None:
        self.way = way
        self.connection = way.engine.connection()
        self.conversation = Conversation(profile, slot=slot)


class Generator:
    """Issues work items, or its share of them, until it is told to end; what becomes of them goes into ``ledger``.

    Compute bursts go to ``burn``; without it all items are requests.
    """

    def __init__(
        self, orders: InferenceOrders, *, ways: Sequence[Way], ledger: Ledger, burn: Burn | None = None
    ) -> None:
        self.phase = ""
        self.concurrency = orders.concurrency
        self._orders = orders
        self._ways = tuple(ways)
        self._ledger = ledger
        self._burn = burn
        self._mixture = Mixture(orders.inference_ratio, part=orders.share)
        self._backoff = Backoff()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = 0
        self._started = False
        self._ending = False

    def start(self, begin_seconds: float | None = None) -> None:
        """Begin, in the running loop; a schedule counts from ``begin_seconds`` of the monotonic clock, or from now."""
        self._started = True
        if self._orders.rate_per_second is None:
            self.set_concurrency(self.concurrency)
        else:
            begin = time.monotonic() if begin_seconds is None else begin_seconds
            self._run(self._open_loop(self._orders.rate_per_second, begin))

    def set_concurrency(self, slots: int) -> None:
        """How many slots there are from now on, with those of others; too many end with the request that they have."""
        self.concurrency = slots
        share = self._orders.share
        while self._started and self._slots < share.size(slots) and self._orders.rate_per_second is None:
            self._run(self._slot(share.number(self._slots)))
            self._slots += 1

    async def end(self) -> None:
        """Give up what is in flight; it is recorded as cancelled."""
        self._ending = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=END_SECONDS)
        self._ledger.close()

    # ---------------------------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._ledger.fault(error)

    def _lane(self, slot: int) -> Lane:
        return Lane(self._ways[slot % len(self._ways)], profile=self._orders.profile, slot=slot)

    async def _slot(self, index: int) -> None:
        lane = self._lane(index)
        try:
            while index < self.concurrency:
                if self._burn is None or self._mixture.next_is_request():
                    pause_seconds = await self._request(lane)
                else:
                    pause_seconds = await self._burst(self._burn)
                if self._ending:
                    return
                await asyncio.sleep(self._orders.interval_seconds + pause_seconds)
        finally:
            self._slots -= 1
            with contextlib.suppress(OSError):
                await lane.connection.close()

    async def _open_loop(self, rate_per_second: float, begin: float) -> None:
        share = self._orders.share
        most_in_flight = max(1, share.size(self._orders.most_in_flight))
        free: list[Lane] = []
        made = itertools.count()
        try:
            for number in itertools.count():
                due = begin + share.number(number) / rate_per_second
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                is_request = self._burn is None or self._mixture.next_is_request()
                if len(self._tasks) > most_in_flight:  # this task is one of them
                    self._ledger.issued.not_issued += 1
                elif is_request:
                    self._run(
                        self._due_request(free.pop() if free else self._lane(share.number(next(made))), free, due)
                    )
                elif self._burn is not None:
                    self._run(self._due_burst(self._burn))
        finally:
            for lane in free:
                await lane.connection.close()

    async def _due_request(self, lane: Lane, free: list[Lane], due: float) -> None:
        await self._request(lane, due_seconds=due)
        free.append(lane)

    async def _due_burst(self, burn: Burn) -> None:
        await self._burst(burn)

    async def _request(self, lane: Lane, *, due_seconds: float | None = None) -> float:
        """One request; returns how long to wait before the next, beside the interval."""
        orders, issued = self._orders, self._ledger.issued
        phase = self.phase
        body = body_of(
            lane.conversation.messages(),
            model=lane.way.model,
            max_tokens=orders.max_tokens,
            temperature=orders.temperature,
            stream=orders.stream,
            dialect=lane.way.dialect,
        )
        issued.items_inference += 1
        issued.in_flight += 1
        try:
            answer = await lane.connection.send(body)
        finally:
            issued.in_flight -= 1
        answer.domain = lane.way.name
        self._ledger.enter(answer, phase=phase, due_seconds=due_seconds)
        lane.conversation.took(answer.text, ok=answer.ok)
        if lane.way.dialect.learn(answer.status, answer.words):
            return 0.0
        slots = orders.share.size(self.concurrency)
        return self._backoff.after(ok=answer.ok, slots=slots, retry_after_seconds=answer.retry_after_seconds)

    async def _burst(self, burn: Burn) -> float:
        """One compute burst, about as long as a request; returns how long to wait after it."""
        mean_seconds = self._ledger.mean_latency_seconds or 0.0
        trouble = await burn(min(LONGEST_BURST_SECONDS, max(SHORTEST_BURST_SECONDS, mean_seconds)))
        if not trouble:
            self._ledger.issued.items_compute += 1
            return 0.0
        self._ledger.trouble(trouble)
        return SHORTEST_BURST_SECONDS
