"""The seam of the load generator: one request in, one answer out. httpx today; all else is independent of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import SecretStr

from pytest_thermal.access.reading import error_text, quote
from pytest_thermal.transport import Exchange, Fault, KeyAuth, retry_after_seconds, route_to, tls_context
from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES, read_fault, read_json
from pytest_thermal.transport.sse import AFTER_DONE_SECONDS, DONE, EventDecoder

CANCELLED = "cancelled"

_ANSWER_PATIENCE = 2.0
"""A whole answer may take so many times as long as the next bytes of it: a byte a second is no answer."""
_ERROR_BODY_BYTES = 65536
_STALE = (Fault.CLOSED, Fault.RESET)
_IN_WORDS = {
    Fault.RESOLVE: "name not resolved",
    Fault.REFUSED: "connection refused",
    Fault.UNREACHABLE: "host unreachable",
    Fault.CONNECT_TIMEOUT: "no connection in time",
    Fault.TLS: "no TLS",
    Fault.RESET: "connection reset",
    Fault.CLOSED: "closed without an answer",
    Fault.CUT: "answer cut off",
    Fault.SILENCE: "no answer in time",
    Fault.SLOW: "answer too slow",
    Fault.NOT_HTTP: "no HTTP",
}
"""Kinds of failure as they are counted, where the fault's own word says too little."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where requests go, with what key, and how long to wait."""

    base_url: str
    key: SecretStr | None
    connect_seconds: float
    read_seconds: float


@dataclass(kw_only=True)
class Answer:
    """What became of one request. Times are seconds of the monotonic clock, durations count from its start."""

    started_seconds: float
    ttft_seconds: float | None = None
    last_token_seconds: float | None = None
    latency_seconds: float = 0.0
    status: int | None = None
    trouble: str = ""
    """The kind of failure, to count it by: ``429 Too Many Requests``, ``silence``; empty for none."""
    detail: str = ""
    """The same in more words."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    text: str = ""
    retry_after_seconds: float | None = None

    @property
    def ok(self) -> bool:
        """Whether a whole completion came."""
        return not self.trouble

    @property
    def error(self) -> str:
        """The failure in words; empty for none."""
        return f"{self.trouble}: {self.detail}" if self.detail else self.trouble


class Engine:
    """Makes connections to one target, which share what is costly: trust, which is read once.

    Raises what `transport.async_client` raises: a proxy or certificates that the environment names wrongly.
    """

    def __init__(self, target: Target, environ: Mapping[str, str]) -> None:
        self._target = target
        route = route_to(target.base_url, environ)
        proxy_uses_tls = route.proxy is not None and route.proxy.scheme == "https"
        self._trust = tls_context(environ) if route.uses_tls or proxy_uses_tls else None
        self._proxy = (
            httpx.Proxy(route.proxy.url, ssl_context=self._trust if proxy_uses_tls else None) if route.proxy else None
        )

    def connection(self) -> Connection:
        """A connection of its own: for one request at a time."""
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
        return Connection(client, total_seconds=_ANSWER_PATIENCE * target.read_seconds + target.connect_seconds)

    async def first_listed_model(self) -> str | None:
        """The first model of the gateway's list; None where there is none to be had."""
        connection = self.connection()
        try:
            return await connection.first_listed_model()
        finally:
            await connection.close()


