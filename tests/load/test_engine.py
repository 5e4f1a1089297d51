"""One request in, one answer out, whatever the gateway does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import SecretStr

from pytest_thermal.demo import DemoGateway
from pytest_thermal.load import engine
from pytest_thermal.load.answers import Answer, Target
from pytest_thermal.load.engine import Engine
from pytest_thermal.transport import fast, tls_context
from tests.support.patience import PATIENCE_SECONDS
from tests.transport.fast.helpers import on_uvloop


@pytest.fixture(params=["asyncio", "uvloop", "httpx"], autouse=True)
def _engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever sends the requests, and on whatever loop: the answers are told in the same words."""
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "run", on_uvloop)
    if request.param == "httpx":
        monkeypatch.setattr(fast, "missing", lambda: "a test wants none")


BODY = {"model": "demo-chat", "messages": [{"role": "user", "content": "Write at length."}], "max_tokens": 6}
STREAM = {**BODY, "stream": True, "stream_options": {"include_usage": True}}


def target(gateway: DemoGateway, *, read_seconds: float = PATIENCE_SECONDS) -> Target:
    return Target(
        base_url=gateway.url,
        key=SecretStr(gateway.key),
        connect_seconds=PATIENCE_SECONDS,
        read_seconds=read_seconds,
    )


def ask(
    fault: str | None,
    body: Mapping[str, Any],
    *,
    read_seconds: float = PATIENCE_SECONDS,
    environ: Mapping[str, str] | None = None,
    times: int = 1,
) -> Answer:
    """The last of so many answers to the same question."""

    async def asked(gateway: DemoGateway) -> Answer:
        trust = {"SSL_CERT_FILE": str(gateway.ca_file)} if gateway.ca_file else {}
        connection = Engine(target(gateway, read_seconds=read_seconds), {**(environ or {}), **trust}).connection()
        try:
            for _ in range(times):
                answer = await connection.send(body)
            return answer
        finally:
            await connection.close()

    with DemoGateway(fault=fault) as gateway:
        answer = asyncio.run(asked(gateway))
        assert gateway.key not in repr(answer)
        return answer


@pytest.mark.parametrize("fault", [None, "stream-comments", "stream-no-done", "open", "tls-good", "stream-buffered"])
def test_a_stream_is_read_with_its_times(fault: str | None) -> None:
    answer = ask(fault, STREAM)
    assert (answer.ok, answer.status, answer.error) == (True, 200, "")
    assert answer.completion_tokens == 6
    assert answer.prompt_tokens is not None
    assert answer.text
    assert answer.ttft_seconds is not None
    assert answer.last_token_seconds is not None
    assert 0 < answer.ttft_seconds <= answer.last_token_seconds <= answer.latency_seconds


def test_a_whole_answer_has_no_first_token() -> None:
    answer = ask(None, BODY)
    assert (answer.ok, answer.status, answer.completion_tokens) == (True, 200, 6)
    assert answer.ttft_seconds is None
    assert answer.text
    assert answer.latency_seconds > 0


@pytest.mark.parametrize("fault", ["stream-ignored", "no-usage", "stream-no-usage", "reasoning"])
def test_odd_answers_are_answers(fault: str) -> None:
    answer = ask(fault, STREAM)
    assert answer.ok, answer.error
    assert answer.text


@pytest.mark.parametrize(
    "fault, body, status, error",
    [
        ("stream-cut", STREAM, 200, "answer cut off: "),
        ("stream-truncated", STREAM, 200, "the stream ended early: after 2 tokens, without finish_reason"),
        ("stream-error-event", STREAM, 200, "an error within the stream: “"),
        ("stream-stall", STREAM, 200, "answer cut off: the answer stopped half-way"),
        ("chat-hang", BODY, None, "no answer in time: no answer in time"),
        ("cut-connection", BODY, None, "closed without an answer: "),
        ("refused", BODY, None, "connection refused: "),
        ("tls-expired", BODY, None, "no TLS: "),
        ("bad-gateway", BODY, 502, "502 Bad Gateway: “502 Bad Gateway”"),
        ("key-wrong", BODY, 401, "401 Unauthorized: “Incorrect API key provided"),
        ("no-choices", BODY, 200, "no completion"),
        ("chat-html", BODY, 200, "no completion: “Sign in”"),
        ("empty", BODY, 204, "no completion: the answer is empty"),
    ],
)
def test_a_failure_is_told_in_words(fault: str, body: Mapping[str, Any], status: int | None, error: str) -> None:
    for read_seconds in (0.3, 3.0, 30.0) if fault in {"stream-stall", "chat-hang"} else (PATIENCE_SECONDS,):
        answer = ask(fault, body, read_seconds=read_seconds)
        if answer.status == status:
            break  # else its head was not here in time: a slow machine needs longer for what does come
    assert not answer.ok
    assert answer.status == status
    assert answer.error.startswith(error)
    assert answer.latency_seconds > 0


