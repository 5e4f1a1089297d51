"""Requests of a load through httpx: for ways that the fast engine cannot go, and where its parser is missing."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from pytest_thermal.load.answers import ERROR_BODY_BYTES, Answer, Target
from pytest_thermal.load.completions import Stream, comes_in_events, first_model, read_refusal, read_whole
from pytest_thermal.transport import Fault, KeyAuth, Route
from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES, read_fault
from pytest_thermal.transport.sse import AFTER_DONE_SECONDS, EventDecoder, told_as_error

_STALE = (Fault.CLOSED, Fault.RESET)


class HttpxConnections:
    """Makes connections that share their trust."""

    def __init__(self, target: Target, route: Route, trust: ssl.SSLContext | None) -> None:
        self._target = target
        self._trust = trust
        proxy = route.proxy
        self._proxy = (
            httpx.Proxy(proxy.url, ssl_context=trust if proxy.scheme == "https" else None)
            if proxy is not None
            else None
        )

    def make(self) -> HttpxConnection:
        """A connection of its own."""
        target = self._target
        # One client for each: the time that a pool takes to find a free connection grows with their number.
        client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(verify=self._trust or False, proxy=self._proxy),
            base_url=target.base_url,
            auth=KeyAuth(target.key, base_url=target.base_url) if target.key is not None else None,
            timeout=httpx.Timeout(target.read_seconds, connect=target.connect_seconds),
            headers={"User-Agent": "pytest-thermal"},
            follow_redirects=False,
            trust_env=False,
        )
        return HttpxConnection(client, total_seconds=target.total_seconds)


class HttpxConnection:
    """Sends requests, one after the other."""

    def __init__(self, client: httpx.AsyncClient, *, total_seconds: float) -> None:
        self._client = client
        self._total_seconds = total_seconds

    async def send(self, body: Mapping[str, Any]) -> Answer:
        """`load.engine.Connection.send`."""
        answer = Answer(started_seconds=time.monotonic())
        try:
            await asyncio.wait_for(self._exchange(body, answer), self._total_seconds)
        except asyncio.CancelledError:
            answer.was_cancelled()
        except asyncio.TimeoutError:
            answer.was_slow(self._total_seconds)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is recorded, and the load goes on
            answer.failed(*read_fault(error, began=answer.status is not None))
        if not answer.latency_seconds:
            answer.latency_seconds = time.monotonic() - answer.started_seconds
        return answer

    async def first_listed_model(self) -> str | None:
        """The first model of the gateway's list; None where there is none to be had."""
        try:
            return first_model((await self._client.get("models")).content)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError):
            return None

    async def close(self) -> None:
        """Close it."""
        await self._client.aclose()

    async def _exchange(self, body: Mapping[str, Any], answer: Answer) -> None:
        response = await self._head(body)
        answer.status = status = response.status_code
        reason, headers = response.reason_phrase, response.headers
        try:
            if status >= 300:
                content = await _some(response.aiter_bytes(), ERROR_BODY_BYTES)
                read_refusal(answer, status=status, reason=reason, fields=headers.raw, body=content)
            else:
                await _read(response, answer)
        finally:
            await response.aclose()

    async def _head(self, body: Mapping[str, Any]) -> httpx.Response:
        """A kept connection may have been closed just when the request left: then it goes again, over a new one."""
        fresh = False

        async def trace(event: str, _: object) -> None:
            nonlocal fresh
            fresh = fresh or "connect_tcp" in event

        request = self._client.build_request("POST", "chat/completions", json=body, extensions={"trace": trace})
        try:
            return await self._client.send(request, stream=True)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            if fresh or read_fault(error, began=False)[0] not in _STALE:
                raise
        return await self._client.send(request, stream=True)


async def _some(chunks: AsyncIterator[bytes], limit_bytes: int) -> bytes:
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) >= limit_bytes:
            break
    return bytes(content)


async def _read(response: httpx.Response, answer: Answer) -> None:
    """An answer whose head is good: in events, or in one piece, as its first bytes say."""
    chunks = response.aiter_bytes()
    content_type = response.headers.get("content-type", "")
    content = bytearray()
    events: bool | None = None
    while events is None and (chunk := await anext(chunks, b"")):
        content += chunk
        events = comes_in_events(bytes(content), content_type)
    if events:
        await _read_stream(bytes(content), chunks, answer)
        return
    if len(content) < BODY_LIMIT_BYTES:
        content += await _some(chunks, BODY_LIMIT_BYTES)
    answer.latency_seconds = time.monotonic() - answer.started_seconds
    read_whole(
        answer,
        status=response.status_code,
        reason=response.reason_phrase,
        fields=response.headers.raw,
        body=bytes(content),
    )


async def _read_stream(chunk: bytes, chunks: AsyncIterator[bytes], answer: Answer) -> None:
    decoder = EventDecoder()
    stream = Stream(answer)
    while True:
        now = time.monotonic() - answer.started_seconds
        for kind, data in decoder.feed(chunk):
            stream.take(told_as_error(kind, data).encode("utf-8", "replace"), now)
        try:
            # After its end some gateways leave the connection open.
            chunk = await asyncio.wait_for(anext(chunks), AFTER_DONE_SECONDS if stream.done else None)
        except (StopAsyncIteration, asyncio.TimeoutError):
            break
        except (httpx.ReadError, httpx.RemoteProtocolError):
            if not stream.is_whole:
                raise
            stream.end()  # all was said, and then the connection torn down
            return
    now = time.monotonic() - answer.started_seconds
    for kind, data in decoder.end():
        stream.take(told_as_error(kind, data).encode("utf-8", "replace"), now)
    stream.end(now)
