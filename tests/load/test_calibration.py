"""A server of known speed, and what the engine is found to add to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping

import httpx
import pytest

from pytest_thermal.load import calibration
from pytest_thermal.load.answers import Answer, Target
from pytest_thermal.load.calibration import TOKENS, Calibration, calibrate
from pytest_thermal.load.engine import Engine
from tests.load.helpers import MARK, PATIENCE_SECONDS, marked, new_mark, until

ASKED = {"messages": [{"role": "user", "content": "x"}]}


@pytest.fixture
def url() -> Iterator[str]:
    command = [sys.executable, "-m", "pytest_thermal.load.reference_server", "--tokens", "4", "--token-seconds", "0.01"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(PATIENCE_SECONDS) == 0


def answered(url: str, *bodies: Mapping[str, object]) -> list[Answer]:
    async def ask() -> list[Answer]:
        connection = Engine(
            Target(base_url=url, key=None, connect_seconds=PATIENCE_SECONDS, read_seconds=PATIENCE_SECONDS), {}
        ).connection()
        try:
            return [await connection.send(body) for body in bodies]
        finally:
            await connection.close()

    return asyncio.run(ask())


def test_the_reference_server_says_when_it_answered(url: str) -> None:
    whole, stream, again = answered(url, ASKED, {**ASKED, "stream": True}, ASKED)
    assert [answer.error for answer in (whole, stream, again)] == ["", "", ""]
    for answer in (whole, again):
        had, sent = map(float, answer.text.split())
        assert answer.started_seconds <= had
        assert had + 0.09 < sent <= answer.started_seconds + answer.latency_seconds
    stamps = [float(word) for word in stream.text.split()]
    assert (len(stamps), stream.completion_tokens, len(stream.gaps_seconds)) == (4, 4, 3)
    assert stamps == sorted(stamps)
    assert stream.ttft_seconds is not None
    at = stream.started_seconds + stream.ttft_seconds
    for stamp, gap in zip(stamps, [*stream.gaps_seconds, 0.0], strict=True):
        assert stamp <= at + 1e-6
        at += gap


def test_the_reference_server_counts_what_it_answered(url: str) -> None:
    def said() -> dict[str, object]:
        found = httpx.get(f"{url}/models", trust_env=False, timeout=PATIENCE_SECONDS)
        return dict(found.raise_for_status().json())

    assert said()["answered"] == 0
    assert not any(answer.error for answer in answered(url, ASKED, {**ASKED, "stream": True}, ASKED))
    assert said() == {"object": "list", "data": [{"id": "m", "object": "model"}], "answered": 3}


@pytest.mark.parametrize("stream", [True, False])
def test_a_calibration(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = new_mark()
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setattr(calibration, "START_SECONDS", PATIENCE_SECONDS)
    for seconds in (2.0, 8.0, 60.0):  # its server has to be up by then
        found = asyncio.run(calibrate(parallel=2, stream=stream, seconds=seconds))
        if found.requests:
            break
    assert not found.trouble
    assert found.added_p50_ms is not None
    assert found.added_p99_ms is not None
    assert 0 <= found.added_p50_ms <= found.added_p99_ms
    assert (found.gap_error_p99_ms is not None) is (found.first_token_p50_ms is not None) is stream
    assert found.text.startswith("the load engine adds ")
    assert found.engine == "httptools on asyncio"
    assert Calibration.of_facts(found.facts()) == found
    assert TOKENS > 1
    until(lambda: not marked(mark))


def test_without_a_server_there_are_no_figures_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "own_program", lambda *_: ("/no/such/program",))
    found = asyncio.run(calibrate(parallel=2, stream=True, seconds=0.1))
    assert (found.requests, found.added_p50_ms) == (0, None)
    assert found.text.startswith("not calibrated (")
    monkeypatch.setattr(calibration, "own_program", lambda *_: ("sleep", "60"))
    monkeypatch.setattr(calibration, "START_SECONDS", 0.05)
    found = asyncio.run(calibrate(parallel=2, stream=True, seconds=0.1))
    assert found.trouble == "the reference server was not there in time"
    monkeypatch.setattr(calibration, "own_program", lambda *_: ("echo", "this is no port"))
    monkeypatch.setattr(calibration, "START_SECONDS", PATIENCE_SECONDS)
    assert asyncio.run(calibrate(parallel=2, stream=True, seconds=0.1)).trouble


class _WholeAllTheSame:
    """An engine whose answers are whole just when they are cancelled, as a stream is after its ``[DONE]``."""

    name = "httptools on asyncio"

    def __init__(self, *_: object) -> None:
        self.asked = 0

    def connection(self) -> _WholeAllTheSame:
        return self

    async def send(self, _: object) -> Answer:
        self.asked += 1
        assert self.asked < 100, "it goes on and on"
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(PATIENCE_SECONDS if self.asked == 1 else 0.0)
        return Answer(started_seconds=0.0, status=200, latency_seconds=0.1)

    async def close(self) -> None:
        pass


def test_a_calibration_ends_though_its_last_answer_was_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.asynccontextmanager
    async def server(_: float) -> AsyncIterator[str]:
        yield "http://127.0.0.1:1/v1"

    monkeypatch.setattr(calibration, "_server", server)
    monkeypatch.setattr(calibration, "Engine", _WholeAllTheSame)
    found = asyncio.run(calibrate(parallel=1, stream=True, seconds=0.1))
    assert found.trouble == "no answer came in time"