def test_what_is_asked_for_in_seconds_is_kept() -> None:
    answer = ask("quota-429", BODY, times=4)
    assert (answer.status, answer.trouble) == (429, "429 Too Many Requests")
    assert answer.retry_after_seconds is not None
    assert 1 <= answer.retry_after_seconds <= 60


def test_an_answer_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Target(base_url="", key=None, connect_seconds=10.0, read_seconds=40.0).total_seconds == 90.0

    async def asked(gateway: DemoGateway) -> Answer:
        connection = Engine(target(gateway), {}).connection()
        try:
            return await connection.send({**STREAM, "max_tokens": 1000})
        finally:
            await connection.close()

    with DemoGateway(token_seconds=0.1) as gateway:
        for total_seconds in (0.9, 9.0, 60.0):
            monkeypatch.setattr(Target, "total_seconds", total_seconds)
            answer = asyncio.run(asked(gateway))
            if answer.ttft_seconds is not None:
                break  # else not even the first token was here in time: a slow machine needs longer for it
    assert answer.error == f"answer too slow: not at its end after {total_seconds:g} s, though bytes kept coming"
    assert answer.ttft_seconds is not None


def test_one_that_is_cancelled_answers_so() -> None:
    async def asked(gateway: DemoGateway) -> Answer:
        connection = Engine(target(gateway), {}).connection()
        task = asyncio.create_task(connection.send(BODY))
        await asyncio.sleep(0.05)
        task.cancel()
        answer = await task
        await connection.close()
        return answer

    with DemoGateway(fault="chat-hang") as gateway:
        answer = asyncio.run(asked(gateway))
    assert answer.error == "cancelled: the load was taken off"
    assert answer.latency_seconds > 0


@pytest.mark.parametrize("answers_each", [0, 1], ids=["never", "once"])
def test_a_kept_connection_that_was_closed_is_no_failure(answers_each: int) -> None:
    """A server that closes a connection on its second request, as one does that just gave up a kept one."""
    connections = 0
    serving: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        serving.append(asyncio.current_task())
        for _ in range(answers_each):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 41\r\n\r\n")
            writer.write(b'{"choices": [{"message": {"content": ""}}')
        with contextlib.suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def asked() -> list[Answer]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        where = Target(
            base_url=f"http://127.0.0.1:{port}/v1",
            key=None,
            connect_seconds=PATIENCE_SECONDS,
            read_seconds=PATIENCE_SECONDS,
        )
        connection = Engine(where, {}).connection()
        answers = [await connection.send({}) for _ in range(2)]
        await connection.close()
        server.close()
        await asyncio.gather(*filter(None, serving))
        return answers

    answers = asyncio.run(asked())
    assert [answer.status for answer in answers] == [200 if answers_each else None] * 2
    # A new connection that is closed is a failure, and not tried again.
    assert connections == 2


def test_many_connections_share_their_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(environ: Mapping[str, str]) -> ssl.SSLContext:
        read.append(environ)
        return tls_context(environ)

    monkeypatch.setattr(engine, "tls_context", counted)
    with DemoGateway(fault="tls-good") as gateway:

        async def asked() -> list[Answer]:
            made = Engine(target(gateway), {**os.environ, "SSL_CERT_FILE": str(gateway.ca_file)})
            connections = [made.connection() for _ in range(3)]
            answers = [await connection.send(BODY) for connection in connections]
            for connection in connections:
                await connection.close()
            return answers

        assert [answer.error for answer in asyncio.run(asked())] == ["", "", ""]
    assert len(read) == 1


def test_the_first_listed_model_is_found() -> None:
    def found(fault: str | None) -> str | None:
        with DemoGateway(fault=fault) as gateway:
            return asyncio.run(Engine(target(gateway), {}).first_listed_model())

    assert found(None) == "demo-chat"
    assert found("models-missing") is None
    assert found("refused") is None
