"""The same connections for httpx: `httpx.AsyncClient(transport=FastTransport(environ))`."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

import httpx

from pytest_thermal.transport.exchange import Fault
from pytest_thermal.transport.fast import cannot_take
from pytest_thermal.transport.fast.dial import Dialer
from pytest_thermal.transport.fast.errors import LineError
from pytest_thermal.transport.fast.line import Head, Line
from pytest_thermal.transport.fast.request import head_of
from pytest_thermal.transport.route import Route, route_to
from pytest_thermal.transport.tls import tls_context

if TYPE_CHECKING:
    from typing_extensions import Self

CONNECT_SECONDS = 5.0
"""Where the client has no timeout for connections."""
MOST_UNREAD_BYTES = 1024 * 1024
"""Of an answer that nobody reads; then the peer has to wait."""
FOREVER = float("inf")


class FastTransport(httpx.AsyncBaseTransport):
    """Routes and trust are those of ``environ``. With ``keep_alive=False`` a connection ends with its answer."""

    def __init__(self, environ: Mapping[str, str], *, keep_alive: bool = True) -> None:
        self._environ = environ
        self._keep_alive = keep_alive
        self._ways: dict[str, _Way] = {}
        self._trust: ssl.SSLContext | None = None

    async def __aenter__(self) -> Self:
        return self

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; the body of the answer is still to be read. Raises httpx's own errors."""
        timeouts = request.extensions.get("timeout", {})
        read_seconds, connect_seconds = timeouts.get("read"), timeouts.get("connect")
        try:
            way = self._way(request.url)
            content = await _whole(request, way)
            for is_first in (True, False):
                line, is_kept = await way.line(FOREVER if connect_seconds is None else connect_seconds)
                receiver = _Answer(line)
                receiver.begin(
                    content,
                    read_seconds=FOREVER if read_seconds is None else read_seconds,
                    is_head=request.method == "HEAD",
                )
                try:
                    head = await receiver.headed
                except LineError as error:
                    if not (error.is_stale and is_kept and is_first):
                        raise
                except BaseException:
                    await receiver.stop()
                    raise
                else:
                    break
        except LineError as error:
            raise _as_httpx(error, request) from error
        return httpx.Response(
            head.status,
            headers=head.fields,
            stream=_Body(receiver, request, way if self._keep_alive else None),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": head.reason.encode("latin-1")},
        )

    async def aclose(self) -> None:
        """Close what is kept."""
        for way in self._ways.values():
            await way.close()

    def _way(self, url: httpx.URL) -> _Way:
        route = route_to(str(url.copy_with(raw_path=b"/")), self._environ)
        way = self._ways.get(route.origin)
        if way is None:
            if url.scheme not in ("http", "https"):
                raise httpx.UnsupportedProtocol(f"no request can be sent to {url.scheme}://")
            why_not = cannot_take(route)
            if why_not:
                raise httpx.UnsupportedProtocol(f"stock httpx is needed for {why_not}")
            if self._trust is None and (route.uses_tls or (route.proxy is not None and route.proxy.scheme == "https")):
                self._trust = tls_context(self._environ)
            way = self._ways[route.origin] = _Way(route, self._trust)
        return way


class _Way:
    """The connections to one origin."""

    def __init__(self, route: Route, trust: ssl.SSLContext | None) -> None:
        self.dialer = Dialer(route, trust=trust, connect_seconds=CONNECT_SECONDS)
        self._kept: deque[tuple[asyncio.AbstractEventLoop, Line]] = deque()

    async def line(self, connect_seconds: float) -> tuple[Line, bool]:
        """One to send over, and whether it was kept."""
        loop = asyncio.get_running_loop()
        while self._kept:
            owner, line = self._kept.pop()
            if owner is loop and line.usable:
                return line, True
        return await self.dialer.open(connect_seconds), False

    def keep(self, line: Line) -> None:
        """For the next."""
        self._kept.append((asyncio.get_running_loop(), line))

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        mine = [line for owner, line in self._kept if owner is loop]
        self._kept.clear()
        for line in mine:
            line.abort()
            await line.closed


