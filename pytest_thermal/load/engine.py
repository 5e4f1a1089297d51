"""The seam of the load generator: one request in, one answer out."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Protocol

from pytest_thermal.load.answers import Answer, Target
from pytest_thermal.transport import Route, fast, route_to, tls_context
from pytest_thermal.transport.fast.loops import loop_name


class Connection(Protocol):
    """Sends requests, one after the other."""

    async def send(self, body: Mapping[str, Any]) -> Answer:
        """POST a chat completion; whatever the network or the peer does is in the answer.

        A cancelled one answers too, as `CANCELLED`: whoever cancels has to see to it that nothing follows.
        """

    async def first_listed_model(self) -> str | None:
        """The first model of the gateway's list; None where there is none to be had."""

    async def close(self) -> None:
        """Close it."""


class Connections(Protocol):
    """Makes connections."""

    def make(self) -> Connection:
        """A connection of its own: for one request at a time."""


class Engine:
    """Makes connections to one target, which share what is costly: trust, which is read once.

    Raises what `transport.async_client` raises: a proxy or certificates that the environment names wrongly.
    """

    def __init__(self, target: Target, environ: Mapping[str, str]) -> None:
        route = route_to(target.base_url, environ)
        proxy_uses_tls = route.proxy is not None and route.proxy.scheme == "https"
        trust = tls_context(environ) if route.uses_tls or proxy_uses_tls else None
        self.slow_because = fast.missing() or fast.cannot_take(route)
        """Why it is httpx that sends, which costs many times as much; empty if it is not."""
        self._connections = _httpx(target, route, trust) if self.slow_because else _fast(target, route, trust)

    @property
    def name(self) -> str:
        """What sends: ``httptools on uvloop``."""
        return f"{'httpx' if self.slow_because else 'httptools'} on {loop_name()}"

    def connection(self) -> Connection:
        """A connection of its own: for one request at a time."""
        return self._connections.make()

    async def first_listed_model(self) -> str | None:
        """The first model of the gateway's list; None where there is none to be had."""
        connection = self.connection()
        try:
            return await connection.first_listed_model()
        finally:
            await connection.close()


def _fast(target: Target, route: Route, trust: ssl.SSLContext | None) -> Connections:
    from pytest_thermal.load.fast_engine import FastConnections  # noqa: PLC0415 - needs what may be missing

    return FastConnections(target, route, trust)


def _httpx(target: Target, route: Route, trust: ssl.SSLContext | None) -> Connections:
    from pytest_thermal.load.httpx_engine import HttpxConnections  # noqa: PLC0415 - one of two

    return HttpxConnections(target, route, trust)
