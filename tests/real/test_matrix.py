"""The access gate against every real part: green, or the layer at fault named and all inner ones blocked by it.

One row of `CASES` is one bench: which part stands behind it, how its file is written, and what the gate must say.
The table of what it said and how long it took is left in `reports/access-matrix.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.real.parts.dead_ends import UNRESOLVABLE_URL
from tests.real.parts.gate import GateResult, assert_fails_at, assert_green, layer_of, run_gate, write_bench
from tests.real.parts.installs import REPOSITORY
from tests.real.parts.keys import fresh_key

pytestmark = pytest.mark.real

GREEN: frozenset[str] = frozenset()
HEALTH_CHECK = {"health_check": {"enabled": True, "interval_sec": 1, "endpoint": "/v1/models"}}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What goes into the bench file, and how the gate is started."""

    url: str
    key: str | None
    model: str
    fallback: str | None = None
    more: Mapping[str, object] = field(default_factory=dict)
    toml: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """`bench` is called with the fixture `part`; `layers` are those that may be named, none where it is green."""

    name: str
    part: str
    bench: Callable[[Any], Bench]
    layers: frozenset[str] = GREEN
    words: tuple[str, ...] = ()


def case(name: str, part: str, bench: Callable[[Any], Bench], *layers: str, words: tuple[str, ...] = ()) -> Case:
    return Case(name=name, part=part, bench=bench, layers=frozenset(layers), words=words)


# How a bench is written for each part. What is left out is what a good bench has.


def engine(part: Any, **changes: Any) -> Bench:
    return Bench(**{"url": part.url, "key": part.key, "model": part.model, **changes})


def proxy(part: Any, kind: str = "full", **changes: Any) -> Bench:
    return Bench(**{"url": part.url, "key": part.key(kind), "model": part.mock, **changes})


def front(part: Any, place: str = "", **changes: Any) -> Bench:
    return Bench(**{"url": part.url(place), "key": part.key, "model": part.model, **changes})


def counted(part: Any, place: str) -> Bench:
    return front(part, url=part.counted_url(place))


def tls(part: Any, kind: str, **changes: Any) -> Bench:
    return front(part, **{"url": part.tls_url(kind), "environ": part.trusting, **changes})


def nowhere(url: str) -> Bench:
    return Bench(url=url, key=fresh_key("nowhere"), model="any")


def inside(part: Any, url: str) -> Bench:
    return engine(part.engine, url=url, prefix=part.enter)


