"""The ASGI application: an OpenAI-compatible API, with a behaviour that may spoil it at every point."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .call import Call, Counters
from .chat import ChatRequest, Completion, RefusedRequest, read_chat, write_completion
from .limits import KeyLimits, Refusal
from .wire import Answer, Json, error_answer, http_date, json_answer, model_not_found

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from .behaviours.base import Behaviour, Settings
    from .state import EngineGauge

SERVER_HEADERS = {"server": "pytest-thermal-demo", "x-demo": "simulated"}
"""On every answer, so that nobody takes this gateway for a real one."""

_REALM = 'Bearer realm="pytest-thermal-demo"'
_LONGEST_BODY_BYTES = 4 * 1024 * 1024


class Gateway:
    """An ASGI application. `key` is the one that it accepts; its server says how to close the port."""

    def __init__(
        self,
        *,
        key: str,
        settings: Settings,
        behaviour: Behaviour,
        counters: Counters,
        gauge: EngineGauge | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.close_port: Callable[[], Awaitable[None]] = _nothing
        self.hang_up: Callable[[], None] = lambda: None
        self._key = key
        self._settings = settings
        self._behaviour = behaviour
        self._counters = counters
        self._gauge = gauge
        self._clock = clock
        self._created = int(time.time())
        self._slots = asyncio.Semaphore(settings.slots)
        self._limits: dict[str, KeyLimits] = {}
        self._chats_in_hand = 0
        self._app = self._make_app()

    def _make_app(self) -> Starlette:
        root = self._behaviour.served_under
        app = Starlette(
            routes=[
                Route("/health", self._health, methods=["GET"]),
                Route(f"{root}/models", self._list_models, methods=["GET"]),
                Route(f"{root}/models/{{model:path}}", self._show_model, methods=["GET"]),
                Route(f"{root}/chat/completions", self._chat, methods=["POST"]),
            ],
            exception_handlers={404: _not_found, 405: _not_allowed, Exception: _broken},
        )
        app.router.redirect_slashes = False
        return app

    # ------------------------------------------------------------ one request, from the wire and back to it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, for as long as its client is there."""
        body = await _read_body(receive)
        if body is None:
            return
        call = self._take_in_hand(scope)
        work = asyncio.ensure_future(self._work(call, scope, body, send))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            work.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    def _take_in_hand(self, scope: Scope) -> Call:
        self._counters.requests_received += 1
        connection = scope.get("state", {}).get("connection")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return Call(
            method=scope["method"],
            path=scope["path"],
            headers=headers,
            number=self._counters.requests_received,
            drop=lambda reset: None if connection is None else connection.drop(reset),
        )

    async def _work(self, call: Call, scope: Scope, body: bytes, send: Send) -> None:
        try:
            with call.cleanup:
                if call.is_chat:
                    self._count_parallel(call)
                answer = await self._first_answer(call, body)
                scope["state"] = {"call": call}
                app = self._app if answer is None else _response(answer)
                await app(scope, _replay(body), self._recording(call, send))
        finally:
            if call.status is None:
                self._counters.served.append(call.record())
        if call.number == self._behaviour.lifetime_requests:
            self.hang_up()

    async def _first_answer(self, call: Call, body: bytes) -> Answer | None:
        lifetime_requests = self._behaviour.lifetime_requests
        if lifetime_requests is not None and call.number > lifetime_requests:
            await call.cut()
        if call.number == lifetime_requests:
            # Before the answer, so that whoever has it finds the port closed.
            await self.close_port()
        if len(body) > _LONGEST_BODY_BYTES:
            return error_answer(413, f"The request is larger than {_LONGEST_BODY_BYTES} bytes.")
        return await self._behaviour.on_request(call)

    def _count_parallel(self, call: Call) -> None:
        self._chats_in_hand += 1
        call.parallel = self._chats_in_hand
        self._counters.max_parallel_seen = max(self._counters.max_parallel_seen, self._chats_in_hand)
        call.cleanup.callback(self._count_done)

    def _count_done(self) -> None:
        self._chats_in_hand -= 1

    def _recording(self, call: Call, send: Send) -> Send:
        """Adds the headers of every answer, and counts it before the client can see it."""

        async def record_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
                self._counters.requests_served += 1
                self._counters.served.append(call.record())
                headers = {
                    **SERVER_HEADERS,
                    "date": http_date(),
                    "x-request-id": call.headers.get("x-request-id") or f"req-demo-{os.urandom(8).hex()}",
                    **self._behaviour.headers(),
                }
                message = {**message, "headers": [*_encoded(headers), *message.get("headers", [])]}
            await send(message)

        return record_and_send

    # -------------------------------------------------------------------------------------------- endpoints

    async def _health(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        return _response(json_answer({"status": "ok"}))

    async def _list_models(self, request: Request) -> Response:
        call: Call = request.state.call
        refusal = self._refuse_key(call)
        if refusal is not None:
            return _response(refusal)
        listing = {"object": "list", "data": [self._describe(model) for model in self._settings.models]}
        return _response(self._behaviour.on_models(call, listing))

    async def _show_model(self, request: Request) -> Response:
        refusal = self._refuse_key(request.state.call)
        if refusal is not None:
            return _response(refusal)
        model = request.path_params["model"]
        known = model in self._settings.models
        return _response(json_answer(self._describe(model)) if known else model_not_found(model))

    async def _chat(self, request: Request) -> Response:
        call: Call = request.state.call
        refusal = self._refuse_key(call)
        if refusal is not None:
            return _response(refusal)
        try:
            call.chat = self._behaviour.read(read_chat(await request.body()))
        except RefusedRequest as refused:
            return _response(refused.answer)
        answer = await self._behaviour.on_chat(call, call.chat)
        if answer is not None:
            return _response(answer)
        if call.chat.model not in self._settings.models:
            return _response(model_not_found(call.chat.model))
        return await self._complete(call, call.chat)

    async def _complete(self, call: Call, chat: ChatRequest) -> Response:
        completion = await self._behaviour.on_completion(call, write_completion(chat))
        limits = self._limits_of(call)
        refusal = limits.admit(tokens=completion.prompt_tokens + completion.completion_tokens)
        if refusal is not None:
            healthy = _limit_answer(refusal, limits)
            return _response(await self._behaviour.on_limit(call, refusal, healthy))
        call.cleanup.callback(limits.release)
        events = self._generate(call, completion, include_usage=chat.include_usage)
        if chat.stream:
            return EventStream(self._behaviour.stream(call, events), events, headers=limits.headers())
        async with aclosing(events):
            async for _ in events:
                pass
        return _response(replace(json_answer(self._behaviour.body(completion.body())), headers=limits.headers()))

    async def _generate(self, call: Call, completion: Completion, *, include_usage: bool) -> AsyncGenerator[Json, None]:
        """The events of an answer at the engine's pace; one slot is taken meanwhile."""
        # Who asks for usage finds the field in every event, filled in the last one only.
        beside: Json = {"usage": None} if include_usage else {}
        async with self._slots:
            with self._gauge.answering() if self._gauge else nullcontext():
                await asyncio.sleep(self._behaviour.first_token_seconds(call, self._settings.service_seconds))
                yield {**completion.opening_event(), **beside}
                for index, event in enumerate(completion.token_events()):
                    if index:
                        await asyncio.sleep(self._settings.token_seconds)
                    self._count_token()
                    yield {**event, **beside}
        yield {**completion.closing_event(), **beside}
        if include_usage:
            yield completion.usage_event()

    # ---------------------------------------------------------------------------------------------- helpers

    def _count_token(self) -> None:
        self._counters.output_tokens_served += 1
        if self._gauge is not None:
            self._gauge.token()

    def _describe(self, model: str) -> Json:
        owner = SERVER_HEADERS["server"]
        return {"id": model, "object": "model", "created": self._created, "owned_by": owner}

    def _refuse_key(self, call: Call) -> Answer | None:
        return self._behaviour.on_key(call, self._healthy_refusal(_presented_key(call)))

    def _healthy_refusal(self, presented: str) -> Answer | None:
        if hmac.compare_digest(presented.encode(), self._key.encode()):
            return None
        message = (
            f"Incorrect API key provided: {presented[:4]}****."
            if presented
            else "You didn't provide an API key. Send it in a header: Authorization: Bearer YOUR_KEY."
        )
        return error_answer(401, message, code="invalid_api_key", www_authenticate=_REALM)

    def _limits_of(self, call: Call) -> KeyLimits:
        key = _presented_key(call)
        if key not in self._limits:
            self._limits[key] = KeyLimits(
                requests_per_minute=self._settings.requests_per_minute,
                tokens_per_minute=self._settings.tokens_per_minute,
                parallel_limit=self._settings.parallel_limit,
                clock=self._clock,
            )
        return self._limits[key]


class EventStream(Response):
    """Server-sent events. Unlike Starlette's own streams, it leaves watching the client to the gateway."""

    media_type = "text/event-stream"

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        source: AsyncGenerator[Json, None],
        *,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no", **headers})
        del self.headers["content-length"]
        self._parts = parts
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send the parts as they come."""
        # A stream that ends early leaves the source in the middle, with a slot in its hands.
        async with aclosing(self._source), aclosing(self._parts):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for part in self._parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, headers=dict(answer.headers), media_type=answer.media_type)


def _presented_key(call: Call) -> str:
    scheme, _, key = call.headers.get("authorization", "").partition(" ")
    return key if scheme.lower() == "bearer" else ""


def _limit_answer(refusal: Refusal, limits: KeyLimits) -> Answer:
    waiting = refusal.retry_after_seconds
    advice = f"Please try again in {waiting}s."
    if waiting is None:
        advice = "The request is larger than the limit."
    per = "at a time" if refusal.kind == "max_parallel_requests" else "per minute"
    headers = {**limits.headers(), "rate_limit_type": refusal.kind}
    if waiting is not None:
        headers["retry-after"] = str(waiting)
    answer = error_answer(
        429,
        f"Rate limit reached for {refusal.kind} {per}: Limit {refusal.limit}, Used {refusal.used}, "
        f"Requested {refusal.requested}. {advice}",
        type=refusal.kind,
        code="rate_limit_exceeded",
    )
    return replace(answer, headers=headers)


async def _nothing() -> None:
    """Without a server there is no port."""


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or a little more than is allowed of it; `None` when the client went away meanwhile."""
    body = b""
    while len(body) <= _LONGEST_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _replay(body: bytes) -> Receive:
    """The body once more, for the application; that the client went away is the gateway's business."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    return receive


async def _not_found(request: Request, exception: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    return _response(error_answer(404, f"Invalid URL ({request.method} {request.url.path})"))


async def _not_allowed(request: Request, exception: Exception) -> Response:
    allow = (exception.headers or {}).get("Allow", "") if isinstance(exception, HTTPException) else ""
    message = f"Not allowed to {request.method} on {request.url.path}. (HINT: use {allow})"
    return _response(error_answer(405, message, code="method_not_supported", allow=allow))


async def _broken(request: Request, exception: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    message = f"The simulated gateway itself broke: {type(exception).__name__}: {exception}"
    return _response(error_answer(500, message, type="server_error"))
