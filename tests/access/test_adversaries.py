"""Gateways that nobody has seen yet: odd and right, or odd and wrong, and the whole ladder against each."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from pytest_thermal.access import CHECKS, Ladder
from pytest_thermal.access.probes import capacity, front
from pytest_thermal.model import Finding, Outcome
from pytest_thermal.transport import Exchange, deadline
from tests.access.conftest import KEY
from tests.support.clock import Leaping
from tests.transport.wire import Asked, Peer, Script, Wire, always, answer

MakeLadder = Callable[..., Ladder]
MakeWire = Callable[..., Wire]
Dress = Callable[[bytes], bytes]
"""Puts JSON (or events) on the wire in some odd way."""

ADVISORY = {check.id for check in CHECKS if check.advisory}
MODELS = {"object": "list", "data": [{"id": "demo-chat"}, {"id": "demo-chat-mini"}]}
NUMBERS = itertools.count()


def completion(body: dict[str, Any], **more: Any) -> dict[str, Any]:
    prompt = sum(len(message["content"].split()) for message in body["messages"]) + 4
    letter = re.search(r"letter (\w)", body["messages"][0]["content"])
    return {
        "id": f"chatcmpl-{next(NUMBERS)}",
        "model": body["model"],
        "choices": [{"message": {"content": letter[1] if letter else "OK"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1},
        **more,
    }


def events(body: dict[str, Any]) -> bytes:
    whole = completion(body)
    chunks = [
        {"choices": [{"delta": {"content": "one"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": whole["usage"]},
    ]
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"


def gateway(
    *,
    dress: Dress = answer,
    models: Callable[[], object] = lambda: MODELS,
    chat: Callable[[dict[str, Any]], object] = completion,
    key: str = KEY,
    keyless: Callable[[Peer, Asked], None] | None = None,
    close: bool = False,
) -> Script:
    """A gateway that is right, but for what the arguments change."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.headers.get("authorization") != f"Bearer {key}":
                if keyless is None:
                    peer.send(answer({"error": "Unauthorized"}, status="401 Unauthorized"))
                else:
                    keyless(peer, asked)
            elif asked.method == "GET":
                path = asked.target == "/v1/models"
                peer.send(dress(json.dumps(models()).encode()) if path else answer({}, status="404 Not Found"))
            else:
                body = json.loads(asked.body)
                said = events(body) if body.get("stream") else json.dumps(chat(body)).encode()
                peer.send(dress(said))
            if close:
                return

    return script


def climb(ladder: Ladder) -> list[Finding]:
    return [ladder.finding(check.id) for check in CHECKS]


def assert_green(findings: list[Finding]) -> None:
    bad = [finding.message for finding in findings if finding.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE)]
    assert bad == []
    assert "concurrency_answers" in {finding.check for finding in findings if finding.outcome is Outcome.PASSED}


def first_bad(findings: list[Finding]) -> Finding:
    return next(
        finding
        for finding in findings
        if finding.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE) and finding.check not in ADVISORY
    )


# --- odd and right -------------------------------------------------------------------------------------------


def chunked(*, size: int, trailer: bytes = b"", head: bytes = b"") -> Dress:
    def dress(content: bytes) -> bytes:
        parts = [content[start : start + size] for start in range(0, len(content), size)]
        body = b"".join(b"%x\r\n" % len(part) + part + b"\r\n" for part in parts)
        return (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" + head + b"\r\n" + body + b"0\r\n" + trailer + b"\r\n"
        )

    return dress


def headed(head: bytes) -> Dress:
    return lambda content: b"HTTP/1.1 200 OK\r\n" + head + b"content-length: %d\r\n\r\n" % len(content) + content


DRESSES: dict[str, Dress] = {
    "plain": answer,
    "gzip": lambda content: answer(gzip.compress(content), content_encoding="gzip"),
    "a byte a chunk": chunked(size=1),
    "trailers": chunked(size=50, trailer=b"x-usage: 3\r\n"),
    "labelled as a page": lambda content: answer(content, kind="text/html"),
    "labelled as a download": lambda content: answer(content, kind="application/octet-stream"),
    "without a label": lambda content: answer(content, kind=""),
    "byte order mark": lambda content: answer(b"\xef\xbb\xbf" + content),
    "100 first": lambda content: b"HTTP/1.1 100 Continue\r\n\r\n" + answer(content),
    "latin-1 in a header": lambda content: answer(content, server="Prüfstand"),
    "no date": headed(b""),
    "a date that is none": headed(b"date: yesterday\r\n"),
    "a date out of every calendar": headed(b"date: Mon, 30 Nov 2026 9999999999907:14:48 GMT\r\n"),
    "bare line feeds": lambda content: b"HTTP/1.1 200 OK\ncontent-length: %d\n\n" % len(content) + content,
    "another 2xx": lambda content: answer(content, status="203 Non-Authoritative Information"),
    "blank lines before it": lambda content: answer(b"\n\n" + content),
}


