"""One domain's gateway during a run: its client, its remembered answers, and chats that adapt to its dialect."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeVar

import httpx

from pytest_thermal.access.diagnosis import Diagnosis, Setting, diagnose
from pytest_thermal.access.ledger import Ledger
from pytest_thermal.access.plan import CHAT_TOKENS, KEYLESS_TOKENS, STREAM_TOKENS, Plan
from pytest_thermal.access.reading import error_words, model_ids, usage_in
from pytest_thermal.access.standstill import Standstill
from pytest_thermal.access.verdict import CannotMeasure
from pytest_thermal.bench import Bench, Domain
from pytest_thermal.model.said import say
from pytest_thermal.transport import Exchange, Route, StreamExchange, client, exchange, route_to, stream_exchange

MOST_ADAPTATIONS = 4
LATE_FACTOR = 1.5

T = TypeVar("T")


@dataclass
class Dialect:
    """Which of the optional fields this gateway takes; learned from its refusals."""

    limit_field: str = "max_tokens"
    stream_options: bool = True
    thinking_off: bool = False
    """Say ``enable_thinking: false``, without which some refuse to answer in one piece."""


class Gateway:
    """What the probes of one domain share. Answers that several probes judge are asked for once and remembered.

    Not to be used from several threads, but for `ask`.
    """

    def __init__(self, bench: Bench, domain: Domain, *, plan: Plan, ledger: Ledger, environ: Mapping[str, str]) -> None:
        self.bench = bench
        self.domain = domain
        self.plan = plan
        self.environ = environ
        self.key_proven = False
        self.stream_stood_still = False
        """Whether this process stood still meanwhile: when the stream's parts came is then not known."""
        self.paths_tried: dict[str, Exchange] = {}
        self._ledger = ledger
        self._dialect = Dialect()
        self._remembered: dict[str, Any] = {}
        self._dialect_lock = threading.Lock()

    @cached_property
    def route(self) -> Route:
        """The way to the gateway; raises CannotMeasure where the environment names a proxy that is no address."""
        try:
            return route_to(self.domain.base_url, self.environ)
        except ValueError as error:
            raise CannotMeasure(
                str(error),
                likely=say("a spelling mistake in the variable"),
                advice=say("correct or unset it, or set $no_proxy"),
            ) from error

    @cached_property
    def client(self) -> httpx.Client:
        """The probes' client."""
        return self.new_client()

    def new_client(self) -> httpx.Client:
        """A client with connections of its own; no retries, since a probe must see the first answer."""
        try:
            made = client(
                base_url=self.domain.base_url,
                key=self.domain.key,
                connect_seconds=self.connect_seconds,
                read_seconds=self.inference_seconds,
                environ=self.environ,
            )
        except ImportError as error:
            proxy = self.route.proxy
            raise CannotMeasure(
                say(
                    "the environment sends requests through {proxy}, and the SOCKS support of httpx is not installed",
                    proxy=proxy.shown if proxy else say("a SOCKS proxy"),
                ),
                advice=say("pip install 'httpx[socks]', or add {host} to $no_proxy", host=self.route.host),
            ) from error
        # A session that the gateway opened for the key would let in what is asked without it, and hide other backends.
        made.cookies = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
        return made

    def close(self) -> None:
        """Close the client's connections, if it was ever used."""
        if "client" in self.__dict__:
            self.client.close()

    def once(self, name: str, measure: Callable[[], T]) -> T:
        """What ``measure`` returned when first asked for under ``name``: several checks judge one measurement."""
        if name not in self._remembered:
            self._remembered[name] = measure()
        found: T = self._remembered[name]
        return found

    # --- patience, all in seconds ---

    @property
    def connect_seconds(self) -> float:
        """For a connection: the bench's, but no longer than the plan's limit."""
        return min(self.bench.timeouts.connect_seconds, self.plan.connect_limit_seconds)

    @property
    def answer_seconds(self) -> float:
        """For an answer without inference."""
        return min(self.bench.timeouts.read_seconds, self.plan.answer_limit_seconds)

    @property
    def inference_seconds(self) -> float:
        """For an answer with inference: half as long again as the scheduler's limit, or the read timeout if shorter.

        An answer that is too late can then be told from one that never comes.
        """
        return min(self.bench.timeouts.read_seconds, LATE_FACTOR * self.bench.scheduler.timeout_ms / 1000)

    # --- what probes ask ---

    @property
    def model(self) -> str | None:
        """The model that chat requests name: the default route, else the fallback, else the list's first."""
        route = self.domain.route
        return route.default or route.fallback or self.first_listed_model

    @cached_property
    def first_listed_model(self) -> str | None:
        """The first model the gateway lists; None where it lists none."""
        listed = model_ids(self.models.json) if self.models.ok else None
        return listed[0] if listed else None

    @cached_property
    def models(self) -> Exchange:
        """GET /v1/models with the key."""
        return exchange(self.client, "GET", self.url("/models"), read_seconds=self.answer_seconds)

    @cached_property
    def models_without_key(self) -> Exchange:
        """GET /v1/models without the key: tells whether the list proves anything about it."""
        return exchange(self.client, "GET", self.url("/models"), auth=None, read_seconds=self.answer_seconds)

    @cached_property
    def chat(self) -> Exchange:
        """A minimal chat with the key."""
        return self.ask("Reply with only the word OK.", tokens=CHAT_TOKENS)

    @cached_property
    def chat_without_key(self) -> Exchange:
        """A minimal chat without the key."""
        return self.ask("Reply with only the word OK.", tokens=KEYLESS_TOKENS, with_key=False)

    @cached_property
    def stream(self) -> StreamExchange:
        """A minimal streamed chat."""
        self._ledger.reserve(STREAM_TOKENS)
        for _ in range(MOST_ADAPTATIONS):
            body = self._body("Count from one to four.", STREAM_TOKENS, self.model)
            body["stream"] = True
            if self._dialect.stream_options:
                body["stream_options"] = {"include_usage": True}
            with Standstill() as still:
                streamed = stream_exchange(
                    self.client,
                    self.url("/chat/completions"),
                    json_body=body,
                    stall_seconds=self.inference_seconds,
                    total_seconds=2 * self.inference_seconds,
                )
            self.stream_stood_still = still.seconds > 0
            if not self._adapted_to(streamed.exchange):
                break
        counted = [usage for usage in (usage_in(event.json) for event in streamed.events) if usage]
        self._ledger.charge(
            prompt=counted[-1].prompt_tokens if counted else None,
            output=counted[-1].completion_tokens if counted else (None if streamed.exchange.ok else 0),
            asked=STREAM_TOKENS,
        )
        return streamed

    def ask(
        self,
        prompt: str,
        *,
        tokens: int,
        model: str | None = None,
        with_key: bool = True,
        request_id: str | None = None,
        reserved: bool = False,
        client: httpx.Client | None = None,
    ) -> Exchange:
        """One chat request of at most ``tokens`` output tokens, over ``client`` or else the probes' own.

        Safe to call from several threads.
        A refusal of an optional field (``max_tokens`` where a reasoning model wants ``max_completion_tokens``) is
        learned from and the request sent again. Raises CannotMeasure when the token budget is spent, unless the
        caller has ``reserved`` it.
        """
        if not reserved:
            self._ledger.reserve(tokens)
        headers = {"x-request-id": request_id} if request_id else None
        for _ in range(MOST_ADAPTATIONS):
            answer = exchange(
                client or self.client,
                "POST",
                self.url("/chat/completions"),
                json_body=self._body(prompt, tokens, model or self.model),
                auth=httpx.USE_CLIENT_DEFAULT if with_key else None,
                headers=headers,
            )
            if not self._adapted_to(answer):
                break
        usage = usage_in(answer.json) if answer.ok else None
        self._ledger.charge(
            prompt=usage.prompt_tokens if usage else None,
            output=usage.completion_tokens if usage else (None if answer.ok else 0),
            asked=tokens,
        )
        return answer

    def reserve(self, tokens: int, *, requests: int) -> None:
        """Set aside output tokens for a burst; raises CannotMeasure when the budget has not got them."""
        self._ledger.reserve(tokens, requests=requests)

    def url(self, path: str) -> str:
        """The whole URL of ``path`` below the base address."""
        return self.domain.base_url + path

    def diagnose(self, answer: Exchange, endpoint: str, *, model: str | None = None) -> Diagnosis | None:
        """The fault in ``answer``, knowing what is known of this gateway so far."""
        return diagnose(
            answer,
            Setting(
                domain=self.domain,
                route=self.route,
                endpoint=endpoint,
                model=model or (None if endpoint == "models" else self.model),
                key_proven=self.key_proven,
                key_variables=key_variables(self.environ),
            ),
        )

    def _body(self, prompt: str, tokens: int, model: str | None) -> dict[str, Any]:
        # No temperature: reasoning models refuse any but their own, and nothing here depends on it.
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": prompt}],
            self._dialect.limit_field: tokens,
        }
        if model is not None:
            body["model"] = model
        if self._dialect.thinking_off:
            body["enable_thinking"] = False
        return body

    def _adapted_to(self, answer: Exchange) -> bool:
        """Learn from a refusal of an optional field; True when the request is worth sending again."""
        if answer.status not in (400, 422) or answer.sent is None:
            return False
        words = error_words(answer)
        with self._dialect_lock:
            if "stream_options" in answer.sent and "stream_options" in words:
                self._dialect.stream_options = False
                return True
            refused = "max_completion_tokens" in words or re.search(r"(unsupported|unknown).{0,40}max_tokens", words)
            if "max_tokens" in answer.sent and refused:
                self._dialect.limit_field = "max_completion_tokens"
                return True
            if "enable_thinking" not in answer.sent and re.search(r"enable_thinking.{0,40}(false|stream)", words):
                self._dialect.thinking_off = True
                return True
        return False


def key_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names of variables that look as if they held a gateway's key; their values are not read."""
    return tuple(sorted(name for name, value in environ.items() if value and _KEY_NAME.search(name)))


_KEY_NAME = re.compile(r"(API_?KEY|ACCESS_?KEY|_TOKEN)$", re.IGNORECASE)
