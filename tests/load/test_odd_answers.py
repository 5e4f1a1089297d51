"""Answers that no two gateways write alike, and what the load counts them as: over a socket, by whatever sends."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from pytest_thermal.load.answers import Answer, Target
from pytest_thermal.load.engine import Engine
from pytest_thermal.transport import fast
from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES
from pytest_thermal.transport.fast.errors import LineError
from pytest_thermal.transport.fast.unpacking import Unpacker
from tests.transport.fast.helpers import on_uvloop
from tests.transport.wire import Peer, Wire

KEY = "sk-live-Abc0123456789xyz"


@pytest.fixture(params=["asyncio", "uvloop", "httpx"], autouse=True)
def _engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "run", on_uvloop)
    if request.param == "httpx":
        monkeypatch.setattr(fast, "missing", lambda: "a test wants none")


def event(data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def delta(finish: object = None, **said: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": said, "finish_reason": finish}]})


def usage(prompt: object, completion: object) -> bytes:
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


def chunked(*parts: bytes, kind: str = "text/event-stream", last: bytes = b"0\r\n\r\n", more: str = "") -> bytes:
    label = f"content-type: {kind}\r\n" if kind else ""
    head = f"HTTP/1.1 200 OK\r\n{label}{more}transfer-encoding: chunked\r\n\r\n"
    return head.encode() + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + last


def whole(data: Any, *, more: str = "") -> bytes:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return f"HTTP/1.1 200 OK\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body


TOKENS = (delta(content="a"), delta(content="b"), delta(content="c"))
END = (delta("stop"), usage(7, 3), b"data: [DONE]\n\n")
DONE = b"data: [DONE]\n\n"
COMPLETION = {
    "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}
TOO_LONG = "maximum context length is 4096"
DEFLATE = "content-encoding: deflate\r\n"


def bare(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


@dataclass(frozen=True)
class Case:
    """What is sent, and what is counted: tokens, or words of the trouble."""

    content: bytes
    tokens: int | None = None
    prompt: int | None = None
    trouble: str = ""
    streamed: bool = True


CASES = {
    "calls of a tool": Case(
        chunked(*[delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}])] * 3, delta("tool_calls"), DONE), 3
    ),
    "pieces of content": Case(chunked(*[delta(content=[{"type": "text", "text": "a"}])] * 3, delta("stop"), DONE), 3),
    "usage of zeros": Case(chunked(*TOKENS, delta("stop"), usage(0, 0), DONE), 3),
    "usage that is none": Case(chunked(*TOKENS, usage(True, -3), DONE), 3),
    "usage in floats": Case(chunked(*TOKENS, usage(7.0, 3.0), DONE), 3, 7),
    "a label in capitals": Case(chunked(*TOKENS, *END, kind="Text/Event-Stream; charset=UTF-8"), 3, 7),
    "events called text": Case(
        chunked(b"\xef\xbb", b"\xbf\nda", b"ta: " + TOKENS[0][6:], *TOKENS[1:], *END, kind="text/plain"), 3, 7
    ),
    "events without a label": Case(chunked(*TOKENS, *END, kind=""), 3, 7),
    "one piece called events": Case(chunked(json.dumps(COMPLETION).encode()), 2, 5, streamed=False),
    "an error called events": Case(
        chunked(json.dumps({"error": {"message": TOO_LONG}}).encode()), trouble=f"no completion: “{TOO_LONG}”"
    ),
    "deflate without its head": Case(chunked(bare(b"".join((*TOKENS, *END))), more=DEFLATE), 3, 7),
    "done, then torn": Case(chunked(*TOKENS, *END, last=b""), 3, 7),
    "finished, then torn": Case(chunked(*TOKENS, *END[:2], last=b""), 3, 7),
    "torn": Case(chunked(*TOKENS, last=b""), trouble="answer cut off: "),
    "done, and no token": Case(chunked(DONE), trouble="no completion: the stream came to its end without a token"),
    "finished, and no token": Case(chunked(delta("stop"), DONE), trouble="no completion: "),
    "no token that shows": Case(chunked(*END), 3, 7, streamed=False),
    "an error as an object": Case(
        chunked(*TOKENS, event({"object": "error", "message": TOO_LONG, "code": 400}), DONE),
        trouble=f"an error within the stream: “{TOO_LONG}”",
    ),
    "an error by its kind": Case(
        chunked(b"event: error\ndata: " + TOO_LONG.encode() + b"\n\n", DONE),
        trouble=f"an error within the stream: “{TOO_LONG}”",
    ),
    "an error as a detail": Case(
        chunked(event({"detail": TOO_LONG}), DONE), trouble=f"an error within the stream: “{TOO_LONG}”"
    ),
    "broken off": Case(
        chunked(*TOKENS, delta("abort"), DONE), trouble="the engine broke off: finish_reason abort after 3 tokens"
    ),
    "whole": Case(whole(COMPLETION), 2, 5, streamed=False),
    "whole, no choice": Case(whole({"choices": [None]}), trouble="no completion: "),
    "whole, no message": Case(whole({"choices": [{}]}), trouble="no completion: "),
    "whole, and an error": Case(
        whole({**COMPLETION, "error": {"message": TOO_LONG}}), trouble=f"an error within the answer: “{TOO_LONG}”"
    ),
    "whole, broken off": Case(
        whole({"choices": [{"message": {"content": ""}, "finish_reason": "error"}]}), trouble="the engine broke off: "
    ),
    "the key where it is cut": Case(
        whole(b"").replace(b"200 OK", b"401 Unauthorized")[: -len(b"content-length: 0\r\n\r\n")]
        + b"content-length: 210\r\n\r\n"
        + b"w" * 185
        + b" "
        + KEY.encode(),
        trouble="401 Unauthorized: “",
    ),
}


def asked(url: str, times: int) -> list[Answer]:
    async def work() -> list[Answer]:
        target = Target(base_url=url, key=SecretStr(KEY), connect_seconds=20.0, read_seconds=20.0)
        connection = Engine(target, {}).connection()
        try:
            return [await connection.send({"stream": True}) for _ in range(times)]
        finally:
            await connection.close()

    return asyncio.run(work())


def test_each_is_counted_as_what_it_is() -> None:
    cases = list(CASES.values())
    number = 0

    def script(peer: Peer) -> None:
        nonlocal number
        while peer.request() is not None:
            case = cases[number]
            number += 1
            peer.send(case.content)
            if case.content.endswith(b"0\r\n\r\n") or b"content-length" in case.content:
                continue
            return

    with Wire(script) as server:
        answers = asked(server.url, len(cases))
    for (name, case), answer in zip(CASES.items(), answers, strict=True):
        assert answer.error.startswith(case.trouble), (name, answer)
        assert answer.ok is not bool(case.trouble), (name, answer)
        assert "sk-l" not in answer.error
        if case.tokens is not None:
            assert (answer.completion_tokens, answer.prompt_tokens) == (case.tokens, case.prompt), name
            assert (answer.ttft_seconds is not None) is case.streamed, name
            assert len(answer.gaps_seconds) == (case.tokens - 1 if case.streamed else 0), name


def test_packed_bodies_come_out_whole() -> None:
    content = b"data: " + b"heat " * 5000
    members = gzip.compress(content[:900]) + gzip.compress(content[900:]) + b"\0" * 8
    packed = {"gzip": members, "x-gzip": gzip.compress(content), "deflate": zlib.compress(content)}
    for encoding, body in [*packed.items(), ("deflate", bare(content))]:
        for size in (1, 7, len(body)):
            unpacker = Unpacker(encoding)
            parts = [unpacker.feed(body[at : at + size]) for at in range(0, len(body), size)]
            assert b"".join(parts) == content, (encoding, size)


def test_what_is_not_packed_as_it_says_is_no_answer() -> None:
    bomb = gzip.compress(bytes(BODY_LIMIT_BYTES + 1))
    for encoding, body, words in (
        ("gzip", b"no gzip", "not in the encoding"),
        ("deflate", b"\xff\xff no deflate", "not in the encoding"),
        ("gzip", bomb, "unpacks to more than"),
    ):
        with pytest.raises(LineError, match=words):
            Unpacker(encoding).feed(body)
    with pytest.raises(LineError, match="not asked for"):
        Unpacker("br")