class _Answer:
    """Receives one answer, and hands it on in the reader's own time."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.headed: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._paused = False
        self._news = asyncio.Event()
        self._task: asyncio.Task[float] | None = None

    def begin(self, content: bytes, *, read_seconds: float, is_head: bool) -> None:
        """Send."""
        self._task = asyncio.create_task(self.line.exchange(content, self, read_seconds=read_seconds, is_head=is_head))
        self._task.add_done_callback(self._ended)

    def head(self, head: Head, at_seconds: float) -> None:  # noqa: ARG002 - a receiver
        if not self.headed.done():
            self.headed.set_result(head)

    def body(self, chunk: bytes, at_seconds: float) -> None:  # noqa: ARG002 - a receiver
        self._chunks.append(chunk)
        self._unread += len(chunk)
        self._news.set()
        if self._unread > MOST_UNREAD_BYTES and not self._paused:
            self._paused = True
            self.line.pause()

    async def read(self) -> bytes | None:
        """The next part; None at the end. Raises `LineError`."""
        task = self._task
        while not self._chunks and task is not None and not task.done():
            self._news.clear()
            await self._news.wait()
        if self._chunks:
            chunk = self._chunks.popleft()
            self._unread -= len(chunk)
            if self._paused and self._unread <= MOST_UNREAD_BYTES // 2:
                self._paused = False
                self.line.resume()
            return chunk
        if task is not None:
            task.result()
        return None

    async def stop(self) -> bool:
        """Whether it was whole; if not, its connection is closed."""
        task = self._task
        if task is not None and task.done() and not task.cancelled() and task.exception() is None:
            return self.line.usable
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        return False

    def _ended(self, task: asyncio.Task[float]) -> None:
        error = None if task.cancelled() else task.exception()
        if not self.headed.done():
            if error is not None:
                self.headed.set_exception(error)
            else:
                self.headed.cancel()
        self._news.set()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: _Answer, request: httpx.Request, way: _Way | None) -> None:
        self._answer = answer
        self._request = request
        self._way = way
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while (chunk := await self._answer.read()) is not None:
                yield chunk
        except LineError as error:
            raise _as_httpx(error, self._request) from error

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        if await self._answer.stop():
            if self._way is not None:
                self._way.keep(self._answer.line)
            else:
                self._answer.line.abort()


async def _whole(request: httpx.Request, way: _Way) -> bytes:
    """The request as bytes; a body that comes in parts is sent as one."""
    if not isinstance(request.stream, httpx.AsyncByteStream):
        raise TypeError("an asynchronous client sends an asynchronous body")
    body = b"".join([part async for part in request.stream])
    fields: list[tuple[str | bytes, str | bytes]] = [
        (name, value) for name, value in request.headers.raw if name.lower() != b"transfer-encoding"
    ]
    if len(fields) != len(request.headers.raw):
        fields.append(("Content-Length", str(len(body))))
    target = way.dialer.prefix + request.url.raw_path
    return head_of(request.method, target, [*fields, *way.dialer.fields]) + b"\r\n" + body


_ERRORS: dict[Fault, type[httpx.TransportError]] = {
    Fault.CONNECT_TIMEOUT: httpx.ConnectTimeout,
    Fault.RESOLVE: httpx.ConnectError,
    Fault.REFUSED: httpx.ConnectError,
    Fault.UNREACHABLE: httpx.ConnectError,
    Fault.TLS: httpx.ConnectError,
    Fault.PROXY: httpx.ProxyError,
    Fault.RESET: httpx.ReadError,
    Fault.UNSENDABLE: httpx.LocalProtocolError,
}


def _as_httpx(error: LineError, request: httpx.Request) -> httpx.TransportError:
    kind = _ERRORS.get(error.fault, httpx.ReadTimeout if error.is_timeout else httpx.RemoteProtocolError)
    if isinstance(error.__cause__, OSError) and kind is httpx.RemoteProtocolError:
        kind = httpx.ReadError
    return kind(str(error), request=request)
