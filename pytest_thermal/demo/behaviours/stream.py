"""Faults of the stream."""
# ruff: noqa: ARG002

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.chat import ChatRequest, Completion
from pytest_thermal.demo.wire import Json, error_body

from .base import DONE, Behaviour, encode

_TOKENS_BEFORE_BREAK = 2
_SLICE_BYTES = 7


def is_token(event: Json) -> bool:
    """Whether the event brings generated text."""
    deltas = [choice["delta"] for choice in event["choices"]]
    return any(delta.get("content") or delta.get("reasoning_content") for delta in deltas)


def is_closing(event: Json) -> bool:
    """Whether the event says why the answer ended."""
    return any(choice["finish_reason"] for choice in event["choices"])


async def beginning(events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
    """The first tokens: two of them, or as many as there are."""
    tokens = 0
    async for event in events:
        if is_closing(event):
            return
        yield encode(event)
        tokens += is_token(event)
        if tokens >= _TOKENS_BEFORE_BREAK:
            return


class StreamCut(Behaviour):
    """The connection breaks in the middle."""

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """Two tokens, and no connection any more."""
        async for sent in beginning(events):
            yield sent
        await call.cut()


class StreamTruncated(Behaviour):
    """The stream ends in the middle as if that were all."""

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """Two tokens."""
        async for sent in beginning(events):
            yield sent


class StreamStall(Behaviour):
    """The stream stops coming."""

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """Two tokens, and nothing more for ever."""
        async for sent in beginning(events):
            yield sent
        await call.hang()


class StreamErrorEvent(Behaviour):
    """The engine breaks in the middle; the status 200 is long gone."""

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """Two tokens and the error, closed as if all were well."""
        async for sent in beginning(events):
            yield sent
        message = "The engine stopped while it was generating."
        yield encode(error_body(message, type="InternalServerError", code=500))
        yield DONE


class StreamNoDone(Behaviour):
    """Everything but the mark at the end."""

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """All events."""
        async for event in events:
            yield encode(event)


class StreamNoUsage(Behaviour):
    """Usage was asked for and does not come."""

    def event(self, event: Json) -> Json | None:
        """Everything but the usage."""
        return event if event["choices"] else None


class StreamUsageBesideChoices(Behaviour):
    """Usage comes in the event that closes the answer."""

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """The last two events in one."""
        closing: Json | None = None
        async for event in events:
            if is_closing(event):
                closing = event
            elif closing is not None:
                closing = {**closing, "usage": event["usage"]}
            else:
                yield encode(event)
        if closing is not None:
            yield encode(closing)
        yield DONE


class StreamIgnored(Behaviour):
    """Answers at once where a stream was asked for."""

    def read(self, chat: ChatRequest) -> ChatRequest:
        """The same request without the stream."""
        return replace(chat, stream=False)


class StreamBuffered(Behaviour):
    """Something on the way keeps the stream until it is whole."""

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """Everything in one burst, after the whole time."""
        sent = [encode(event) async for event in events]
        yield b"".join([*sent, DONE])


class StreamComments(Behaviour):
    """Everything that server-sent events allow and few servers use."""

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """Prose with letters of several bytes; a lone number stays what it is."""
        if len(completion.content) == 1:
            return completion
        return replace(completion, content=tuple(f"{text}·Kühlung冷却" for text in completion.content))

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """Comments, names of events and CRLF, cut into pieces that respect neither events nor letters."""
        yield b": keep-alive\r\n\r\n"
        async for event in events:
            text = json.dumps({**event, "system_fingerprint": "Prüfstand-冷却"}, ensure_ascii=False)
            whole = f": keep-alive\r\nevent: message\r\ndata: {text}\r\n\r\n".encode()
            for start in range(0, len(whole), _SLICE_BYTES):
                yield whole[start : start + _SLICE_BYTES]
        yield b"data: [DO"
        yield b"NE]\r\n\r\n"