CASES = (
    # The engine itself.
    case("llama", "llama", engine),
    case("llama-address-without-v1", "llama", lambda p: engine(p, url=p.url.removesuffix("/v1"))),
    case("llama-address-of-chat", "llama", lambda p: engine(p, url=f"{p.url}/chat/completions")),
    case("llama-answers-any-byte", "llama_noise", engine),
    case("llama-one-slot", "llama_one_slot", engine, "scheduler", words=("single slot",)),
    case("llama-wrong-key", "llama", lambda p: engine(p, key=fresh_key("wrong")), "key", words=("401",)),
    case("llama-no-key", "llama", lambda p: engine(p, key=None), "key", words=("names no key",)),
    case("llama-model-not-listed", "llama", lambda p: engine(p, model="tiny-randon"), "models", words=("tiny-random",)),
    case("llama-fallback-not-listed", "llama", lambda p: engine(p, fallback="other"), "models", words=("other",)),
    case("llama-path-too-deep", "llama", lambda p: engine(p, url=f"{p.url}/v1"), "models", words=("404",)),
    case(
        "llama-batch-over-quota",
        "llama",
        lambda p: engine(p, more={"rate_limit": {"requests_per_minute": 4, "tokens_per_minute": 100000}}),
        "quota",
        words=("4 a minute",),
    ),
    # The LiteLLM proxy.
    case("litellm-mock", "litellm", proxy),
    case("litellm-engine", "litellm", lambda p: proxy(p, model=p.engine, fallback=p.mock)),
    case("litellm-plain", "litellm_plain", engine),
    case("litellm-wrong-key", "litellm", lambda p: proxy(p, key=p.wrong_key()), "key", words=("401",)),
    case("litellm-no-key", "litellm", lambda p: proxy(p, key=None), "key", words=("401", "names no key")),
    case(
        "litellm-plain-wrong-key",
        "litellm_plain",
        lambda p: engine(p, key=fresh_key("wrong")),
        "key",
        words=("no connected db", "master key"),
    ),
    case("litellm-plain-no-key", "litellm_plain", lambda p: engine(p, key=None), "key", words=("names no key",)),
    case("litellm-model-not-listed", "litellm", lambda p: proxy(p, model="mock-chta"), "models", words=("mock-chat",)),
    case(
        "litellm-upstream-key",
        "litellm",
        lambda p: proxy(p, model=p.bad_upstream_key),
        "chat",
        words=("401", "not this bench's key"),
    ),
    case("litellm-upstream-dead", "litellm", lambda p: proxy(p, model=p.dead_upstream), "chat", words=("500",)),
    case("litellm-upstream-hangs", "litellm", lambda p: proxy(p, model=p.hanging_upstream), "chat", words=("408",)),
    case(
        "litellm-fallback-dead",
        "litellm",
        lambda p: proxy(p, fallback=p.dead_upstream),
        "chat",
        words=("500", "dead-chat"),
    ),
    case(
        "litellm-upstream-exhausted",
        "litellm",
        lambda p: proxy(p, model=p.exhausted_upstream),
        "quota",
        words=("429", "without Retry-After"),
    ),
    case("litellm-3-a-minute", "litellm", lambda p: proxy(p, "requests"), "quota", words=("429",)),
    case("litellm-60-tokens-a-minute", "litellm", lambda p: proxy(p, "tokens"), "quota", words=("429",)),
    case(
        "litellm-one-at-a-time",
        "litellm",
        lambda p: proxy(p, "parallel", model=p.engine),
        "concurrency",
        words=("max_parallel_requests",),
    ),
    # nginx in front of the engine.
    case("nginx", "nginx", front),
    case("nginx-buffers", "nginx", lambda p: front(p, "buffered")),
    case("nginx-gzip", "nginx", lambda p: front(p, "gzip")),
    case("nginx-models-as-text", "nginx", lambda p: front(p, "text-models")),
    case("nginx-models-open", "nginx", lambda p: front(p, "open-models")),
    case("nginx-one-level-deeper", "nginx", lambda p: front(p, url=p.deeper_url)),
    case("nginx-path-too-short", "nginx", lambda p: front(p, url=p.too_short_url), "models", words=("404", "path")),
    case("nginx-checks-key", "nginx", lambda p: front(p, "key")),
    case("nginx-wrong-key", "nginx", lambda p: front(p, "key", key=fresh_key("wrong")), "key", words=("401",)),
    case(
        "nginx-models-open-wrong-key",
        "nginx",
        lambda p: front(p, "open-models", key=fresh_key("wrong")),
        "key",
        words=("401",),
    ),
    case("nginx-upstream-dead", "nginx", lambda p: front(p, "dead"), "http", words=("502",)),
    case("nginx-upstream-slow", "nginx", lambda p: front(p, "slow"), "http", words=("504",)),
    case("nginx-engine-dead", "nginx", lambda p: front(p, "engine-dead"), "chat", words=("502",)),
    case("nginx-engine-slow", "nginx", lambda p: front(p, "engine-slow"), "chat", words=("504",)),
    case("nginx-denies", "nginx", lambda p: front(p, "deny"), "http", words=("403",)),
    case("nginx-basic-auth", "nginx", lambda p: front(p, "basic"), "http", "key", words=("401", "password")),
    case("nginx-login-page", "nginx", lambda p: front(p, "login"), "http", words=("200", "Sign in")),
    case("nginx-redirects-to-login", "nginx", lambda p: front(p, "redirect"), "http", words=("301", "login")),
    case("nginx-moved", "nginx", lambda p: front(p, "moved"), "http", words=("301", "/v1")),
    case("nginx-moved-for-now", "nginx", lambda p: front(p, "moved-307"), "http", words=("307", "/v1")),
    case("nginx-maintenance", "nginx", lambda p: front(p, "maintenance"), "http", words=("503", "date")),
    case("nginx-no-content", "nginx", lambda p: front(p, "empty"), "http", words=("204", "empty")),
    case("nginx-limits-rate-503", "nginx", lambda p: counted(p, "limit-503"), "quota", "concurrency", words=("503",)),
    case(
        "nginx-limits-rate-429", "nginx", lambda p: counted(p, "limit-429"), "quota", words=("429", "Retry-After 2 s")
    ),
    case("nginx-limits-connections", "nginx", lambda p: counted(p, "connections"), "concurrency", words=("429",)),
    # TLS.
    case("tls", "nginx", lambda p: tls(p, "good")),
    case("tls-by-name", "nginx", lambda p: tls(p, "good", url=p.tls_url("good", host="localhost"))),
    case("tls-authority-not-trusted", "nginx", lambda p: tls(p, "good", environ={}), "tls", words=("issuer",)),
    case("tls-expired", "nginx", lambda p: tls(p, "expired"), "tls", words=("expired",)),
    case("tls-wrong-host", "nginx", lambda p: tls(p, "wrong_host"), "tls", words=("gateway.example",)),
    case("tls-unknown-issuer", "nginx", lambda p: tls(p, "unknown_issuer"), "tls", words=("issuer",)),
    case("tls-client-certificate", "nginx", lambda p: tls(p, "client"), "tls", "http", words=("certificate",)),
    case("tls-1.0-only", "nginx", lambda p: tls(p, "old"), "tls", words=("version",)),
    case("tls-asked-of-plain-port", "nginx", lambda p: tls(p, "good", url=p.plain_port_as_https), "tls"),
    case("http-asked-of-tls-port", "nginx", lambda p: tls(p, "good", url=p.tls_port_as_http), "http", "tls"),
    # Nobody there.
    case("closed-port", "ends", lambda p: nowhere(p.closed_url), "connection", words=("refused",)),
    case("silence", "ends", lambda p: nowhere(p.silent_url), "http", words=("no answer",)),
    case("unresolvable-name", "ends", lambda _: nowhere(UNRESOLVABLE_URL), "name", words=("gateway.invalid",)),
    case("netns", "netns", lambda p: inside(p, p.url())),
    case("netns-by-name", "netns", lambda p: inside(p, p.named_url("here"))),
    case("dns-nxdomain", "netns", lambda p: inside(p, p.named_url("nxdomain")), "name"),
    case("dns-servfail", "netns", lambda p: inside(p, p.named_url("servfail")), "name"),
    case("dns-refused", "netns", lambda p: inside(p, p.named_url("refused")), "name"),
    case("dns-silent", "netns", lambda p: inside(p, p.named_url("silent")), "name"),
    case("dns-no-address", "netns", lambda p: inside(p, p.named_url("empty")), "name"),
    case("dns-ipv6-only", "netns", lambda p: inside(p, p.named_url("here6")), "connection", words=("::1",)),
    case("packets-dropped", "netns", lambda p: inside(p, p.filtered_url("dropped")), "connection"),
    case("packets-reset", "netns", lambda p: inside(p, p.filtered_url("reset")), "connection"),
    case("host-unreachable", "netns", lambda p: inside(p, p.filtered_url("unreachable")), "connection"),
    case("traffic-prohibited", "netns", lambda p: inside(p, p.filtered_url("prohibited")), "connection"),
    # Mocks by others.
    case("aimock", "aimock", engine),
    case("aimock-wrong-key", "aimock", lambda p: engine(p, key=fresh_key("wrong")), "key", words=("401",)),
    case("aimock-model-retired", "aimock", lambda p: engine(p, model=p.retired_model), "chat", words=("404",)),
    case("aimock-key-scope", "aimock", lambda p: engine(p, model=p.forbidden_model), "key", words=("403", "right")),
    case("aimock-stream-cut", "aimock", lambda p: engine(p, model=p.cut_model), "stream"),
    case("aimock-limits-rate", "aimock_with", lambda p: engine(p("--chaos-ratelimit", "1")), "quota", words=("429",)),
    case("aimock-malformed", "aimock_with", lambda p: engine(p("--chaos-malformed", "1")), "chat", words=("JSON",)),
    case("aimock-disconnects", "aimock_with", lambda p: engine(p("--chaos-disconnect", "1")), "chat"),
    case("aimock-fails", "aimock_with", lambda p: engine(p("--chaos-drop", "1")), "chat", words=("500",)),
    case("llmock", "llmock_with", lambda p: engine(p())),
    case("llmock-3-a-minute", "llmock_with", lambda p: engine(p("--rpm", "3")), "quota", words=("429",)),
    case("llmock-stream-truncated", "llmock_with", lambda p: engine(p("--stream-fault", "truncate=1")), "stream"),
    case("llmock-stream-malformed", "llmock_with", lambda p: engine(p("--stream-fault", "malformed=1")), "stream"),
    case(
        "llmock-stream-stalls",
        "llmock_with",
        lambda p: engine(
            p("--stream-fault", "stall=1", "--stream-stall-seconds", "60"), toml="[api]\nread_timeout = 5\n"
        ),
        "stream",
    ),
    case("llmock-stream-disconnects", "llmock_with", lambda p: engine(p("--stream-fault", "disconnect=1")), "stream"),
)


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """Rows of what the gate said, written when all have run."""
    rows: list[str] = []
    yield rows
    folder = REPOSITORY / "reports"
    folder.mkdir(exist_ok=True)
    head = "| bench | says | seen | seconds |\n|---|---|---|---|\n"
    (folder / "access-matrix.md").write_text(head + "".join(f"{row}\n" for row in rows))


