"""Quota arithmetic, announced limits, which limit refused a burst, and the scheduler's verdict on made-up bursts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from pytest_thermal.access import Gateway, Ladder
from pytest_thermal.access.burst import Burst
from pytest_thermal.access.plan import Plan
from pytest_thermal.access.probes import capacity
from pytest_thermal.access.standstill import Standstill
from pytest_thermal.access.verdict import CannotMeasure, Verdict
from pytest_thermal.demo import DemoGateway
from pytest_thermal.model import Outcome
from pytest_thermal.transport import Exchange, Fault
from tests.access.bursts import bursts_meet
from tests.transport.wire import Asked, Peer, Script, Wire, answer

MakeLadder = Callable[..., Ladder]
MakeWire = Callable[..., Wire]


def completion(prompt: int = 10, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
    return {"id": "1", "model": "m", "choices": [{"message": {"content": "OK"}}], "usage": usage, **more}


def with_chat(make_ladder: MakeLadder, *, headers: dict[str, str] | None = None, **settings: Any) -> Ladder:
    """A ladder whose minimal chat was answered with 10 prompt tokens and these headers; nothing is sent."""
    ladder = make_ladder("http://gw.example/v1", **settings)
    gateway = ladder.gateway
    gateway.chat = Exchange(
        method="POST",
        url="http://gw.example/v1/chat/completions",
        status=200,
        headers=httpx.Headers(headers or {}),
        body=str(completion()).replace("'", '"').encode(),
    )
    gateway.stream = None  # type: ignore[assignment]
    return ladder


@pytest.fixture(autouse=True)
def no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a stream there is no pace to reckon with."""
    monkeypatch.setattr(capacity, "_sustained", lambda *_: None)


# --- quota, computed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"requests_per_minute": 15}, "16 requests at once need 16 requests, 15 a minute are granted"),
        # 16 × (10 prompt + 256 output) tokens
        ({"tokens_per_minute": 4255}, "16 requests at once need 4256 tokens, 4255 a minute are granted"),
        ({"tokens_per_minute": 4256, "max_tokens": 257}, "need 4272 tokens"),
        (
            {"requests_per_minute": 31, "batch_size": 8, "concurrent_requests": 32},
            "32 requests at once need 32 requests",
        ),
        (
            {"requests_per_minute": 31, "batch_size": 32, "concurrent_requests": 8},
            "32 requests at once need 32 requests",
        ),
    ],
)
def test_a_batch_that_the_minute_does_not_hold(settings: dict[str, Any], words: str, make_ladder: MakeLadder) -> None:
    verdict = capacity.quota(with_chat(make_ladder, **settings).gateway)
    assert verdict.outcome is Outcome.FAILED
    assert words in verdict.seen
    assert "larger than the key's quota" in verdict.likely


@pytest.mark.parametrize(
    "settings",
    [
        {"requests_per_minute": 16},
        {"tokens_per_minute": 4256},
        {"requests_per_minute": 16, "tokens_per_minute": None},
        {"requests_per_minute": None, "tokens_per_minute": 4256},
        {"requests_per_minute": 8, "batch_size": 1},
    ],
)
def test_a_batch_that_just_fits(settings: dict[str, Any], make_ladder: MakeLadder) -> None:
    verdict = capacity.quota(with_chat(make_ladder, **settings).gateway)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.evidence["tokens_per_request"] == 266


def test_without_any_limit_there_is_nothing_to_hold_the_load_against(make_ladder: MakeLadder) -> None:
    ladder = with_chat(make_ladder, requests_per_minute=None, tokens_per_minute=None)
    assert capacity.quota(ladder.gateway).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    "headers, outcome, words",
    [
        ({"x-ratelimit-limit-requests": "15"}, Outcome.FAILED, "15 a minute are granted (announced by the gateway)"),
        ({"x-ratelimit-limit-tokens": "4000"}, Outcome.FAILED, "4000 a minute are granted (announced by the gateway)"),
        ({"x-ratelimit-limit-requests": "16"}, Outcome.PASSED, ""),
    ],
)
def test_what_the_gateway_announces_counts_too(
    headers: dict[str, str], outcome: Outcome, words: str, make_ladder: MakeLadder
) -> None:
    ladder = with_chat(make_ladder, headers=headers, requests_per_minute=None, tokens_per_minute=None)
    verdict = capacity.quota(ladder.gateway)
    assert verdict.outcome is outcome
    assert words in verdict.seen