class Connection:
    """Sends requests, one after the other."""

    def __init__(self, client: httpx.AsyncClient, *, total_seconds: float) -> None:
        self._client = client
        self._total_seconds = total_seconds

    async def send(self, body: Mapping[str, Any]) -> Answer:
        """POST a chat completion; whatever the network or the peer does is in the answer.

        A cancelled one answers too, as `CANCELLED`: whoever cancels has to see to it that nothing follows.
        """
        answer = Answer(started_seconds=time.monotonic())
        try:
            await asyncio.wait_for(self._exchange(body, answer), self._total_seconds)
        except asyncio.CancelledError:
            answer.trouble, answer.detail = CANCELLED, "the load was taken off"
        except asyncio.TimeoutError:
            answer.trouble = _IN_WORDS[Fault.SLOW]
            answer.detail = f"not at its end after {self._total_seconds:g} s, though bytes kept coming"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is recorded, and the load goes on
            fault, text = read_fault(error, began=answer.status is not None)
            answer.trouble, answer.detail = _IN_WORDS.get(fault, fault.value), text
        if not answer.latency_seconds:
            answer.latency_seconds = time.monotonic() - answer.started_seconds
        return answer

    async def first_listed_model(self) -> str | None:
        """The first model of the gateway's list; None where there is none to be had."""
        try:
            listing = read_json((await self._client.get("models")).text)
            return str(listing["data"][0]["id"])
        except (httpx.HTTPError, httpx.InvalidURL, LookupError, TypeError, UnicodeError):
            return None

    async def close(self) -> None:
        """Close it."""
        await self._client.aclose()

    async def _exchange(self, body: Mapping[str, Any], answer: Answer) -> None:
        response = await self._head(body)
        answer.status = response.status_code
        try:
            if response.status_code >= 300:
                answer.retry_after_seconds = retry_after_seconds(response.headers)
                self._refused(response, await _some(response.aiter_bytes(), _ERROR_BODY_BYTES), answer)
            elif response.headers.get("content-type", "").startswith("text/event-stream"):
                await _read_stream(response, answer)
            else:
                content = await _some(response.aiter_bytes(), BODY_LIMIT_BYTES)
                answer.latency_seconds = time.monotonic() - answer.started_seconds
                _read_whole(response, content, answer)
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

    @staticmethod
    def _refused(response: httpx.Response, content: bytes, answer: Answer) -> None:
        answer.trouble = f"{response.status_code} {response.reason_phrase}".strip()
        answer.detail = quote(error_text(_exchange_of(response, content)))


async def _some(chunks: AsyncIterator[bytes], limit_bytes: int) -> bytes:
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) >= limit_bytes:
            break
    return bytes(content)


def _exchange_of(response: httpx.Response, content: bytes) -> Exchange:
    return Exchange(
        method="POST",
        url=str(response.url),
        status=response.status_code,
        reason=response.reason_phrase,
        headers=response.headers,
        body=content,
    )


def _read_whole(response: httpx.Response, content: bytes, answer: Answer) -> None:
    data = read_json(content.decode("utf-8", "replace"))
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices:
        answer.trouble = "no completion"
        answer.detail = quote(error_text(_exchange_of(response, content))) or "the answer is empty"
        return
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    answer.text = _words(message)
    _take_usage(data, answer)


async def _read_stream(response: httpx.Response, answer: Answer) -> None:
    decoder = EventDecoder()
    stream = _Stream(answer)
    chunks = response.aiter_bytes()
    while True:
        try:
            # After its end some gateways leave the connection open.
            chunk = await asyncio.wait_for(anext(chunks), AFTER_DONE_SECONDS if stream.done else None)
        except (StopAsyncIteration, asyncio.TimeoutError):
            break
        now = time.monotonic() - answer.started_seconds
        for _, data in decoder.feed(chunk):
            stream.take(data, now)
    now = time.monotonic() - answer.started_seconds
    for _, data in decoder.end():
        stream.take(data, now)
    stream.end(now)


class _Stream:
    """The events of one answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._parts: list[str] = []
        self._finished = False
        self.done = False

    def take(self, data: str, now_seconds: float) -> None:
        answer = self._answer
        if data.strip() == DONE:
            self.done = True
            answer.latency_seconds = now_seconds
            return
        event = read_json(data)
        if not isinstance(event, dict):
            return
        if event.get("error"):
            answer.trouble = "an error within the stream"
            answer.detail = quote(str(event["error"]))
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        words = _words(choice.get("delta"))
        if words:
            self._parts.append(words)
            if answer.ttft_seconds is None:
                answer.ttft_seconds = now_seconds
            answer.last_token_seconds = now_seconds
        self._finished = self._finished or bool(choice.get("finish_reason"))
        _take_usage(event, answer)

    def end(self, now_seconds: float) -> None:
        answer = self._answer
        if not answer.latency_seconds:
            answer.latency_seconds = now_seconds
        answer.text = "".join(self._parts)
        if answer.completion_tokens is None:
            answer.completion_tokens = len(self._parts)
        if not answer.trouble and not (self.done or self._finished):
            answer.trouble = "the stream ended early"
            answer.detail = f"after {len(self._parts)} tokens, without finish_reason and [DONE]"


def _words(message: Any) -> str:
    """What an answer, or a part of it, says; thinking aloud included."""
    if not isinstance(message, dict):
        return ""
    parts = (message.get(name) for name in ("reasoning_content", "reasoning", "content"))
    return "".join(part for part in parts if isinstance(part, str))


def _take_usage(data: Mapping[str, Any], answer: Answer) -> None:
    usage = data.get("usage")
    if isinstance(usage, dict):
        for name in ("prompt_tokens", "completion_tokens"):
            if isinstance(usage.get(name), int):
                setattr(answer, name, usage[name])
