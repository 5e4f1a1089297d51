"""Requests of a load over connections of our own, which know when each byte came."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Mapping
from typing import Any

import httpx

from pytest_thermal.load.alike import Alike
from pytest_thermal.load.answers import ERROR_BODY_BYTES, Answer, Target
from pytest_thermal.load.completions import Stream, comes_in_events, first_model, read_refusal, read_whole, to_body
from pytest_thermal.transport import Fault, Route
from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES
from pytest_thermal.transport.fast.connection import Connection
from pytest_thermal.transport.fast.dial import Dialer
from pytest_thermal.transport.fast.errors import LineError
from pytest_thermal.transport.fast.events import DataDecoder
from pytest_thermal.transport.fast.line import Head
from pytest_thermal.transport.fast.request import head_of, with_body
from pytest_thermal.transport.fast.unpacking import Unpacker
from pytest_thermal.transport.sse import AFTER_DONE_SECONDS

_LEARNED_CHUNKS = 4
"""Of a stream: where none of them is like the next, there is nothing to learn."""


class FastConnections:
    """Makes connections that share their trust, and the addresses that the name has."""

    def __init__(self, target: Target, route: Route, trust: ssl.SSLContext | None) -> None:
        self._target = target
        self._dialer = Dialer(route, trust=trust, connect_seconds=target.connect_seconds)

    def make(self) -> FastConnection:
        """A connection of its own."""
        return FastConnection(self._target, self._dialer)


class FastConnection:
    """Sends requests, one after the other."""

    def __init__(self, target: Target, dialer: Dialer) -> None:
        self._target = target
        self._dialer = dialer
        self._connection = Connection(dialer)
        self._head = b""

    async def send(self, body: Mapping[str, Any]) -> Answer:
        """`load.engine.Connection.send`."""
        target = self._target
        answer = Answer(started_seconds=time.monotonic())
        reading = _Reading(answer, self._connection)
        try:
            content = to_body(body)
            self._head = self._head or self._post_head()
            ended = await self._connection.exchange(
                with_body(self._head, content),
                reading,
                read_seconds=target.read_seconds,
                deadline=answer.started_seconds + target.total_seconds,
            )
            reading.end(ended - answer.started_seconds)
        except asyncio.CancelledError:
            if not reading.broke_off_whole():
                answer.was_cancelled()
        except LineError as error:
            if not error.is_timeout and reading.broke_off_whole():
                pass  # all was said, and then the connection torn down
            elif error.fault is Fault.SLOW:
                answer.was_slow(target.total_seconds)
            else:
                answer.failed(error.fault, str(error))
        except (ValueError, TypeError):
            answer.failed(Fault.UNSENDABLE, "it cannot be written as JSON")
        if not answer.latency_seconds:
            answer.latency_seconds = time.monotonic() - answer.started_seconds
        return answer

    async def first_listed_model(self) -> str | None:
        """The first model of the gateway's list; None where there is none to be had."""
        body = _Body()
        deadline = time.monotonic() + self._target.total_seconds
        try:
            request = self._head_for("GET", b"/models") + b"\r\n"
            await self._connection.exchange(request, body, read_seconds=self._target.read_seconds, deadline=deadline)
        except LineError:
            return None
        return first_model(body.content)

    async def close(self) -> None:
        """Close it; its socket is gone when this returns."""
        await self._connection.close()

    def _post_head(self) -> bytes:
        return self._head_for("POST", b"/chat/completions", ("Content-Type", "application/json"))

    def _head_for(self, method: str, path: bytes, *more: tuple[str, str]) -> bytes:
        url = httpx.URL(self._target.base_url)
        fields: list[tuple[str | bytes, str | bytes]] = [
            ("Host", url.netloc),
            ("User-Agent", "pytest-thermal"),
            ("Accept", "*/*"),
            ("Accept-Encoding", "identity"),
            *self._dialer.fields,
            *more,
        ]
        if self._target.key is not None:
            fields.append(("Authorization", f"Bearer {self._target.key.get_secret_value()}"))
        elif url.userinfo:
            login = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
            fields.append(("Authorization", f"Basic {login}"))
        return head_of(method, self._dialer.prefix + url.raw_path.rstrip(b"/") + path, fields)


