"""Opening connections: to the gateway, or through a proxy; with TLS, or without."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import time
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from pytest_thermal.transport.exchange import Fault
from pytest_thermal.transport.fast.errors import LineError, line_error
from pytest_thermal.transport.fast.line import HEAD_LIMIT_BYTES, Line
from pytest_thermal.transport.route import Route, is_address

RESOLVED_SECONDS = 30.0
"""How long an address is used before its name is looked up again: a thousand connections must not ask for each."""


class Dialer:
    """Opens connections that go one way. ``trust`` is for TLS, to the gateway or to the proxy."""

    def __init__(self, route: Route, *, trust: ssl.SSLContext | None, connect_seconds: float) -> None:
        self._route = route
        self._trust = trust
        self._connect_seconds = connect_seconds
        self._addresses: list[str] = []
        self._resolved_at = 0.0
        self._tunnels = route.proxy is not None and route.uses_tls
        if trust is not None:
            trust.set_alpn_protocols(["http/1.1"])

    @property
    def prefix(self) -> bytes:
        """What stands before the path in a request line: the gateway's origin, where a proxy reads it."""
        return self._route.origin.encode("ascii") if self._route.proxy is not None and not self._tunnels else b""

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Headers for a proxy that reads the requests."""
        return self._login() if self._route.proxy is not None and not self._tunnels else []

    async def open(self, connect_seconds: float | None = None) -> Line:
        """A connection that is ready for a request. Cancelled, it leaves none.

        ``connect_seconds`` in place of those that it was made with.

        Raises:
            LineError: There is none to be had, or not in time.
        """
        loop = asyncio.get_running_loop()
        made: list[Line | _Tunnel] = []
        try:
            return await self._open(loop, made, self._connect_seconds if connect_seconds is None else connect_seconds)
        except BaseException as error:
            for protocol in made:
                protocol.abort()
            if isinstance(error, asyncio.TimeoutError):
                raise LineError(Fault.CONNECT_TIMEOUT, "no connection in time", is_timeout=True) from None
            if isinstance(error, LineError) or not isinstance(error, Exception):
                raise
            raise line_error(error) from error

    async def _open(self, loop: asyncio.AbstractEventLoop, made: list[Line | _Tunnel], seconds: float) -> Line:
        line = Line(loop)
        made.append(line)
        if not self._tunnels:
            await asyncio.wait_for(self._reach(loop, line, seconds), seconds)
            return line
        tunnel = _Tunnel(loop)
        made.append(tunnel)
        transport = await asyncio.wait_for(self._reach(loop, tunnel, seconds), seconds)
        asked = f"CONNECT {_netloc(self._route)} HTTP/1.1\r\nHost: {_netloc(self._route)}\r\n"
        fields = "".join(f"{name}: {value}\r\n" for name, value in self._login())
        transport.write(f"{asked}{fields}\r\n".encode("ascii"))
        await asyncio.wait_for(tunnel.opened, seconds)
        if self._trust is None or transport.is_closing():
            raise LineError(Fault.TLS, "the connection ended before the handshake")
        upgrade = loop.start_tls(transport, line, self._trust, server_hostname=self._route.host)
        secured = await asyncio.wait_for(upgrade, seconds)
        if secured is None:
            raise LineError(Fault.TLS, "the connection ended during the handshake")
        line.connection_made(secured)
        return line

    async def _reach(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol, seconds: float
    ) -> asyncio.Transport:
        host, port = self._route.hop
        # To a proxy that is told CONNECT it is plain: what it is asked for is what has TLS.
        trust = None if self._tunnels else self._trust
        addresses = await self._resolve(loop, host, port)
        for left in range(len(addresses), 0, -1):
            try:
                # An address that does not answer must leave time for the next.
                patience = seconds / left if left > 1 else None
                connecting = loop.create_connection(
                    lambda: protocol,
                    addresses[-left],
                    port,
                    ssl=trust,
                    server_hostname=host if trust is not None else None,
                )
                transport, _ = await asyncio.wait_for(connecting, patience)
            except (OSError, asyncio.TimeoutError):
                if left == 1:
                    self._addresses = []
                    raise
            else:
                return transport
        raise LineError(Fault.RESOLVE, "the name has no address")

    async def _resolve(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[str]:
        if is_address(host):
            return [host]
        if not self._addresses or time.monotonic() - self._resolved_at > RESOLVED_SECONDS:
            found: list[Any] = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self._addresses = list(dict.fromkeys(address[0] for *_, address in found))
            self._resolved_at = time.monotonic()
        return self._addresses

    def _login(self) -> list[tuple[str, str]]:
        parts = urlsplit(self._route.proxy.url if self._route.proxy else "")
        if parts.username is None:
            return []
        told = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        return [("Proxy-Authorization", f"Basic {base64.b64encode(told).decode()}")]


class _Tunnel(asyncio.Protocol):
    """What a proxy says to CONNECT."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.opened: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._said = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._said += data
        head, end, _ = self._said.partition(b"\r\n\r\n")
        if self.opened.done() or (not end and len(head) < HEAD_LIMIT_BYTES):
            return
        version, _, status = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        if not end or not version.startswith("HTTP/1."):
            self._refuse(LineError(Fault.PROXY, "the proxy answers CONNECT with something that is no HTTP"))
        elif not status.startswith("2"):
            self._refuse(LineError(Fault.PROXY, status))
        else:
            self.opened.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._refuse(line_error(error) if error else LineError(Fault.CLOSED, "the proxy closed the connection"))

    def abort(self) -> None:
        self.opened.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _refuse(self, error: LineError) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()  # nobody may be waiting: then it is told by what follows


def _netloc(route: Route) -> str:
    return route.origin.partition("://")[2]
