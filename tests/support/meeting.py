"""Requests that a demo gateway has in hand at the same time, however far apart a busy machine sends them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from pytest_thermal.demo import DemoGateway
from pytest_thermal.demo.call import Call
from pytest_thermal.demo.wire import Answer


class Meeting:
    """The first chats of a gateway in `of` wait for each other; those that follow do not."""

    def __init__(self, gateway: DemoGateway) -> None:
        self._size = 1
        self._waiting: list[asyncio.Future[None]] = []
        behaviour = gateway._behaviour
        really = behaviour.on_request

        async def on_request(call: Call) -> Answer | None:
            if call.is_chat:
                await self._all_are_here()
            return await really(call)

        behaviour.on_request = on_request  # type: ignore[method-assign]

    @contextlib.contextmanager
    def of(self, size: int) -> Iterator[None]:
        self._size = size
        try:
            yield
        finally:
            self._size = 1

    async def _all_are_here(self) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        if len(self._waiting) >= self._size:
            for one in self._waiting:
                if not one.done():
                    one.set_result(None)
            self._waiting.clear()
            self._size = 1
        await mine