def test_an_announced_limit_below_the_bench_files_is_a_warning(make_ladder: MakeLadder) -> None:
    ladder = with_chat(make_ladder, headers={"x-ratelimit-limit-requests": "60"}, requests_per_minute=6000)
    verdict = capacity.quota(ladder.gateway)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.warnings == ("the gateway announces 60 requests a minute, the bench file counts on 6000",)


def test_a_load_that_the_quota_holds_back_is_a_warning(
    make_ladder: MakeLadder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "_sustained", lambda *_: {"requests": 240.0, "tokens": 60_000.0})
    verdict = capacity.quota(with_chat(make_ladder, requests_per_minute=60, tokens_per_minute=None).gateway)
    assert verdict.outcome is Outcome.PASSED
    assert "about 240 requests a minute" in verdict.warnings[0]
    assert "to 25%" in verdict.warnings[0]


@pytest.mark.parametrize(
    "headers, announced",
    [
        ({}, {}),
        ({"x-ratelimit-limit-requests": "60", "x-ratelimit-limit-tokens": "1000"}, {"requests": 60, "tokens": 1000}),
        ({"X-RateLimit-Limit-Requests": " 60 "}, {"requests": 60}),
        ({"x-ratelimit-api_key-limit-requests": "60"}, {"requests": 60}),
        ({"x-ratelimit-limit-requests": "60", "x-ratelimit-model_per_key-limit-requests": "30"}, {"requests": 30}),
        (
            {"x-ratelimit-limit-req-minute": "60", "x-ratelimit-limit-tokens-minute": "500"},
            {"requests": 60, "tokens": 500},
        ),
        ({"x-ratelimit-limit-tokens-per-minute": "500"}, {"tokens": 500}),
        ({"x-ratelimit-remaining-requests": "60"}, {}),
        ({"x-ratelimit-limit-requests-day": "60"}, {}),
        ({"x-ratelimit-limit-max_parallel_requests": "5"}, {}),
        ({"llm_provider-x-ratelimit-limit-requests": "60"}, {}),
        ({"x-ratelimit-limit-requests": "0"}, {}),
        ({"x-ratelimit-limit-requests": "-1"}, {}),
        ({"x-ratelimit-limit-requests": "unlimited"}, {}),
        ({"x-ratelimit-limit-requests": "²"}, {}),
        ({"x-ratelimit-limit-requests": "6e3"}, {}),
        ({"x-ratelimit-limit-requests": "9" * 5000}, {}),
        ({"x-ratelimit-limit": "10, 10;w=60"}, {}),
    ],
)
def test_announced_limits(headers: dict[str, str], announced: dict[str, int]) -> None:
    found = Exchange(method="POST", url="http://gw", status=200, headers=httpx.Headers(headers, encoding="utf-8"))
    assert capacity.announced_limits(found) == announced


# --- which limit refused -------------------------------------------------------------------------------------


def listing_then(chat: Callable[[Asked, int], bytes]) -> Script:
    """A gateway that lists two models and answers chats by ``chat(request, number)``."""
    numbers = iter(range(10_000))

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if asked.method == "GET":
                peer.send(answer({"data": [{"id": "demo-chat"}, {"id": "demo-chat-mini"}]}))
            else:
                peer.send(chat(asked, next(numbers)))

    return script


@pytest.fixture
def quick_follow_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "FOLLOW_UP_SECONDS", (0.0, 0.1, 0.2))


REFUSAL = Exchange(method="POST", url="http://gw", status=429)