class _Body:
    """A body as it comes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    @property
    def content(self) -> bytes:
        return b"".join(self._parts)

    def head(self, head: Head, at_seconds: float) -> None:
        pass

    def body(self, chunk: bytes, at_seconds: float) -> None:  # noqa: ARG002 - a receiver
        self._parts.append(chunk)


class _Reading:
    """Reads one answer while it comes."""

    def __init__(self, answer: Answer, connection: Connection) -> None:
        self._answer = answer
        self._connection = connection
        self._head: Head | None = None
        self._stream: Stream | None = None
        self._decoder: DataDecoder | None = None
        self._unpacker: Unpacker | None = None
        self._content_type: str | None = None
        """Of an answer of which is not known yet whether it comes in events."""
        self._parts: list[bytes] = []
        self._length = 0
        self._limit_bytes = BODY_LIMIT_BYTES
        self._like: Alike | None = None
        """What the next chunk may be like: nothing is left over of those before."""
        self._learned: Alike | None = None
        self._to_learn = _LEARNED_CHUNKS

    def head(self, head: Head, at_seconds: float) -> None:  # noqa: ARG002 - a receiver
        """Status and headers."""
        self._head = head
        self._answer.status = head.status
        if b"content-encoding" in head.by_name and (encoding := head.get(b"content-encoding").strip().lower()) not in {
            "",
            "identity",
        }:
            self._unpacker = Unpacker(encoding)
        if head.status >= 300:
            self._limit_bytes = ERROR_BODY_BYTES
        else:
            self._content_type = head.get(b"content-type")

    def body(self, chunk: bytes, at_seconds: float) -> None:
        """A part of the body, and when it came."""
        if self._unpacker is not None:
            chunk = self._unpacker.feed(chunk)
        if self._content_type is not None:
            chunk = self._begin(chunk, self._content_type)
        stream, decoder = self._stream, self._decoder
        if stream is None or decoder is None:
            self._parts.append(chunk)
            self._length += len(chunk)
            if self._length >= self._limit_bytes:
                self._enough()
            return
        now = at_seconds - self._answer.started_seconds
        like = self._like
        if like is not None and (words := like.words(chunk)):
            stream.token(words, now)
            self._length = 0
            return
        was_clean = decoder.is_clean
        events = decoder.data(chunk)
        for data in events:
            stream.take(data, now)
        if events:
            self._length = 0
            if stream.done and self._connection.line is not None:
                # After its end some gateways leave the connection open.
                self._connection.line.enough_within(AFTER_DONE_SECONDS)
        else:
            self._length += len(chunk)
            if self._length > BODY_LIMIT_BYTES:
                raise LineError(Fault.OVERSIZE, f"an event of more than {BODY_LIMIT_BYTES:,} bytes")
        if self._to_learn and was_clean and len(events) == 1 and decoder.is_clean:
            self._learn(stream, chunk, events[0])
        self._like = self._learned if decoder.is_clean and not stream.done else None

    def _begin(self, chunk: bytes, content_type: str) -> bytes:
        """Decide by its first bytes, all of which are given back, whether the answer comes in events."""
        begin = b"".join((*self._parts, chunk))
        events = comes_in_events(begin, content_type)
        if events is not None:
            self._content_type = None
        if not events:
            return chunk
        self._parts.clear()
        self._length = 0
        self._stream, self._decoder = Stream(self._answer), DataDecoder()
        return begin

    def broke_off_whole(self) -> bool:
        """Whether all of a stream was there when its connection ended; then that is what is told."""
        if self._stream is None or not self._stream.is_whole:
            return False
        self._stream.end()
        return True

    def _learn(self, stream: Stream, chunk: bytes, data: bytes) -> None:
        """What chunks are like that hold one more event like those before."""
        alike = stream.alike
        if alike is not None and alike.words(data):
            self._to_learn -= 1
            self._learned = alike.in_chunk(chunk, data) or self._learned

    def end(self, now_seconds: float) -> None:
        """The answer was whole, so long after the request."""
        answer, head = self._answer, self._head
        if self._stream is not None and self._decoder is not None:
            for data in self._decoder.rest():
                self._stream.take(data, now_seconds)
            self._stream.end(now_seconds)
        elif head is not None:
            answer.latency_seconds = now_seconds
            read = read_refusal if head.status >= 300 else read_whole
            read(answer, status=head.status, reason=head.reason, fields=head.fields, body=b"".join(self._parts))

    def _enough(self) -> None:
        if self._connection.line is not None:
            self._connection.line.enough()