@pytest.mark.parametrize("name", DRESSES)
def test_a_right_gateway_is_green_however_it_dresses(name: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    assert_green(climb(make_ladder(wire(gateway(dress=DRESSES[name])).url)))


@pytest.mark.parametrize("dress", [DRESSES["plain"], lambda content: b"HTTP/1.0 200 OK\r\n\r\n" + content])
def test_a_gateway_that_closes_after_each_answer_is_green(
    dress: Dress, make_ladder: MakeLadder, wire: MakeWire
) -> None:
    assert_green(climb(make_ladder(wire(gateway(dress=dress, close=True)).url)))


def test_an_ipv6_address_is_green(make_ladder: MakeLadder, wire: MakeWire) -> None:
    try:
        server = wire(gateway(), host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    assert_green(climb(make_ladder(server.url)))


def test_an_ipv6_only_path_is_looked_for_on_the_same_origin(make_ladder: MakeLadder, wire: MakeWire) -> None:
    try:
        server = wire(gateway(), host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    finding = first_bad(climb(make_ladder(f"http://{server.netloc}/api/v1")))
    assert finding.evidence["right_base_url"] == server.url


@pytest.mark.parametrize("key", ["a b", "x" * 3000, "!#$%&'*+-.^_`|~:/=", "{}", "7"])
def test_an_unusual_key_is_green(key: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    assert_green(climb(make_ladder(wire(gateway(key=key)).url, key=key)))


LISTS: dict[str, Callable[[], object]] = {
    "each model twice": lambda: {"data": [*MODELS["data"], *MODELS["data"]]},
    "further keys": lambda: {**MODELS, "models": [], "has_more": False, "success": True, "code": 0, "message": ""},
    "very many": lambda: {"data": [*MODELS["data"], *({"id": f"model-{n}", "x": "y" * 50} for n in range(10_000))]},
    "ids with spaces and signs": lambda: {"data": [*MODELS["data"], {"id": "模型 ☃ /a:b@c"}]},
}


@pytest.mark.parametrize("name", LISTS)
def test_an_odd_model_list_is_green(name: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    findings = climb(make_ladder(wire(gateway(models=LISTS[name])).url))
    assert_green(findings)
    assert all(len(finding.message) < 1000 for finding in findings)


CHATS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "one id for all": lambda body: completion(body, id="chatcmpl"),
    "no id": lambda body: completion(body, id=None),
    "a number as id": lambda body: completion(body, id=7),
    "ids of a thousand": lambda body: completion(body, id=f"chatcmpl-{random.randrange(999)}"),
    "error: null": lambda body: completion(body, error=None),
    "a path as model": lambda body: completion(body, model=f"/models/{body['model']}/"),
    "extra keys": lambda body: completion(body, base_resp={"status_code": 0}, code=0, msg="success", timings={}),
    "says nothing": lambda body: completion(
        body, choices=[{"message": {"role": "assistant", "content": None}, "finish_reason": "length"}]
    ),
    "control characters": lambda body: completion(body, choices=[{"message": {"content": "\x00\x1b[2J\ufffd"}}]),
}


@pytest.mark.parametrize("name", CHATS)
def test_an_odd_chat_is_green(name: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    assert_green(climb(make_ladder(wire(gateway(chat=CHATS[name])).url)))


def test_whole_numbers_written_as_floats_are_green(make_ladder: MakeLadder, wire: MakeWire) -> None:
    def chat(body: dict[str, Any]) -> dict[str, Any]:
        whole = completion(body)
        return {**whole, "usage": {name: float(count) for name, count in whole["usage"].items()}}

    assert_green(climb(make_ladder(wire(gateway(chat=chat)).url)))


def test_a_gateway_that_sends_blanks_while_it_works_is_green(make_ladder: MakeLadder, wire: MakeWire) -> None:
    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.headers.get("authorization") != f"Bearer {KEY}":
                peer.send(answer({"error": "Unauthorized"}, status="401 Unauthorized"))
                continue
            peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(3):
                peer.send(b"1\r\n\n\r\n")
                peer.hold(0.02)
            body = json.loads(asked.body or b"{}")
            said = (
                json.dumps(MODELS).encode()
                if asked.method == "GET"
                else events(body)
                if body.get("stream")
                else json.dumps(completion(body)).encode()
            )
            peer.send(b"%x\r\n" % len(said) + said + b"\r\n0\r\n\r\n")

    assert_green(climb(make_ladder(wire(script).url)))


def test_a_session_does_not_stand_in_for_the_key(make_ladder: MakeLadder, wire: MakeWire) -> None:
    def keyless(peer: Peer, asked: Asked) -> None:
        known = "session=1" in asked.headers.get("cookie", "")
        peer.send(answer(MODELS) if known else answer({"error": "Unauthorized"}, status="401 Unauthorized"))

    server = wire(gateway(dress=lambda content: answer(content, set_cookie="session=1; Path=/"), keyless=keyless))
    assert make_ladder(server.url).finding("key").outcome is Outcome.PASSED


# --- clocks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hours, warned", [(0, False), (2, True), (-2, True)])
def test_a_clock_that_goes_wrong_is_a_warning(
    hours: int, warned: bool, make_ladder: MakeLadder, wire: MakeWire
) -> None:
    date = format_datetime(datetime.now(timezone.utc) + timedelta(hours=hours), usegmt=True)
    finding = make_ladder(wire(gateway(dress=lambda content: answer(content, date=date))).url).finding("http")
    assert finding.outcome is Outcome.PASSED
    assert bool(finding.warnings) is warned


@pytest.mark.parametrize("sent_after, warned", [(0, False), (300, False), (600, False), (800, True), (-200, True)])
def test_an_answer_that_we_took_long_to_read_is_no_clock_that_goes_wrong(sent_after: int, warned: bool) -> None:
    """As where this machine was suspended while the answer waited."""
    begin = datetime(2026, 11, 30, 7, tzinfo=timezone.utc)
    date = format_datetime(begin + timedelta(seconds=sent_after), usegmt=True)
    found = Exchange(
        method="GET",
        url="http://gw/v1/models",
        status=200,
        headers=httpx.Headers({"date": date}),
        started_unix_seconds=begin.timestamp(),
        latency_seconds=600.0,
    )
    assert bool(front._clock_warning(found)) is warned


# --- what never ends -----------------------------------------------------------------------------------------


def dripping(*, on: str, clock: Leaping) -> Script:
    """Right, but for requests of one kind, which get a byte each second for ever."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.headers.get("authorization") != f"Bearer {KEY}":
                peer.send(answer({"error": "Unauthorized"}, status="401 Unauthorized"))
                continue
            body = json.loads(asked.body or b"{}")
            kind = "models" if asked.method == "GET" else "stream" if body.get("stream") else "chat"
            if kind == on:
                peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n")
                peer.drip(b": waiting\n" * 9999, every_seconds=1, clock=clock)
                return
            said = MODELS if kind == "models" else completion(body)
            peer.send(answer(events(body)) if kind == "stream" else answer(said))

    return script


@pytest.mark.parametrize("on, layer", [("models", "http"), ("chat", "chat"), ("stream", "stream")])
def test_a_drip_does_not_hold_a_probe(
    on: str, layer: str, make_ladder: MakeLadder, wire: MakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaping = Leaping()
    monkeypatch.setattr(deadline, "time", leaping)
    ladder = make_ladder(wire(dripping(on=on, clock=leaping)).url, read_seconds=15, connect_seconds=10)
    finding = first_bad(climb(ladder))
    assert finding.layer == layer
    assert "bytes kept coming" in finding.seen
    assert leaping.ahead_seconds >= 20  # no sooner than twice as long as for the next bytes


@pytest.mark.parametrize("path", ["models", "chat"])
def test_an_answer_without_end_is_not_kept(path: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    endless = [{"id": "m" * 1000}] * 3000
    server = wire(
        gateway(models=lambda: {"data": endless})
        if path == "models"
        else gateway(chat=lambda body: completion(body, filler="x" * 3_000_000))
    )
    finding = first_bad(climb(make_ladder(server.url)))
    assert finding.layer == ("http" if path == "models" else "chat")
    assert "longer than 2,000,000 bytes" in finding.seen


# --- redirects and other paths -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
)
def test_the_key_does_not_follow_a_redirect(status: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    elsewhere = wire(always(answer(MODELS)))
    server = wire(always(answer(None, status=status, location=f"{elsewhere.url}/models")))
    finding = first_bad(climb(make_ladder(server.url)))
    assert finding.layer == "http"
    assert f"set base_url to {elsewhere.url}" in finding.advice
    assert elsewhere.asked == []


def console(api: str) -> Script:
    """A console's page on every path but its API's."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.target == f"{api}/models":
                peer.send(answer(MODELS))
            else:
                peer.send(answer(b"<!doctype html><html><title>Console</title></html>", kind="text/html"))

    return script


@pytest.mark.parametrize("api", ["/api/v1", "/openai/v1"])
def test_a_consoles_page_hides_an_api_at_another_path(api: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    server = wire(console(api))
    finding = first_bad(climb(make_ladder(server.url)))
    assert finding.layer == "http"
    assert finding.evidence["right_base_url"] == server.url.removesuffix("/v1") + api
    assert "an HTML page" in finding.seen


def test_a_page_everywhere_is_a_page(make_ladder: MakeLadder, wire: MakeWire) -> None:
    finding = first_bad(climb(make_ladder(wire(console("/never")).url)))
    assert finding.layer == "http"


def test_a_list_elsewhere_is_preferred_to_a_refusal_elsewhere(make_ladder: MakeLadder, wire: MakeWire) -> None:
    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.target == "/gw/v1/models":
                peer.send(answer(MODELS))
            elif asked.target in ("/models", "/api/v1/models"):
                peer.send(answer({"error": "Unauthorized"}, status="401 Unauthorized"))
            else:
                peer.send(answer({"detail": "Not Found"}, status="404 Not Found"))

    server = wire(script)
    finding = first_bad(climb(make_ladder(server.url)))
    assert finding.evidence["right_base_url"] == server.url.replace("/v1", "/gw/v1")


def test_other_paths_are_not_tried_for_ever(
    make_ladder: MakeLadder, wire: MakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaping = Leaping()
    monkeypatch.setattr(front, "time", leaping)

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.target != "/v1/models":
                leaping.leap(front.PATHS_SECONDS / 2)
            peer.send(answer({"detail": "Not Found"}, status="404 Not Found"))

    server = wire(script)
    finding = first_bad(climb(make_ladder(server.url, default=None, fallback=None)))
    assert finding.layer == "models"
    assert len({asked.target for asked in server.asked}) < 6


# --- the key -------------------------------------------------------------------------------------------------


def drop(peer: Peer, asked: Asked) -> None:
    peer.reset()


def busy(peer: Peer, asked: Asked) -> None:
    peer.send(answer(b"busy", status="503 Service Unavailable"))


def login(peer: Peer, asked: Asked) -> None:
    peer.send(answer(b"<html>login", kind="text/html"))


def refuse(peer: Peer, asked: Asked) -> None:
    peer.send(answer({"error": "Unauthorized"}, status="401 Unauthorized"))


def list_only(peer: Peer, asked: Asked) -> None:
    peer.send(answer(MODELS) if asked.method == "GET" else answer({"error": "no"}, status="401 Unauthorized"))


def told_with_200(peer: Peer, asked: Asked) -> None:
    peer.send(answer({"error_code": 110, "error_msg": "Access token invalid"}))


def list_and_200(peer: Peer, asked: Asked) -> None:
    peer.send(answer(MODELS if asked.method == "GET" else {"success": False, "message": "no key"}))


def welcome(peer: Peer, asked: Asked) -> None:
    peer.send(answer(MODELS if asked.method == "GET" else completion(json.loads(asked.body))))


def break_down(peer: Peer, asked: Asked) -> None:
    peer.send(answer(b"Internal Server Error", status="500 Internal Server Error", kind="text/plain"))


@pytest.mark.parametrize(
    "keyless, outcome, words",
    [
        (refuse, Outcome.PASSED, "GET /v1/models answers with it and not without it"),
        (login, Outcome.PASSED, "GET /v1/models answers with it and not without it"),
        (break_down, Outcome.PASSED, "GET /v1/models answers with it and not without it"),
        (told_with_200, Outcome.PASSED, "GET /v1/models answers with it and not without it"),
        (list_and_200, Outcome.PASSED, "POST /v1/chat/completions answers with it and not without it"),
        (welcome, Outcome.SKIPPED, "a chat without one is answered too"),
        (list_only, Outcome.PASSED, "POST /v1/chat/completions answers with it and not without it"),
        (drop, Outcome.INCONCLUSIVE, "a chat without the key ended in"),
        (busy, Outcome.INCONCLUSIVE, "a chat without the key ended in"),
    ],
)
def test_a_key_is_proven_by_a_refusal_and_not_by_a_failure(
    keyless: Callable[[Peer, Asked], None],
    outcome: Outcome,
    words: str,
    make_ladder: MakeLadder,
    wire: MakeWire,
) -> None:
    finding = make_ladder(wire(gateway(keyless=keyless)).url).finding("key")
    assert finding.outcome is outcome, finding.message
    assert words in finding.seen


# --- anything at all -----------------------------------------------------------------------------------------


JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**70,
    0.5,
    1e308,
    "",
    "x",
    "5",
    "\x00\x1b[2J",
    "…" * 50,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"a": 1},
    {"message": None},
    {"content": {}},
    [{"id": None}],
    [{"id": "a"}, 5],
    {"message": "x", "code": []},
)
STATUSES = (200, 200, 200, 201, 204, 301, 400, 401, 403, 404, 408, 422, 429, 500, 502, 503, 529, 599)
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"retry-after": "x"},
    {"retry-after": "0"},
    {"content-type": "text/html"},
    {"x-ratelimit-limit-requests": "²"},
    {"location": "::"},
    {"www-authenticate": "Basic"},
    {"date": "x"},
    {"x-request-id": "x"},
    {"content-encoding": "gzip"},
)


def spoiled(value: Any, dice: random.Random) -> Any:
    """The same JSON with a few places replaced by junk, or left out."""
    if dice.random() < 0.12:
        return dice.choice(JUNK)
    if isinstance(value, dict):
        return {name: spoiled(inner, dice) for name, inner in value.items() if dice.random() > 0.06}
    if isinstance(value, list):
        return [spoiled(inner, dice) for inner in value for _ in range(dice.choice((1, 1, 1, 0, 2)))]
    return value


def spoiled_gateway(seed: int) -> Callable[[httpx.Request], httpx.Response]:
    dice = random.Random(seed)
    bad_status = dice.choice(STATUSES)

    def handle(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content or b"{}")
        status = bad_status if dice.random() < 0.25 else 200
        if request.method == "GET":
            data = spoiled({**MODELS, "error": None} if dice.random() < 0.5 else MODELS, dice)
        elif body.get("stream") and dice.random() < 0.8:
            lines = [json.dumps(spoiled(one, dice)) for one in ({"choices": [{"delta": {"content": "a"}}]},) * 3]
            text = "".join(f"{dice.choice(('data: ', 'data:', 'event: error', ': '))}{line}\n\n" for line in lines)
            return httpx.Response(status, text=text + dice.choice(("", "data: [DONE]\n\n")))
        else:
            data = spoiled(completion(body, error=dice.choice((None, None, "x", {}))), dice)
        raw = json.dumps(data).encode()
        raw = raw[: dice.randrange(len(raw) + 1)] if dice.random() < 0.1 else raw
        return httpx.Response(status, content=raw, headers=dice.choice(HEADERS))

    return handle


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "FOLLOW_UP_SECONDS", (0.0, 0.0))


BEHIND_TLS = [check for check in CHECKS if check.layer not in ("name", "connection", "tls", "interconnect")]


@pytest.mark.parametrize("seed", range(120))
def test_junk_breaks_nothing(seed: int, make_ladder: MakeLadder, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever JSON comes, each check ends in a finding in the form of the design, and no key is in it."""
    from pytest_thermal.access import Gateway  # noqa: PLC0415

    def new_client(gateway: Gateway) -> httpx.Client:
        transport = httpx.MockTransport(spoiled_gateway(seed))
        return httpx.Client(transport=transport, headers={"authorization": f"Bearer {KEY}"})

    monkeypatch.setattr(Gateway, "new_client", new_client)
    dice = random.Random(seed)
    route = {"default": dice.choice(("demo-chat", None)), "fallback": dice.choice(("demo-chat-mini", None))}
    made = make_ladder("http://gw.example/v1", **route)
    # Each check alone too, so that an early failure hides no later crash.
    for ladder in (
        Ladder(made.gateway, checks=BEHIND_TLS),
        *(Ladder(made.gateway, checks=[one]) for one in BEHIND_TLS),
    ):
        for check in ladder._checks.values():
            finding = ladder.finding(check.id)
            assert finding.seen
            assert KEY not in repr(finding)
            if finding.outcome is Outcome.FAILED:
                assert finding.likely
                assert finding.advice
                assert all(character.isprintable() for character in finding.seen + finding.likely + finding.advice)
                assert len(finding.message) < 2500
