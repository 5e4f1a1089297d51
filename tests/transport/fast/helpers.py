"""One exchange over a connection of the fast kind, as a test sees it."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from pytest_thermal.transport.exchange import Fault
from pytest_thermal.transport.fast.connection import Connection
from pytest_thermal.transport.fast.dial import Dialer
from pytest_thermal.transport.fast.errors import LineError
from pytest_thermal.transport.fast.line import Head
from pytest_thermal.transport.fast.request import head_of
from pytest_thermal.transport.route import route_to
from tests.support.patience import PATIENCE_SECONDS

KEY = "sk-test-0123456789abcdefghijklmnop"
T = TypeVar("T")


@dataclass
class Taken:
    """A receiver, and what became of it."""

    status: int | None = None
    reason: str = ""
    head_of: Head | None = None
    chunks: list[bytes] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    ended: float | None = None
    fault: Fault | None = None
    text: str = ""
    shown: str = ""

    @property
    def content(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def whole(self) -> tuple[int | None, bytes, Fault | None]:
        return self.status, self.content, self.fault

    def head(self, head: Head, at_seconds: float) -> None:
        self.status, self.reason, self.head_of = head.status, head.reason, head
        self.at.append(at_seconds)

    def body(self, chunk: bytes, at_seconds: float) -> None:
        self.chunks.append(chunk)
        self.at.append(at_seconds)


def connection_to(
    url: str,
    environ: dict[str, str] | None = None,
    *,
    trust: ssl.SSLContext | None = None,
    connect_seconds: float = PATIENCE_SECONDS,
) -> Connection:
    return Connection(Dialer(route_to(url, environ or {}), trust=trust, connect_seconds=connect_seconds))


async def asked(
    connection: Connection,
    *,
    method: str = "GET",
    target: bytes = b"/v1/models",
    read_seconds: float = PATIENCE_SECONDS,
    total_seconds: float = 2 * PATIENCE_SECONDS,
    fields: Sequence[tuple[str, str]] = (),
) -> Taken:
    """One request; what failed is in what was taken."""
    taken = Taken()
    request = head_of(method, target, [("Host", "test"), ("Authorization", f"Bearer {KEY}"), *fields]) + b"\r\n"
    try:
        taken.ended = await connection.exchange(
            request,
            taken,
            read_seconds=read_seconds,
            deadline=time.monotonic() + total_seconds,
            is_head=method == "HEAD",
        )
    except LineError as error:
        taken.fault, taken.text, taken.shown = error.fault, str(error), repr(error)
    assert KEY not in taken.text + taken.shown
    return taken


def answers(connection: Connection, times: int = 1, **settings: Any) -> list[Taken]:
    """So many requests, one after the other, over one connection."""

    async def ask_all() -> list[Taken]:
        try:
            return [await asked(connection, **settings) for _ in range(times)]
        finally:
            await connection.close()

    return run(ask_all())


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, by a name that the loop's fixture replaces."""
    return asyncio.run(work)


def on_uvloop(work: Coroutine[Any, Any, T]) -> T:
    """As `uvloop.run`, which itself calls `asyncio.run` on newer Pythons."""
    loop = pytest.importorskip("uvloop").new_event_loop()
    try:
        return loop.run_until_complete(work)  # type: ignore[no-any-return]
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
