"""One domain's gateway: what it asks, learns, remembers and spends; and the ladder that asks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_thermal.access import CHECKS, Check, Gateway, Ladder, Ledger, Plan
from pytest_thermal.access.gateway import key_variables
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.demo import DemoGateway
from pytest_thermal.model import Outcome
from tests.access.conftest import KEY
from tests.transport.wire import Peer, Script, Wire, answer

MakeLadder = Callable[..., Ladder]
MakeWire = Callable[..., Wire]

COMPLETION: dict[str, Any] = {
    "id": "1",
    "model": "demo-chat",
    "choices": [{"message": {"content": "OK"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}


def answering(chat: Callable[[dict[str, Any]], bytes]) -> Script:
    """Lists one model, and answers each chat by its body."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.method == "GET":
                peer.send(answer({"data": [{"id": "first"}]}))
            else:
                peer.send(chat(json.loads(asked.body)))

    return script


def refusal(message: str, status: str = "400 Bad Request", **more: Any) -> bytes:
    return answer({"error": {"message": message, **more}}, status=status)


def bodies(server: Wire) -> list[dict[str, Any]]:
    return [json.loads(asked.body) for asked in server.asked if asked.method == "POST"]


# --- a chat request ------------------------------------------------------------------------------------------


def test_a_minimal_chat_asks_for_little_and_nothing_unusual(make_ladder: MakeLadder, wire: MakeWire) -> None:
    server = wire(answering(lambda _: answer(COMPLETION)))
    gateway = make_ladder(server.url).gateway
    assert gateway.chat.ok
    assert gateway.chat is gateway.chat
    (body,) = bodies(server)
    assert set(body) == {"model", "messages", "max_tokens"}
    assert body["max_tokens"] == 2
    assert body["model"] == "demo-chat"


def test_without_a_route_the_first_listed_model_is_asked(make_ladder: MakeLadder, wire: MakeWire) -> None:
    server = wire(answering(lambda _: answer(COMPLETION)))
    gateway = make_ladder(server.url, default=None, fallback=None).gateway
    assert gateway.chat.ok
    assert bodies(server)[0]["model"] == "first"


def test_a_fallback_alone_is_asked(make_ladder: MakeLadder) -> None:
    assert make_ladder("http://gw.example/v1", default=None).gateway.model == "demo-chat-mini"


ADAPTED: dict[str, tuple[Callable[[dict[str, Any]], bytes], dict[str, Any]]] = {
    "reasoning models of OpenAI": (
        lambda body: (
            refusal(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
            )
            if "max_tokens" in body
            else answer(COMPLETION)
        ),
        {"max_completion_tokens": 2},
    ),
    "as a validation error": (
        lambda body: (
            answer({"detail": [{"msg": "Unknown field max_tokens"}]}, status="422 Unprocessable Entity")
            if "max_tokens" in body
            else answer(COMPLETION)
        ),
        {"max_completion_tokens": 2},
    ),
    "Qwen 3 at DashScope": (
        lambda body: (
            answer(COMPLETION)
            if body.get("enable_thinking") is False
            else refusal("parameter.enable_thinking must be set to false for non-streaming calls")
        ),
        {"enable_thinking": False, "max_tokens": 2},
    ),
}


