"""A gateway of known speed, to measure the load engine by: ``python -m pytest_thermal.load.reference_server``.

It answers chat completions after a fixed time, whole or in events, and what it says are the times at which it had the
request and sent the answer, in seconds of the monotonic clock, which all processes of a machine share. So what the
engine adds is known however late this process's own timers are. Any GET is answered with a list of its one model, which
says too how many completions it has answered so far: a count of requests that does not come from who sent them.

It says its port in one line, and ends with its standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from dataclasses import dataclass
from typing import cast

from pytest_thermal.transport.fast import loops

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_STREAM_END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long it takes for what."""

    whole_seconds: float = 0.1
    first_token_seconds: float = 0.05
    token_seconds: float = 0.02
    tokens: int = 32


class _Answered:
    """So many completions, on all connections."""

    count = 0


class _Peer(asyncio.Protocol):
    def __init__(self, pace: Pace, answered: _Answered, loop: asyncio.AbstractEventLoop) -> None:
        self._pace = pace
        self._answered = answered
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self._transport = None

    def data_received(self, data: bytes) -> None:
        received = time.monotonic()
        self._pending += data
        head, end, rest = self._pending.partition(_HEAD_END)
        if not end:
            return
        at = head.lower().find(_LENGTH)
        length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(rest) < length:
            return
        body, self._pending = rest[:length], rest[length:]
        pace = self._pace
        if head.startswith(b"GET "):
            self._say(b'{"object":"list","data":[{"id":"m","object":"model"}],"answered":%d}' % self._answered.count)
        elif b'"stream":true' in body or b'"stream": true' in body:
            self._loop.call_later(pace.first_token_seconds, self._token, pace.tokens)
        elif pace.whole_seconds:
            self._loop.call_later(pace.whole_seconds, self._whole, received)
        else:
            self._whole(received)

    def _whole(self, received: float) -> None:
        if self._transport is None:
            return
        said = b"%.6f %.6f" % (received, time.monotonic())
        body = (
            b'{"id":"r","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"%b"},'
            b'"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}' % said
        )
        self._say(body)
        self._answered.count += 1

    def _say(self, body: bytes) -> None:
        if self._transport is None:
            return
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )

    def _token(self, left: int) -> None:
        if self._transport is None:
            return
        if not left:
            self._transport.write(_STREAM_END)
            self._answered.count += 1
            return
        begin = _STREAM_HEAD if left == self._pace.tokens else b""
        event = (
            b'data: {"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%.6f "},'
            b'"finish_reason":%b}]}\n\n' % (time.monotonic(), b"null" if left > 1 else b'"stop"')
        )
        self._transport.write(b"%b%x\r\n%b\r\n" % (begin, len(event), event))
        self._loop.call_later(self._pace.token_seconds if left > 1 else 0.0, self._token, left - 1)


async def serve(pace: Pace) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    answered = _Answered()
    server = await loop.create_server(lambda: _Peer(pace, answered, loop), "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    end = asyncio.Event()

    def heard() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            end.set()

    loop.add_reader(0, heard)
    await end.wait()


def main() -> int:
    """The command line."""
    known = Pace()
    parser = argparse.ArgumentParser()
    parser.add_argument("--whole-seconds", type=float, default=known.whole_seconds)
    parser.add_argument("--first-token-seconds", type=float, default=known.first_token_seconds)
    parser.add_argument("--token-seconds", type=float, default=known.token_seconds)
    parser.add_argument("--tokens", type=int, default=known.tokens)
    loops.run(serve(Pace(**vars(parser.parse_args()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
