"""A gateway with a client, and the few requests that every check is made of."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Protocol

import httpx
import pytest

from pytest_thermal.demo import DemoGateway
from tests.support.hush import Hush
from tests.support.meeting import Meeting
from tests.support.patience import PATIENCE_SECONDS

SILENCE_SECONDS = 0.4
"""How long a check waits for an answer that must not come."""


class Bed:
    """A running gateway and a client that holds what the bench file would hold."""

    def __init__(self, gateway: DemoGateway, cleanup: ExitStack) -> None:
        self.gateway = gateway
        self._cleanup = cleanup
        self._meeting = Meeting(gateway)
        self.client = self.new_client()

    def new_client(self, *, key: str | None = None, timeout_seconds: float = PATIENCE_SECONDS) -> httpx.Client:
        authority = self.gateway.ca_file
        verify = ssl.create_default_context(cafile=str(authority)) if authority else True
        key = self.gateway.key if key is None else key
        client = httpx.Client(
            base_url=self.gateway.url,
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=timeout_seconds,
            trust_env=False,
            verify=verify,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )
        return self._cleanup.enter_context(client)

    def impatient(self) -> Bed:
        bed = Bed.__new__(Bed)
        bed.gateway, bed._cleanup = self.gateway, self._cleanup
        bed.client = self.new_client(timeout_seconds=SILENCE_SECONDS)
        return bed

    def models(self) -> httpx.Response:
        return self.client.get("/models")

    def chat(self, prompt: str = "Say something", **body: Any) -> httpx.Response:
        message = {"role": "user", "content": prompt}
        return self.client.post("/chat/completions", json={"model": "demo-chat", "messages": [message], **body})

    def stream(self, prompt: str = "Say something", *, usage: bool = True, **body: Any) -> Stream:
        body = {**body, "stream": True}
        if usage:
            body["stream_options"] = {"include_usage": True}
        return Stream(self.chat(prompt, **body).text)

    def burst(self, count: int = 8, **body: Any) -> list[httpx.Response | httpx.TransportError]:
        """So many chats that are there together, each for another number; in the order of the numbers."""

        def ask(number: int) -> httpx.Response | httpx.TransportError:
            try:
                # Prompts of different lengths, so that usage too tells one answer from another.
                prompt = "please " * number + f"Reply with only the number {number}"
                return self.chat(prompt, **body)
            except httpx.TransportError as error:
                return error

        with self._meeting.of(count), ThreadPoolExecutor(count) as pool:
            return list(pool.map(ask, range(count)))

    def statuses(self, count: int = 8) -> list[int | str]:
        """The sorted outcome of a burst: statuses, and names of errors."""
        outcome = self.burst(count)
        return sorted((r.status_code if isinstance(r, httpx.Response) else type(r).__name__ for r in outcome), key=str)


class Stream:
    """A stream as it came, and what its events say."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        data = [line.removeprefix("data: ") for line in raw.splitlines() if line.startswith("data: ")]
        self.done = data[-1:] == ["[DONE]"]
        self.events: list[dict[str, Any]] = [json.loads(text) for text in data if text != "[DONE]"]

    @property
    def tokens(self) -> list[str]:
        deltas = [choice["delta"] for event in self.events for choice in event.get("choices", [])]
        return [delta["content"] for delta in deltas if delta.get("content")]

    @property
    def finish_reasons(self) -> list[str]:
        choices = [choice for event in self.events for choice in event.get("choices", [])]
        return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]

    @property
    def usages(self) -> list[dict[str, Any]]:
        return [event["usage"] for event in self.events if event.get("usage")]


class MakeBed(Protocol):
    def __call__(self, fault: str | None = None, **settings: Any) -> Bed: ...


@pytest.fixture
def make_bed() -> Iterator[MakeBed]:
    with ExitStack() as cleanup:

        def make(fault: str | None = None, **settings: Any) -> Bed:
            settings = {"service_seconds": 0.001, "token_seconds": 0.0, **settings}
            gateway = cleanup.enter_context(DemoGateway(fault=fault, **settings))
            return Bed(gateway, cleanup)

        yield make


@pytest.fixture
def hush(monkeypatch: pytest.MonkeyPatch) -> Hush:
    """Clients give up when the gateway will say no more, and not sooner."""
    hush = Hush.over_sockets(monkeypatch)
    hush.told_by_the_demo(monkeypatch)
    return hush


@pytest.fixture
def bed(make_bed: Callable[[], Bed]) -> Bed:
    """A healthy one."""
    return make_bed()
