"""One TCP connection and the answers that come over it, stamped as they arrive."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Protocol, cast

import httptools

from pytest_thermal.transport.exchange import Fault
from pytest_thermal.transport.fast.errors import LineError, line_error

HEAD_LIMIT_BYTES = 100 * 1024
"""Of status line and headers, those of interim answers included."""
_SHORTEST_TIMER_SECONDS = 0.001
"""uvloop counts timers in milliseconds."""


@dataclass(slots=True)
class Head:
    """Status line and headers of an answer."""

    status: int
    reason: str
    fields: list[tuple[bytes, bytes]] = field(repr=False)
    """As they came."""
    by_name: dict[bytes, bytes] = field(repr=False)
    """The last of each name, which is in lower case."""

    def get(self, name: bytes) -> str:
        """The last value of a header, whose name is given in lower case; empty where it was not sent."""
        value = self.by_name.get(name)
        return value.decode("latin-1") if value else ""


class Receiver(Protocol):
    """Takes an answer while it comes. What it raises is raised by `Line.exchange`."""

    def head(self, head: Head, at_seconds: float) -> None:
        """Status and headers are here; interim answers are not told."""

    def body(self, chunk: bytes, at_seconds: float) -> None:
        """A part of the body, without its framing; seconds of the monotonic clock at which it arrived."""


class Line(asyncio.Protocol):
    """A connection: one request at a time, and its answer.

    The protocol of an asyncio transport, made with `connection_made`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.usable = False
        """Whether the next request can go over it."""
        self.closed: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        # As h11, which the probes use: lines that end without CR, and a length beside chunks.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_chunked_length=True)
        self._waiter: asyncio.Future[float] | None = None
        self._receiver: Receiver | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._looked_at: float | None = None
        self._at = 0.0
        self._read_seconds = self._paused_read_seconds = 0.0
        self._deadline = 0.0
        self._enough_at: float | None = None
        self._is_head = False
        self._came = False
        self._begun = False
        self._interim = False
        self._head_bytes = 0
        self._reason = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._ends_with_line = False
        self._framed_twice = False
        self._spoilt = False

    # --- for the one who asks ---------------------------------------------------------------------------------

    async def exchange(
        self,
        request: bytes,
        receiver: Receiver,
        *,
        read_seconds: float,
        deadline: float = float("inf"),
        is_head: bool = False,
    ) -> float:
        """Send a request; ``receiver`` gets its answer. Returns when it was whole, in seconds of the monotonic clock.

        ``read_seconds`` is for the next bytes, ``deadline`` (on the same clock) for all of them. Cancelled, it closes
        the connection at once.

        Raises:
            LineError: What the peer did, or did not do.
        """
        transport = self._transport
        if not self.usable or transport is None or self._waiter is not None:
            raise RuntimeError("this connection takes no request now")
        self._at = now = time.monotonic()
        self._receiver = receiver
        self._read_seconds, self._deadline, self._enough_at = read_seconds, deadline, None
        self._is_head = is_head
        self._came = self._begun = self._interim = self._framed_twice = False
        self._head_bytes = 0
        self._reason = b""
        self._fields = []
        waiter: asyncio.Future[float] = self._loop.create_future()
        self._waiter = waiter
        self._arm(min(now + read_seconds, deadline), now)
        transport.write(request)
        try:
            return await waiter
        except asyncio.CancelledError:
            self.abort()
            raise

    def enough(self) -> None:
        """The receiver needs no more of this answer: it counts as whole, and the connection is closed."""
        self._finish(keep=False)

    def enough_within(self, seconds: float) -> None:
        """As `enough`, once so many seconds have passed and the answer is still not at its end."""
        now = time.monotonic()
        self._enough_at = now + seconds
        self._arm(self._enough_at, now)

    def pause(self) -> None:
        """Take no more bytes until `resume`: nobody is there to read them. The time does not count as silence."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
            self._read_seconds, self._paused_read_seconds = float("inf"), self._read_seconds

    def resume(self) -> None:
        """Go on after `pause`."""
        if self._transport is not None and not self._transport.is_closing():
            self._read_seconds = self._paused_read_seconds
            self._at = now = time.monotonic()
            self._arm(min(now + self._read_seconds, self._deadline), now)
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close at once; what was not sent is not sent."""
        self.usable = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiter = None
        self._receiver = None
        if self._transport is None:
            if not self.closed.done():
                self.closed.set_result(None)
        else:
            self._transport.abort()

    # --- asyncio ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready for a request."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by name
        self.usable = True

    def data_received(self, data: bytes) -> None:
        """Bytes arrived: the time is taken before anything else happens."""
        self._at = time.monotonic()
        if self._waiter is None or self._parser is None:
            self.abort()  # nobody asked: whatever it answers, it is not the next request
            return
        self._came = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(LineError(Fault.NOT_HTTP, "it goes on in another protocol than HTTP"))
        except httptools.HttpParserCallbackError as error:
            self._fail(error.__context__ if isinstance(error.__context__, Exception) else error)
        except httptools.HttpParserError as error:
            self._fail(LineError(Fault.CUT if self._begun else Fault.NOT_HTTP, str(error)))
        if not self._begun:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES and self._waiter is not None:
                self._fail(LineError(Fault.NOT_HTTP, f"a head of more than {HEAD_LIMIT_BYTES:,} bytes"))
        if self._spoilt:
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """The end, by the peer or by us."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()  # Python 3.10's TLS warns of one that only the peer closed
        self._transport = self._parser = None
        if self._waiter is not None:
            if self._begun and self._ends_with_line and error is None:
                self._finish(keep=False)
            else:
                self._fail(self._end_error(error))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.closed.done():
            self.closed.set_result(None)

    # --- the parser -------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """An answer begins; one that nobody asked for spoils the connection."""
        if self._waiter is None:
            self._spoilt = True

    def on_status(self, reason: bytes) -> None:
        """A part of the reason."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is nobody's."""
        if not self._begun:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        receiver, parser = self._receiver, self._parser
        if receiver is None or parser is None:
            return
        status = parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self._interim = True
            return
        by_name = {name.lower(): value for name, value in self._fields}
        coding, is_long = by_name.get(b"transfer-encoding"), b"content-length" in by_name
        chunked = coding is not None and coding.lower().rstrip().endswith(b"chunked")
        self._ends_with_line = not chunked and not is_long and status not in {204, 304}
        self._framed_twice = is_long and coding is not None
        self._begun = True
        head = Head(status, self._reason.decode("latin-1"), self._fields, by_name)
        receiver.head(head, self._at)
        if self._is_head:
            self._finish(keep=False)  # the parser would wait for the body that the length speaks of

    def on_body(self, chunk: bytes) -> None:
        """A part of the body."""
        if self._receiver is not None:
            self._receiver.body(chunk, self._at)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._interim:
            self._interim = False
            self._reason, self._fields = b"", []
        elif self._parser is not None and self._waiter is not None:
            self._finish(keep=self._parser.should_keep_alive() and not self._framed_twice)

    # ----------------------------------------------------------------------------------------------------------

    def _finish(self, *, keep: bool) -> None:
        waiter, self._waiter, self._receiver = self._waiter, None, None
        if waiter is None:
            return
        if not waiter.done():
            waiter.set_result(self._at)
        transport = self._transport
        if transport is not None and (not keep or transport.get_write_buffer_size()):
            # Also where it answered before it had read all: what is left would be taken for the next request.
            self.usable = False
            transport.abort()

    def _fail(self, error: Exception) -> None:
        waiter = self._waiter
        self.abort()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _end_error(self, error: Exception | None) -> LineError:
        if error is not None:
            return line_error(error, began=self._begun, is_stale=not self._came)
        if self._begun:
            return LineError(Fault.CUT, "the connection ended before the body did")
        return LineError(Fault.CLOSED, "Server disconnected without sending a response.", is_stale=not self._came)

    def _arm(self, when: float, now: float) -> None:
        # One timer serves many requests: it looks again when it is due, so that none is made for each chunk.
        if self._timer is not None:
            if self._timer_at <= when:
                return
            self._timer.cancel()
        self._timer_at = when
        self._timer = (
            self._loop.call_later(max(_SHORTEST_TIMER_SECONDS, when - now), self._tick) if when < float("inf") else None
        )

    def _tick(self) -> None:
        self._timer = None
        if self._waiter is None:
            return
        now = time.monotonic()
        silent_at = self._at + self._read_seconds
        due = min(silent_at, self._deadline, self._enough_at or silent_at)
        if now < due:
            self._arm(due, now)
        elif self._looked_at != due:
            # Where this process stood still, what came meanwhile is not read yet: some loops take timers first.
            self._looked_at = due
            self._timer_at = now + _SHORTEST_TIMER_SECONDS
            self._timer = self._loop.call_later(_SHORTEST_TIMER_SECONDS, self._tick)
        elif self._enough_at is not None and now >= self._enough_at:
            self._finish(keep=False)
        elif now >= self._deadline:
            self._fail(LineError(Fault.SLOW, "not at its end in time, though bytes kept coming", is_timeout=True))
        elif self._begun:
            self._fail(LineError(Fault.CUT, "the answer stopped half-way", is_timeout=True))
        else:
            self._fail(LineError(Fault.SILENCE, "no answer in time", is_timeout=True))