def gate_on(bench: Bench, folder: Path, *arguments: str) -> GateResult:
    written = write_bench(folder, bench.url, bench.key, bench.model, bench.fallback, toml=bench.toml, **bench.more)
    # With Allure's results too: they are one more place where a key could end up.
    arguments = ("--alluredir", str(folder / "gate" / "allure"), *arguments)
    return run_gate(written, *arguments, env=bench.environ, prefix=bench.prefix)


def row(name: str, result: GateResult) -> str:
    bad = result.first_bad
    message = result.outcomes[bad].message if bad else ""
    layer, _, seen = message.splitlines()[0].partition(": ") if message else ("green", "", "")
    return f"| {name} | {layer} | {seen.replace('|', '/')} | {result.seconds:.1f} |"


@pytest.mark.parametrize("each", [pytest.param(each, id=each.name) for each in CASES])
def test_gate(each: Case, request: pytest.FixtureRequest, tmp_path: Path, table: list[str]) -> None:
    bench = each.bench(request.getfixturevalue(each.part))
    result = gate_on(bench, tmp_path)
    table.append(row(each.name, result))
    if each.layers:
        assert_fails_at(result, each.layers, bench.key, words=each.words)
    else:
        assert_green(result, bench.key)


def test_cases_have_names_of_their_own() -> None:
    assert len({each.name for each in CASES}) == len(CASES)