@pytest.mark.parametrize(
    "statuses, refused_with, kind",
    [
        (["200 OK"], 429, "parallel"),
        (["429 No", "200 OK"], 429, "rate"),
        (["429 No", "429 No", "200 OK"], 429, "rate"),
        (["429 No"] * 3, 429, "rate"),
        (["503 No"] * 3, 503, "broken"),
        (["503 No", "200 OK"], 503, "rate"),
        (["200 OK"], 503, "parallel"),
        (["200 OK"], 408, "parallel"),
    ],
)
def test_a_refusal_that_says_nothing_is_asked_again_alone(
    statuses: list[str],
    refused_with: int,
    kind: str,
    make_ladder: MakeLadder,
    wire: MakeWire,
    quick_follow_up: None,
) -> None:
    server = wire(listing_then(lambda _, number: answer(completion(), status=statuses[number])))
    gateway = make_ladder(server.url).gateway
    found, how = capacity._which_limit(gateway, Exchange(method="POST", url="http://gw", status=refused_with))
    assert found == kind
    assert how
    assert len(server.asked) == len(statuses)


@pytest.mark.parametrize("stated, kind", [("max_parallel_requests", "parallel"), ("tokens", "rate")])
def test_a_refusal_that_says_it_is_believed(stated: str, kind: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    server = wire(listing_then(lambda *_: answer(completion())))
    refusal = Exchange(method="POST", url="x", status=429, headers=httpx.Headers({"rate_limit_type": stated}))
    assert capacity._which_limit(make_ladder(server.url).gateway, refusal) == (
        kind,
        f"the answer says so ({stated})",
    )
    assert server.asked == []


def test_a_spent_budget_ends_the_asking(make_ladder: MakeLadder, quick_follow_up: None) -> None:
    with DemoGateway() as demo:
        gateway = make_ladder(demo.url, key=demo.key, budget_tokens=0).gateway
        kind, how = capacity._which_limit(gateway, REFUSAL)
        assert (kind, "token budget" in how) == ("rate", True)
        assert demo.requests_served == 0


def test_the_gate_is_right_on_a_limit_of_parallel_requests_told_as_a_page(
    make_ladder: MakeLadder, quick_follow_up: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DemoGateway(fault="burst-429-html") as demo:
        bursts_meet(demo, monkeypatch)
        finding = make_ladder(demo.url, key=demo.key).finding("concurrency")
    assert (finding.layer, finding.evidence["limit"]) == ("concurrency", "parallel")
    assert "429 Too Many Requests (HTML page)" in finding.seen


# --- quota, tried --------------------------------------------------------------------------------------------


def test_the_quota_is_tried_only_when_asked_for(make_ladder: MakeLadder) -> None:
    with DemoGateway() as demo:
        assert make_ladder(demo.url, key=demo.key).finding("quota_tried").outcome is Outcome.SKIPPED
        finding = make_ladder(demo.url, key=demo.key, plan=Plan(probe_quota=True)).finding("quota_tried")
    assert finding.outcome is Outcome.PASSED
    assert finding.evidence["requests"] == 32  # four rounds of the bench's workers


def test_a_quota_that_runs_out_when_tried(make_ladder: MakeLadder) -> None:
    with DemoGateway(requests_per_minute=40) as demo:
        ladder = make_ladder(demo.url, key=demo.key, plan=Plan(probe_quota=True))
        finding = ladder.finding("quota_tried")
    assert (finding.outcome, finding.layer) == (Outcome.FAILED, "quota")
    assert "429" in finding.seen


# --- scheduler -----------------------------------------------------------------------------------------------


ANSWERED = b'{"choices": [{"message": {"content": "A"}, "finish_reason": "length"}]}'


def crowd(number: int, wall_seconds: float, *, slowest: float | None = None, fault: Fault | None = None) -> Burst:
    from pytest_thermal.access.burst import Shot  # noqa: PLC0415

    latency = wall_seconds if slowest is None else slowest
    good = Exchange(method="POST", url="http://gw/x", status=200, body=ANSWERED, latency_seconds=latency)
    bad = Exchange(method="POST", url="http://gw/x", fault=fault, latency_seconds=latency) if fault else good
    found = [
        Shot(index=i, letter="A", request_id=f"thermal-{i}", answer=good, waited_seconds=0) for i in range(number - 1)
    ]
    last = Shot(index=number, letter="A", request_id="thermal-last", answer=bad, waited_seconds=0)
    return Burst(workers=number, shots=(*found, last), wall_seconds=wall_seconds)


def held_up(burst: Burst, seconds: float) -> Burst:
    """The same, while this process stood still for so long."""
    return replace(burst, stood_still_seconds=seconds)


def scheduled(make_ladder: MakeLadder, *levels: Burst, timeout_ms: int = 2000) -> Ladder:
    ladder = make_ladder("http://gw.example/v1", timeout_ms=timeout_ms)
    ladder.gateway.once("levels", lambda: list(levels))
    return ladder


def test_in_time_at_every_level(make_ladder: MakeLadder) -> None:
    gateway = scheduled(make_ladder, crowd(1, 0.5), crowd(8, 0.6), crowd(16, 1.9)).gateway
    verdict = capacity.scheduler(gateway)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.seen == "slowest answer 500 ms at 1, 600 ms at 8, 1900 ms at 16 in parallel, within 2000 ms"
    assert verdict.evidence["slowest_ms_at_16"] == 1900
    assert capacity.scheduler_parallel(gateway).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "body, words",
    [
        (b'{"error": {"message": "too many"}}', "it has no choices"),
        (b'{"choices": [{"message": {"content": ""}, "finish_reason": "abort"}]}', "the engine broke off"),
    ],
)
def test_an_error_with_status_200_is_not_in_time(body: bytes, words: str, make_ladder: MakeLadder) -> None:
    hollow = replace(crowd(16, 0.1).shots[3], answer=Exchange(method="POST", url="http://gw/x", status=200, body=body))
    full = crowd(16, 0.6)
    burst = replace(full, shots=(*full.shots[:3], hollow, *full.shots[4:]))
    gateway = scheduled(make_ladder, crowd(1, 0.5), crowd(8, 0.6), burst).gateway
    for probe, name in ((capacity.scheduler, "levels"), (capacity.concurrency_answers, "burst")):
        gateway.once(name, lambda: burst)
        verdict = probe(gateway)
        assert verdict.outcome is Outcome.FAILED
        assert words in verdict.seen


@pytest.mark.parametrize("model, told", [("demo-chat-mini", True), ("demo-chat", False), ("an-alias", False)])
def test_a_fallback_under_load_is_told(model: str, told: bool, make_ladder: MakeLadder) -> None:
    gateway = make_ladder("http://gw.example/v1").gateway
    gateway.models = Exchange(method="GET", url="http://gw/x", status=200, body=b'{"data": []}')
    body = ANSWERED.replace(b"{", f'{{"model": "{model}", '.encode(), 1)
    full = crowd(16, 0.6)
    other = replace(full.shots[7], answer=replace(full.shots[7].answer, body=body))
    gateway.once("burst", lambda: replace(full, shots=(*full.shots[:7], other, *full.shots[8:])))
    verdict = capacity.concurrency_answers(gateway)
    assert (verdict.outcome is Outcome.FAILED) is told
    assert ("was answered by 'demo-chat-mini'" in verdict.seen) is told


@pytest.mark.parametrize(
    "levels, likely",
    [
        ((crowd(1, 2.1),), "too slow for this many"),
        ((crowd(1, 1.0), crowd(8, 2.2)), "too slow for this many"),
        ((crowd(1, 0.3), crowd(8, 2.4)), "one after another behind a single slot"),
        ((crowd(1, 0.3), crowd(8, 1.9), crowd(16, 3.0, fault=Fault.SILENCE)), "one after another"),
        ((crowd(1, 0.3), crowd(8, 1.9), crowd(16, 3.0, fault=Fault.SLOW)), "one after another"),
        ((crowd(1, 0.02), crowd(8, 2.2)), "overloaded"),
        ((crowd(1, 3.0, fault=Fault.SILENCE),), "too slow for this many"),
    ],
)
def test_too_late(levels: tuple[Burst, ...], likely: str, make_ladder: MakeLadder) -> None:
    verdict = capacity.scheduler(scheduled(make_ladder, *levels).gateway)
    assert verdict.outcome is Outcome.FAILED
    assert "timeout_ms is 2000" in verdict.seen
    assert likely in verdict.likely


def test_one_after_another_within_the_limit_is_told_by_the_second_check(make_ladder: MakeLadder) -> None:
    gateway = scheduled(make_ladder, crowd(1, 0.25), crowd(8, 2.0), crowd(16, 4.0), timeout_ms=30_000).gateway
    assert capacity.scheduler(gateway).outcome is Outcome.PASSED
    verdict = capacity.scheduler_parallel(gateway)
    assert verdict.outcome is Outcome.FAILED
    assert "1.0 at work at once" in verdict.seen
    assert "batch_size 16" in verdict.likely


@pytest.mark.parametrize(
    "level, still, checks",
    [
        (crowd(8, 2.4), 0.5, [capacity.scheduler]),  # too late, and in time without our own standstill
        (crowd(8, 1.9), 1.5, [capacity.scheduler_parallel]),  # in time, and one after another or not
    ],
)
def test_a_burst_in_which_we_stood_still_blames_nobody(
    level: Burst, still: float, checks: list[Callable[[Gateway], Verdict]], make_ladder: MakeLadder
) -> None:
    for check in checks:
        gateway = scheduled(make_ladder, crowd(1, 0.3), held_up(level, still)).gateway
        with pytest.raises(CannotMeasure, match=f"of which this process itself stood still for {still:.2f} s"):
            check(gateway)
        assert check(scheduled(make_ladder, crowd(1, 0.3), level).gateway).outcome is Outcome.FAILED


def test_one_alone_that_took_long_because_of_us_hides_no_single_slot(make_ladder: MakeLadder) -> None:
    levels = held_up(crowd(1, 1.2), 1.0), crowd(8, 2.0)
    with pytest.raises(CannotMeasure, match=r"1 in parallel took 1\.20 s, of which this process itself stood still"):
        capacity.scheduler_parallel(scheduled(make_ladder, *levels).gateway)


@pytest.mark.parametrize("still", [0.0, 0.05, 1.0])
def test_a_standstill_that_decides_nothing_is_not_told(still: float, make_ladder: MakeLadder) -> None:
    gateway = scheduled(make_ladder, crowd(1, 0.3), held_up(crowd(8, 1.2), still)).gateway
    assert capacity.scheduler(gateway).outcome is Outcome.PASSED
    assert capacity.scheduler_parallel(gateway).outcome is Outcome.PASSED
    late = scheduled(make_ladder, crowd(1, 0.3), held_up(crowd(8, 9.0), still)).gateway
    assert capacity.scheduler(late).outcome is Outcome.FAILED
    assert capacity.scheduler_parallel(late).outcome is Outcome.FAILED


@pytest.mark.parametrize("calm_from, fired", [(1, 4), (2, 5), (9, 4)])
def test_a_burst_in_which_we_stood_still_is_fired_again(
    calm_from: int, fired: int, make_ladder: MakeLadder, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[int] = []

    def fire(_: object, *, requests: int, workers: int) -> Burst:
        levels.append(requests)
        disturbed = requests == 8 and levels.count(8) <= calm_from
        return held_up(crowd(8, 3.0), 2.9) if disturbed else crowd(requests, 0.3)

    monkeypatch.setattr(capacity, "fire", fire)
    ladder = make_ladder("http://gw.example/v1", timeout_ms=2000)
    found = capacity._levels(ladder.gateway)
    assert len(levels) == fired
    assert [burst.stood_still_seconds for burst in found] == ([0.0, 0.0, 0.0] if calm_from < 9 else [0.0, 2.9])


def test_a_standstill_is_felt() -> None:
    with Standstill() as calm:
        pass
    with Standstill() as still:
        last = time.monotonic()
        assert still._note(last - 10) >= last  # a beat that comes ten seconds late
    assert calm.seconds >= 0
    assert still.seconds >= 9.9


def test_a_level_that_is_late_is_the_last(make_ladder: MakeLadder) -> None:
    with DemoGateway(service_seconds=0.4) as demo:
        ladder = make_ladder(demo.url, key=demo.key, timeout_ms=300)
        ladder.gateway.domain  # noqa: B018 - the levels alone are asked for, not what stands before them
        assert [len(level.shots) for level in capacity._levels(ladder.gateway)] == [1]
        assert capacity.scheduler(ladder.gateway).outcome is Outcome.FAILED
