"""A kept connection that is opened anew when it has to be."""

from __future__ import annotations

import asyncio

from pytest_thermal.transport.fast.dial import Dialer
from pytest_thermal.transport.fast.errors import LineError
from pytest_thermal.transport.fast.line import Line, Receiver

CLOSE_SECONDS = 1.0


class Connection:
    """Sends requests one after the other, over one connection as long as the peer keeps it."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._line: Line | None = None

    @property
    def line(self) -> Line | None:
        """What the request in flight goes over."""
        return self._line

    async def exchange(
        self,
        request: bytes,
        receiver: Receiver,
        *,
        read_seconds: float,
        deadline: float = float("inf"),
        is_head: bool = False,
    ) -> float:
        """`Line.exchange`, over the kept connection or a new one.

        A kept one may have been closed by the peer just when the request left: that says nothing of the gateway, so it
        goes once more, over a new connection. What a new one does is not repeated.

        Raises:
            LineError: What the peer did, or did not do.
        """
        line = self._line
        if line is not None and line.usable:
            try:
                return await line.exchange(
                    request, receiver, read_seconds=read_seconds, deadline=deadline, is_head=is_head
                )
            except LineError as error:
                if not error.is_stale:
                    raise
        self._line = line = await self._dialer.open()
        return await line.exchange(request, receiver, read_seconds=read_seconds, deadline=deadline, is_head=is_head)

    async def close(self) -> None:
        """Close it; nothing is left of it when this returns."""
        line, self._line = self._line, None
        if line is not None:
            line.abort()
            await asyncio.wait([line.closed], timeout=CLOSE_SECONDS)