def test_every_layer_that_a_gateway_can_fail_at_is_tried() -> None:
    tried = {layer for each in CASES for layer in each.layers}
    assert tried >= {"name", "connection", "tls", "http", "key", "models", "chat", "stream", "concurrency"}
    assert tried >= {"quota", "scheduler"}


def test_llmock_finds_no_fault_with_the_client(llmock: Any, tmp_path: Path) -> None:
    assert_green(gate_on(engine(llmock), tmp_path), llmock.key)
    verdict = llmock.verdict()
    assert verdict["attempts"] > 20
    assert verdict["findings"] == []


def test_llmock_finds_the_client_waits_when_asked_to(llmock: Any, tmp_path: Path) -> None:
    llmock.scenario({"type": "fail", "status": 429, "retry_after": 1, "times": 1})
    gate_on(engine(llmock), tmp_path)
    codes = {finding["code"] for finding in llmock.verdict()["findings"]}
    assert not codes & {"retry_after_ignored", "retry_storm", "retried_non_retryable"}


@pytest.mark.parametrize(
    "options", [("-vv", "--showlocals", "--tb=long"), ("--full-trace", "-o", "log_cli=true", "--log-level=DEBUG")]
)
def test_key_is_nowhere_even_in_the_loudest_output(nginx: Any, tmp_path: Path, options: tuple[str, ...]) -> None:
    for place in ("", "engine-dead", "login"):
        bench = front(nginx, place)
        result = gate_on(bench, tmp_path / (place or "plain"), *options)
        assert result.outcomes
        assert not result.places_of(nginx.key)


def test_each_test_of_the_suite_belongs_to_a_layer(llama: Any, tmp_path: Path) -> None:
    names = gate_on(engine(llama), tmp_path).outcomes
    assert names
    assert [name for name in names if layer_of(name) is None] == []
