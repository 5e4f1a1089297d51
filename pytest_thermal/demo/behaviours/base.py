"""Every point at which a fault may bite, each with what a healthy gateway does there."""
# ruff: noqa: ARG002

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.chat import ChatRequest, Completion
from pytest_thermal.demo.limits import Refusal
from pytest_thermal.demo.wire import Answer, CertificateKind, Json, json_answer

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the simulated engine serves: `DemoGateway` says what each means."""

    models: tuple[str, ...]
    service_seconds: float
    token_seconds: float
    slots: int
    requests_per_minute: int | None
    tokens_per_minute: int | None
    parallel_limit: int | None


class Behaviour:
    """A healthy gateway. A fault overrides what it spoils; each gateway has its own, with its own state."""

    # What the bench file says and what is there.
    scheme: Literal["http", "https"] = "http"
    host: str | None = None
    """Named in the address in place of the real one."""
    url_path: str = "/v1"
    served_under: str = "/v1"
    listening: Literal["serves", "refuses", "full"] = "serves"
    certificate: CertificateKind | None = None
    banner: bytes | None = None
    """Sent to whoever connects, in place of speaking HTTP."""
    lifetime_requests: int | None = None
    """The port closes after so many."""

    def bench_key(self, key: str) -> str:
        """The key in the bench's hands, made from the one that the gateway accepts."""
        return key

    def settings(self, settings: Settings) -> Settings:
        """How the engine serves."""
        return settings

    # One request, outside in.

    async def on_request(self, call: Call) -> Answer | None:
        """An answer to any request, whatever it asks for; `None` to go on."""
        return None

    def on_key(self, call: Call, refusal: Answer | None) -> Answer | None:
        """The refusal of a key, `None` to accept it. `refusal` is what a healthy gateway says."""
        return refusal

    def on_models(self, call: Call, listing: Json) -> Answer:
        """The answer to `GET /v1/models`."""
        return json_answer(listing)

    def read(self, chat: ChatRequest) -> ChatRequest:
        """The request as the gateway understands it."""
        return chat

    async def on_chat(self, call: Call, chat: ChatRequest) -> Answer | None:
        """An answer before anything is generated; `None` to go on."""
        return None

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """What was generated."""
        return completion

    async def on_limit(self, call: Call, refusal: Refusal, answer: Answer) -> Answer:
        """The answer when a limit is reached. `answer` is what a healthy gateway says."""
        return answer

    def first_token_seconds(self, call: Call, seconds: float) -> float:
        """How long the engine works before the first token."""
        return seconds

    def body(self, body: Json) -> Json:
        """The JSON of an answer that is not streamed."""
        return body

    def event(self, event: Json) -> Json | None:
        """One event of a stream; `None` leaves it out."""
        return event

    async def stream(self, call: Call, events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
        """The bytes of a stream; `events` come at the pace at which they are generated."""
        async for event in events:
            sent = self.event(event)
            if sent is not None:
                yield encode(sent)
        yield DONE

    def headers(self) -> Mapping[str, str]:
        """Further headers of every answer."""
        return {}


def encode(event: Json) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(event).encode() + b"\n\n"
