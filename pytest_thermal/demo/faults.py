"""The table of faults: what each is called, the layer it belongs to, and how the gateway then behaves."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from .behaviours import address, burst, chat, http, key, models, service, stream
from .behaviours.base import Behaviour
from .wire import login_page


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that can be wrong. `healthy` ones look odd and are right: a client has to live with them."""

    name: str
    layer: str
    description: str
    healthy: bool = False
    behaviour: Callable[[], Behaviour] = field(repr=False)
    """Makes the behaviour for one gateway."""


def _layer(layer: str, *rows: tuple[str, Callable[[], Behaviour], str]) -> list[Fault]:
    """The rows of one layer; a description that begins with `healthy: ` says that nothing is wrong."""
    return [
        Fault(
            name=name,
            layer=layer,
            description=description,
            healthy=description.startswith("healthy: "),
            behaviour=behaviour,
        )
        for name, behaviour, description in rows
    ]


_ROWS = (
    *_layer(
        "name",
        ("unresolvable", address.Unresolvable, "the address names a host that no resolver knows"),
    ),
    *_layer(
        "connection",
        ("refused", address.Refused, "nothing listens on the port"),
        ("silent-connection", address.SilentConnection, "connection attempts get no answer (Linux only)"),
    ),
    *_layer(
        "tls",
        ("plain-for-https", address.PlainForHttps, "the address says https, the port speaks http"),
        ("tls-good", address.Tls, "healthy: https with a certificate of its own authority (needs trustme)"),
        ("tls-expired", address.TlsExpired, "the certificate ended yesterday (needs trustme)"),
        ("tls-wrong-host", address.TlsWrongHost, "the certificate names another host (needs trustme)"),
        (
            "tls-unknown-issuer",
            address.TlsUnknownIssuer,
            "nobody knows the certificate's issuer (needs trustme)",
        ),
    ),
    *_layer(
        "http",
        ("silence", http.Silence, "requests are read and never answered"),
        ("not-http", http.NotHttp, "something else than HTTP lives on the port: an SSH greeting"),
        ("cut-connection", http.CutConnection, "the connection closes without an answer"),
        ("proxy-page", partial(http.EveryRequest, login_page), "a login page, HTML with status 200"),
        ("bad-gateway", partial(http.EveryRequest, http.bad_gateway), "502, a proxy's page"),
        ("unavailable", partial(http.EveryRequest, http.unavailable), "503, with Retry-After as a date"),
        ("gateway-timeout", partial(http.EveryRequest, http.gateway_timeout), "504, a proxy's page"),
        ("redirect", http.Redirect, "302 to a login page of the same origin"),
        ("empty", partial(http.EveryRequest, http.empty), "204 and nothing in it"),
    ),
    *_layer(
        "key",
        ("key-wrong", key.WrongKey, "the bench's key is another: 401 in OpenAI's shape"),
        ("key-missing", key.MissingKey, "the bench has no key: 401 in OpenAI's shape"),
        ("key-scope", key.KeyScope, "the key may do nothing: 403"),
        ("key-no-db", partial(key.WrongKey, key.no_database), "wrong key, told as 400 no_db_connection"),
        (
            "key-string-error",
            partial(key.WrongKey, key.string_error),
            "wrong key: 401, the error is a string",
        ),
        ("key-number-code", partial(key.WrongKey, key.number_code), "wrong key: 401, the code is a number"),
        ("key-detail", partial(key.WrongKey, key.detail), "wrong key: 401, a detail in place of an error"),
        ("key-only-on-chat", key.WrongKeyOnChat, "wrong key, and models are open: 401 on chat only"),
        ("upstream-key", key.UpstreamKey, "401 on chat that is about the gateway's own key upstream"),
        ("open", key.Open, "healthy: no key is asked for"),
    ),
    *_layer(
        "models",
        ("path-too-deep", address.PathTooDeep, "the address ends in /v1/v1, the API is under /v1"),
        ("path-too-short", address.PathTooShort, "the address ends in /v1, the API is under /api/v1"),
        ("models-missing", models.ModelsMissing, "404 for the list of models; chat works"),
        ("models-shape", models.ModelsShape, "the list of models is not under data"),
        ("route-missing", models.RouteMissing, "the first model is listed under another, similar name"),
        ("models-text", models.ModelsText, "healthy: the list of models comes as text/plain"),
    ),
    *_layer(
        "chat",
        ("model-not-found", partial(chat.ChatAnswers, chat.not_found), "404 on chat for a listed model"),
        ("model-not-found-400", partial(chat.ChatAnswers, chat.invalid_name), "the same, told as 400"),
        ("wrong-model", chat.WrongModel, "200, and another model has answered"),
        ("no-choices", chat.NoChoices, "an answer without choices"),
        ("no-usage", chat.NoUsage, "an answer without usage"),
        ("usage-sum", chat.UsageSum, "total tokens are not prompt and completion tokens together"),
        (
            "engine-dead",
            partial(chat.ChatAnswers, chat.engine_dead),
            "500 on chat: the engine died behind the API",
        ),
        ("chat-html", partial(chat.ChatAnswers, chat.html), "a login page on chat, HTML with status 200"),
        ("chat-hang", chat.ChatHang, "chat is never answered"),
        ("reasoning", chat.Reasoning, "healthy: max_tokens goes into reasoning, the content stays empty"),
        ("ignores-max-tokens", chat.IgnoresMaxTokens, "healthy: 20 tokens an answer, whatever the limit"),
        (
            "max-completion-tokens-only",
            chat.MaxCompletionTokensOnly,
            "healthy: 400 for max_tokens, max_completion_tokens works",
        ),
    ),
    *_layer(
        "stream",
        ("stream-cut", stream.StreamCut, "the connection breaks after two tokens"),
        (
            "stream-truncated",
            stream.StreamTruncated,
            "the stream ends after two tokens, cleanly, without finish_reason",
        ),
        ("stream-stall", stream.StreamStall, "nothing comes after two tokens"),
        ("stream-no-done", stream.StreamNoDone, "no [DONE]; all else is right"),
        ("stream-no-usage", stream.StreamNoUsage, "no usage, although it was asked for"),
        (
            "stream-usage-beside-choices",
            stream.StreamUsageBesideChoices,
            "healthy: usage comes in the event that closes the answer",
        ),
        ("stream-ignored", stream.StreamIgnored, "plain JSON where a stream was asked for"),
        ("stream-error-event", stream.StreamErrorEvent, "an error within the stream, after two tokens"),
        ("stream-buffered", stream.StreamBuffered, "the whole stream in one burst at the end"),
        (
            "stream-comments",
            stream.StreamComments,
            "healthy: comments, CRLF, event lines, letters cut in two",
        ),
    ),
    *_layer(
        "concurrency",
        (
            "burst-429",
            partial(burst.ParallelLimit, 2, burst.without_retry_after),
            "429 without Retry-After beyond 2 requests at a time",
        ),
        ("burst-429-html", partial(burst.ParallelLimit, 2, burst.burst_html), "the same as a page"),
        (
            "burst-408",
            partial(burst.ParallelLimit, 2, burst.burst_timeout),
            "empty 408 beyond 2 requests at a time",
        ),
        (
            "burst-503",
            partial(burst.ParallelLimit, 2, burst.burst_overload),
            "503 with x-envoy-overloaded beyond 2 requests at a time",
        ),
        ("burst-drop", burst.BurstDrop, "connections are reset beyond 4 requests at a time"),
        ("swapped", burst.Swapped, "requests at the same time get each other's answers"),
        (
            "duplicated",
            burst.Duplicated,
            "one cached answer with one id for all that differ only in the question",
        ),
        ("burst-500", burst.Burst500, "every fifth request that meets others fails with 500"),
    ),
    *_layer(
        "quota",
        (
            "quota-429",
            partial(burst.Quota, burst.quota_plain),
            "3 requests a minute: 429 with Retry-After in seconds",
        ),
        ("quota-429-date", partial(burst.Quota, burst.quota_date), "the same, Retry-After is a date"),
        (
            "quota-429-bare",
            partial(burst.Quota, burst.quota_bare),
            "the same, plain text without Retry-After",
        ),
        ("quota-low", burst.QuotaLow, "announces 3 requests and 100 tokens a minute, and does not insist"),
    ),
    *_layer(
        "scheduler",
        ("one-slot", service.OneSlot, "one request after the other, 0.25 s each"),
        ("slow", service.Slow, "1.5 s to the first token"),
        ("overload", service.Overload, "slower with the square of the requests at a time"),
    ),
    *_layer(
        "health",
        (
            "flapping",
            service.Flapping,
            "from the fifth request on, 4 requests for models get 503; then all is well",
        ),
        ("dies", service.Dies, "the port closes after 6 requests"),
    ),
)

FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in _ROWS})
"""Every fault by its name."""


def find_fault(name: str) -> Fault:
    """The fault of that name.

    Raises:
        ValueError: there is none; the message lists the nearest names.
    """
    if name in FAULTS:
        return FAULTS[name]
    stem = name.split("-", maxsplit=1)[0]
    near = difflib.get_close_matches(name, FAULTS, n=5, cutoff=0.5)
    near = near or [known for known in FAULTS if stem and stem in known]
    hint = f"near names: {', '.join(near)}" if near else f"all names: {', '.join(FAULTS)}"
    raise ValueError(f"no demo fault is called {name!r}\ntry: {hint}")