@pytest.mark.parametrize("name", ADAPTED)
def test_a_refused_field_is_learned_from_once(name: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    chat, learned = ADAPTED[name]
    server = wire(answering(chat))
    gateway = make_ladder(server.url).gateway
    assert gateway.chat.ok
    assert learned.items() <= bodies(server)[-1].items()
    assert gateway.ask("again", tokens=2).ok
    assert len(bodies(server)) == 3  # refused, answered, answered at once
    spending = gateway._ledger.spending()
    assert (spending.asked_tokens, spending.output_tokens) == (4, 4)


def test_a_stream_without_stream_options_is_tried(make_ladder: MakeLadder, wire: MakeWire) -> None:
    events = b'data: {"choices": [{"delta": {"content": "one"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    def chat(body: dict[str, Any]) -> bytes:
        if "stream_options" in body:
            return refusal("Unknown parameter: stream_options")
        return answer(events, kind="text/event-stream")

    server = wire(answering(chat))
    gateway = make_ladder(server.url).gateway
    assert gateway.stream.exchange.ok
    assert [("stream_options" in body) for body in bodies(server)] == [True, False]


@pytest.mark.parametrize("message", ["Use 'max_completion_tokens' instead of max_tokens.", "stream_options", "no"])
def test_a_gateway_that_refuses_everything_is_not_asked_for_ever(
    message: str, make_ladder: MakeLadder, wire: MakeWire
) -> None:
    server = wire(answering(lambda _: refusal(message)))
    gateway = make_ladder(server.url).gateway
    assert gateway.chat.status == 400
    assert gateway.stream.exchange.status == 400
    assert len(bodies(server)) <= 4
    assert gateway._ledger.spending().output_tokens == 0


# --- tokens --------------------------------------------------------------------------------------------------


def test_the_ledger_keeps_what_was_asked_and_what_was_charged() -> None:
    ledger = Ledger(10)
    ledger.reserve(2)
    ledger.charge(prompt=12, output=2, asked=2)
    ledger.reserve(1, requests=5)
    for _ in range(4):
        ledger.charge(prompt=10, output=1, asked=1)
    ledger.charge(prompt=None, output=None, asked=1)
    spending = ledger.spending()
    assert (spending.chat_requests, spending.asked_tokens, spending.output_tokens) == (6, 7, 7)
    assert (spending.prompt_tokens, spending.uncounted_answers, spending.budget_tokens) == (52, 1, 10)
    assert spending.line == (
        "7 output and 52 prompt tokens in 6 requests (asked for at most 7, budget 10);"
        " 1 answers without usage counted as asked"
    )
    with pytest.raises(
        CannotMeasure, match="4 more output tokens are needed, 3 of the budget of 10 are left"
    ) as caught:
        ledger.reserve(4)
    assert caught.value.advice == "--token-budget 11 or more"
    ledger.reserve(3)


def test_a_gateway_that_charges_more_than_asked_is_told_of() -> None:
    ledger = Ledger(10)
    ledger.reserve(2)
    ledger.charge(prompt=1, output=20, asked=2)
    assert "charged more than it was asked for" in ledger.spending().line


@pytest.mark.parametrize("domains, budget", [(1, 100), (2, 100), (3, 150), (8, 400)])
def test_the_budget_of_a_run(domains: int, budget: int) -> None:
    assert Plan().budget_tokens(domains) == budget
    assert Plan(token_budget=7).budget_tokens(domains) == 7


@pytest.mark.parametrize("fault", [None, "open", "key-only-on-chat", "reasoning"])
def test_a_whole_run_stays_within_what_the_plan_says(fault: str | None, make_ladder: MakeLadder) -> None:
    with DemoGateway(fault=fault) as demo:
        ladder = make_ladder(demo.url, key=demo.key, budget_tokens=50)
        findings = [ladder.finding(check.id) for check in CHECKS]
        assert not [finding for finding in findings if finding.outcome is Outcome.INCONCLUSIVE]
        spending = ladder.gateway._ledger.spending()
        assert spending.output_tokens == demo.output_tokens_served <= 50


def test_a_budget_too_small_is_inconclusive_and_says_what_would_do(make_ladder: MakeLadder) -> None:
    with DemoGateway() as demo:
        finding = make_ladder(demo.url, key=demo.key, budget_tokens=10).finding("concurrency")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "--token-budget" in finding.advice
    assert finding.message.startswith("inconclusive: concurrency: 16 more output tokens")


# --- patience ------------------------------------------------------------------------------------------------


def test_patience_is_the_benchs_within_the_plans(make_ladder: MakeLadder) -> None:
    gateway = make_ladder("http://gw/v1", connect_seconds=30, read_seconds=180, timeout_ms=20_000).gateway
    assert (gateway.connect_seconds, gateway.answer_seconds, gateway.inference_seconds) == (10, 10, 30)
    gateway = make_ladder("http://gw/v1", connect_seconds=3, read_seconds=5, timeout_ms=20_000).gateway
    assert (gateway.connect_seconds, gateway.answer_seconds, gateway.inference_seconds) == (3, 5, 5)


# --- the key -------------------------------------------------------------------------------------------------


def test_variables_that_look_like_a_keys_are_named() -> None:
    environ = {
        "OPENAI_API_KEY": "x",
        "HF_TOKEN": "x",
        "EMPTY_API_KEY": "",
        "PATH": "/",
        "X_APIKEY": "x",
        "KEYBOARD": "x",
    }
    assert key_variables(environ) == ("HF_TOKEN", "OPENAI_API_KEY", "X_APIKEY")


def test_no_repr_shows_the_key(make_ladder: MakeLadder) -> None:
    ladder = make_ladder("http://gw/v1")
    shown = (
        f"{ladder!r} {ladder.gateway!r} {ladder.gateway.bench!r} {ladder.gateway.domain!r} {ladder.gateway.client!r}"
    )
    assert KEY not in shown
    assert KEY[8:] not in shown


def test_a_key_that_the_gateway_echoes_is_in_no_finding(make_ladder: MakeLadder, wire: MakeWire) -> None:
    """In every place an answer has: body, header, reason, model name."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            key = asked.headers["authorization"].removeprefix("Bearer ") if "authorization" in asked.headers else ""
            echoed = {"error": {"message": f"no such key {key}", "code": key}, "key": key}
            peer.send(answer(echoed, status=f"401 No {key}", server=key, x_key=key, via=key))

    ladder = make_ladder(wire(script).url)
    for check in CHECKS:
        finding = ladder.finding(check.id)
        assert KEY[4:] not in repr(finding)
    assert ladder.finding("key").outcome is Outcome.FAILED


# --- the environment's proxies -------------------------------------------------------------------------------


def test_a_proxy_variable_that_is_no_address_is_said_by_the_first_check(make_ladder: MakeLadder) -> None:
    ladder = make_ladder("http://gw.example/v1", environ={"http_proxy": "http://user:hunter2/@proxy:x"})
    finding = ladder.finding("name")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "$http_proxy is no address of a proxy" in finding.seen
    assert "hunter2" not in repr(finding)
    assert ladder.finding("chat").outcome is Outcome.BLOCKED


# --- the ladder ----------------------------------------------------------------------------------------------


def check(name: str, layer: str, verdict: Verdict | Exception, *, advisory: bool = False, **more: Any) -> Check:
    def probe(_: Gateway) -> Verdict:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return Check(id=name, layer=layer, probe=probe, advisory=advisory, **more)


BAD = failed("bad", likely="x", advice="y")
FINE = passed("fine")


def climb(make_ladder: MakeLadder, *checks: Check) -> dict[str, Outcome]:
    ladder = Ladder(make_ladder("http://gw/v1").gateway, checks=checks)
    for each in reversed(checks):  # asked for in any order
        ladder.finding(each.id)
    assert [finding.check for finding in ladder.findings] == [each.id for each in checks]
    return {finding.check: finding.outcome for finding in ladder.findings}


def test_a_failed_leader_blocks_its_layer_and_all_behind(make_ladder: MakeLadder) -> None:
    assert climb(
        make_ladder,
        check("http", "http", FINE),
        check("chat", "chat", BAD),
        check("chat_usage", "chat", FINE),
        check("stream", "stream", FINE),
    ) == {
        "http": Outcome.PASSED,
        "chat": Outcome.FAILED,
        "chat_usage": Outcome.BLOCKED,
        "stream": Outcome.BLOCKED,
    }


def test_a_failed_follower_blocks_what_is_behind_its_layer_only(make_ladder: MakeLadder) -> None:
    assert climb(
        make_ladder,
        check("chat", "chat", FINE),
        check("chat_usage", "chat", BAD),
        check("chat_model", "chat", FINE),
        check("stream", "stream", FINE),
    ) == {
        "chat": Outcome.PASSED,
        "chat_usage": Outcome.FAILED,
        "chat_model": Outcome.PASSED,
        "stream": Outcome.BLOCKED,
    }


def test_an_advisory_failure_blocks_nothing(make_ladder: MakeLadder) -> None:
    outcomes = climb(
        make_ladder,
        check("tls", "tls", FINE),
        check("tls_lifetime", "tls", BAD, advisory=True),
        check("http", "http", FINE),
    )
    assert outcomes["http"] is Outcome.PASSED


def test_what_cannot_be_measured_blocks_as_a_failure_does(make_ladder: MakeLadder) -> None:
    outcomes = climb(make_ladder, check("key", "key", CannotMeasure("odd")), check("models", "models", FINE))
    assert outcomes == {"key": Outcome.INCONCLUSIVE, "models": Outcome.BLOCKED}


def test_a_skipped_leader_skips_its_layer_and_blocks_nothing(make_ladder: MakeLadder) -> None:
    assert climb(
        make_ladder,
        check("tls", "tls", skipped("no TLS")),
        check("tls_lifetime", "tls", BAD, advisory=True),
        check("http", "http", FINE),
    ) == {"tls": Outcome.SKIPPED, "tls_lifetime": Outcome.SKIPPED, "http": Outcome.PASSED}


def test_the_blocked_name_the_first_that_failed(make_ladder: MakeLadder) -> None:
    ladder = Ladder(
        make_ladder("http://gw/v1").gateway,
        checks=(
            check("concurrency", "concurrency", failed("429", layer="quota", likely="x", advice="y")),
            check("quota", "quota", FINE),
            check("scheduler", "scheduler", FINE),
        ),
    )
    assert ladder.finding("scheduler").seen == "not tried, since quota: 429"
    assert ladder.finding("quota").seen == "not tried, since quota: 429"


def test_what_does_not_pass_the_gateway_is_measured_alone_when_asked_for_alone(make_ladder: MakeLadder) -> None:
    checks = (
        check("http", "http", BAD),
        check("interconnect", "interconnect", FINE, through_gateway=False),
    )
    alone = Ladder(make_ladder("http://gw/v1").gateway, checks=checks)
    assert alone.finding("interconnect").outcome is Outcome.PASSED
    after = Ladder(make_ladder("http://gw/v1").gateway, checks=checks)
    after.finding("http")
    assert after.finding("interconnect").outcome is Outcome.BLOCKED


def test_each_check_is_measured_once(make_ladder: MakeLadder) -> None:
    measured: list[str] = []

    def probe(_: Gateway) -> Verdict:
        measured.append("x")
        return FINE

    ladder = Ladder(make_ladder("http://gw/v1").gateway, checks=(Check(id="http", layer="http", probe=probe),))
    assert ladder.finding("http") is ladder.finding("http")
    assert measured == ["x"]


def test_a_check_that_there_is_not_is_named(make_ladder: MakeLadder) -> None:
    with pytest.raises(KeyError, match="no access check 'chats'; there are: name, connection"):
        make_ladder("http://gw/v1").finding("chats")


def test_one_check_alone_asks_only_what_stands_outside_it(make_ladder: MakeLadder) -> None:
    with DemoGateway() as demo:
        make_ladder(demo.url, key=demo.key).finding("models")
        assert [f"{request.method} {request.path}" for request in demo.served] == ["GET /v1/models"] * 2
