"""uvicorn's protocol on a socket that is bound already: served until told to stop, in silence."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable
from functools import partial

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .gateway import SERVER_HEADERS, Gateway

_KEEP_ALIVE_SECONDS = 65
_BACKLOG = 512


class Connection:
    """A client's connection, for the application to close it under an answer."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def drop(self, reset: bool) -> None:
        """Close at once; with a reset, the client's system reports an error in place of an end."""
        sock = self._transport.get_extra_info("socket")
        if reset and sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


class QuietProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which neither logs nor signs with its own name."""

    def __init__(self, *, config: Config, server_state: ServerState, open_transports: set[asyncio.Transport]) -> None:
        super().__init__(config=config, server_state=server_state, app_state={})
        self._open_transports = open_transports
        self.logger = _silent_logger()
        self.access_log = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the application a handle on the connection."""
        super().connection_made(transport)
        self._open_transports.add(transport)
        self.app_state = {"connection": Connection(transport)}

    def connection_lost(self, exc: Exception | None) -> None:
        """The handle is of no use any more."""
        self._open_transports.discard(self.transport)
        super().connection_lost(exc)
        # Python 3.10 calls a TLS transport unclosed that its peer closed first.
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP at all never reaches the application, so its answer is signed here."""
        headers = {
            **SERVER_HEADERS,
            "content-type": "text/plain; charset=utf-8",
            "content-length": str(len(msg)),
            "connection": "close",
        }
        fields = [f"{name}: {value}" for name, value in headers.items()]
        lines = ["HTTP/1.1 400 Bad Request", *fields, "", msg]
        self.transport.write("\r\n".join(lines).encode("ascii"))
        self.transport.close()


class BannerProtocol(asyncio.Protocol):
    """A service that speaks first, and hangs up on whoever answers in HTTP."""

    def __init__(self, *, banner: bytes, open_transports: set[asyncio.Transport]) -> None:
        self._banner = banner
        self._open_transports = open_transports
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Greet."""
        self._transport = transport
        self._open_transports.add(transport)
        transport.write(self._banner)

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - whatever it is
        """Hang up."""
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Gone."""
        self._open_transports.discard(self._transport)


async def serve(
    gateway: Gateway,
    sock: socket.socket,
    *,
    tls: ssl.SSLContext | None,
    banner: bytes | None,
    on_ready: Callable[[asyncio.Event], None],
) -> None:
    """Serve until the event that `on_ready` gets is set; then drop every client and return."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, _context: None)
    open_transports: set[asyncio.Transport] = set()
    make_protocol = _protocol_maker(gateway, banner, open_transports)
    server = await loop.create_server(make_protocol, sock=sock, ssl=tls, backlog=_BACKLOG)

    async def close_port() -> None:
        # A server that closes while a connection is on its way from the kernel to its protocol forgets that
        # connection and leaves its client hanging. So: accept no more, let those arrive, then close.
        loop.remove_reader(sock)
        await _let_arrive()
        server.close()

    def hang_up() -> None:
        for transport in list(open_transports):
            transport.close()

    gateway.close_port, gateway.hang_up = close_port, hang_up
    stop = asyncio.Event()
    on_ready(stop)
    try:
        await stop.wait()
    finally:
        if server.is_serving():
            await close_port()
        for transport in list(open_transports):
            transport.abort()
        await _let_arrive()


async def _let_arrive() -> None:
    """The turns of the loop that a connection takes to reach its protocol, or a loss to be told to it."""
    for _ in range(4):
        await asyncio.sleep(0)


def _protocol_maker(
    gateway: Gateway, banner: bytes | None, open_transports: set[asyncio.Transport]
) -> Callable[[], asyncio.Protocol]:
    if banner is not None:
        return partial(BannerProtocol, banner=banner, open_transports=open_transports)
    config = Config(
        gateway,
        http=QuietProtocol,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        workers=1,
    )
    config.load()
    return partial(QuietProtocol, config=config, server_state=ServerState(), open_transports=open_transports)


def _silent_logger() -> logging.Logger:
    """A logger that is in no tree: nobody's handlers hear it, and uvicorn's own stay as the user set them."""
    logger = logging.Logger("pytest-thermal-demo", level=logging.CRITICAL + 1)  # noqa: LOG001 - on purpose
    logger.addHandler(logging.NullHandler())
    return logger
