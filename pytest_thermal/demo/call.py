"""One request in the gateway's hands: what is known of it, and the two ways to give no answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NoReturn

from .chat import ChatRequest

_RECORDS_KEPT = 10_000


@dataclass(frozen=True, kw_only=True)
class ServedRequest:
    """A request as it was served, for tests. `status` is `None` when it got no answer."""

    method: str
    path: str
    status: int | None
    max_tokens: int | None
    stream: bool


class Counters:
    """What the gateway has done so far; written by its own thread, read by any."""

    def __init__(self) -> None:
        self.requests_received = 0
        self.requests_served = 0
        self.output_tokens_served = 0
        self.max_parallel_seen = 0
        self.served: deque[ServedRequest] = deque(maxlen=_RECORDS_KEPT)


@dataclass(kw_only=True)
class Call:
    """A request on its way through the gateway."""

    method: str
    path: str
    headers: Mapping[str, str]
    number: int
    """Counted from 1 over the gateway's life."""
    drop: Callable[[bool], None]
    """Closes the connection at once; with a reset where the argument is true."""
    parallel: int = 0
    """Chat requests in hand when this one came, itself included; 0 for any other request."""
    chat: ChatRequest | None = None
    status: int | None = None
    cleanup: ExitStack = field(default_factory=ExitStack)
    """Unwound when the request is done, whichever way it ends."""

    @property
    def is_chat(self) -> bool:
        """Whether something is to be generated."""
        return self.method == "POST" and self.path.endswith("/chat/completions")

    def record(self) -> ServedRequest:
        """The request as tests see it."""
        return ServedRequest(
            method=self.method,
            path=self.path,
            status=self.status,
            max_tokens=self.chat.max_tokens if self.chat else None,
            stream=self.chat.stream if self.chat else False,
        )

    async def hang(self) -> NoReturn:
        """Give no answer and keep the connection: lasts until the client goes or the gateway stops."""
        import asyncio  # noqa: PLC0415 - importing the demo stays cheap

        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    async def cut(self, *, reset: bool = False) -> NoReturn:
        """Give no more of an answer and close the connection."""
        self.drop(reset)
        await self.hang()
