"""From an exchange to the layer at fault, the likely cause and the next thing to try. Pure: no network, no clock.

Gateways tell the same thing in many ways (a 401 in five shapes, a wrong key as 400, capacity as 408, 429 or 503, a
page with status 200), so the rules below go by what an answer says before what number it carries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pytest_thermal.access.reading import describe, error_words, quote, transcript
from pytest_thermal.access.verdict import Verdict, failed
from pytest_thermal.bench import Domain, describe_key
from pytest_thermal.transport import Exchange, Fault, Route, retry_after_seconds


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a rule may know besides the exchange itself."""

    domain: Domain
    route: Route
    endpoint: str
    """The layer whose request this was: ``models`` for the model list, else ``chat``, ``stream`` …"""
    model: str | None = None
    key_proven: bool = False
    """Whether this key is already known to be good."""
    key_variables: tuple[str, ...] = ()
    """Other environment variables that look as if they held a key (names only)."""

    @property
    def key_text(self) -> str:
        """The key as it may be shown: where it came from, its head and length."""
        if self.domain.key is None:
            return "no key"
        return f"the key in {self.domain.key_origin} ({describe_key(self.domain.key)})"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The layer at fault and the words for it."""

    layer: str
    seen: str
    likely: str
    advice: str

    def verdict(self, exchange: Exchange) -> Verdict:
        """As a failed verdict with the exchange as its proof."""
        return failed(
            self.seen,
            layer=self.layer,
            likely=self.likely,
            advice=self.advice,
            transcript=transcript(exchange),
            status=exchange.status,
            latency_ms=round(exchange.latency_seconds * 1000, 1),
        )


def diagnose(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """The fault in ``exchange``, or None for a whole 2xx answer that is not a page for people."""
    if exchange.fault is not None:
        return _from_fault(exchange, exchange.fault, setting)
    if exchange.ok and not exchange.is_html and exchange.body:
        return None
    for rule in _RULES:
        found = rule(exchange, setting)
        if found is not None:
            return found
    return _unknown(exchange, setting)


# --- no whole answer -----------------------------------------------------------------------------------------


def _from_fault(exchange: Exchange, fault: Fault, setting: Setting) -> Diagnosis:
    what = f"{exchange.status_line} from {exchange.line}"
    layer = "http" if setting.endpoint == "models" else setting.endpoint
    origin = setting.route.origin
    if fault is Fault.UNSENDABLE:
        return Diagnosis(
            layer="key" if setting.domain.key else layer,
            seen=f"the request could not be formed ({exchange.fault_text})",
            likely=f"{setting.key_text} holds a character that cannot stand in a header",
            advice=f"set {setting.domain.key_origin} again, copied as plain ASCII without quotes or line breaks",
        )
    outer = {
        Fault.RESOLVE: "name",
        Fault.REFUSED: "connection",
        Fault.UNREACHABLE: "connection",
        Fault.CONNECT_TIMEOUT: "connection",
        Fault.TLS: "tls",
        Fault.PROXY: "http",
    }.get(fault)
    if outer is not None and setting.endpoint != "models":
        return Diagnosis(
            layer=outer,
            seen=f"{what}, although {origin} answered earlier in this run",
            likely="the gateway went down or was restarted during the run",
            advice="look at the gateway's own log and uptime, then run again",
        )
    if fault is Fault.PROXY and setting.route.proxy is not None:
        return Diagnosis(
            layer="http",
            seen=f"the proxy {setting.route.proxy.shown} refused: {exchange.fault_text}",
            likely="the proxy does not let this bench through to the gateway",
            advice=f"if {setting.route.host} is reached directly, add it to $no_proxy; else ask for the proxy's login",
        )
    if fault is Fault.SILENCE:
        return Diagnosis(
            layer=layer,
            seen=f"no answer to {exchange.line} in {exchange.latency_seconds:.1f} s, though the connection stands",
            likely="the gateway process hangs, or a balancer in front holds a dead backend"
            if layer == "http"
            else "the engine behind the gateway hangs: loading, out of memory, or stuck on an earlier request",
            advice=f"curl -v -m 5 {setting.domain.base_url}/models on the gateway's own machine, and its log",
        )
    if fault is Fault.NOT_HTTP:
        return Diagnosis(
            layer="http",
            seen=f"something that is not HTTP answers at {origin} ({quote(exchange.fault_text)})",
            likely="the port belongs to another service, or it speaks HTTPS and the address says http",
            advice=f"check the port in base_url: ss -ltnp on {setting.route.host}; try https:// in the address",
        )
    if fault in (Fault.CLOSED, Fault.RESET):
        return Diagnosis(
            layer=layer,
            seen=f"the connection was closed without an answer to {exchange.line}",
            likely="a firewall or balancer with no live backend, a port that expects TLS, or a crash on this request"
            if layer == "http"
            else "the gateway or its engine crashed on this request",
            advice="the gateway's log at this minute; try https:// in the address"
            if layer == "http"
            else "the gateway's and the engine's log at this minute",
        )
    if fault is Fault.CUT:
        return Diagnosis(
            layer=layer,
            seen=f"the answer to {exchange.line} broke off after {len(exchange.body)} bytes: {exchange.fault_text}",
            likely="the gateway or a proxy between closed it: a crash, or a timeout or size limit on the way",
            advice="the logs of the gateway and of each proxy at this minute",
        )
    return Diagnosis(
        layer=layer,
        seen=what,
        likely="the network or this machine refused the exchange",
        advice=f"curl -v {setting.domain.base_url}/models from this machine",
    )


# --- an answer, but not the one hoped for: rules in order, the first that speaks wins -------------------------


def _proxy_login(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 407:
        return None
    proxy = setting.route.proxy
    return Diagnosis(
        layer="http",
        seen=describe(exchange),
        likely=f"the proxy {proxy.shown if proxy else 'on the way'} wants a login of its own",
        advice=f"add {setting.route.host} to $no_proxy, or put user and password into the proxy's address",
    )


def _redirect(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status is None or not 300 <= exchange.status < 400:
        return None
    target = exchange.headers.get("location", "an address it does not name")
    login = re.search(r"login|sso|auth|portal|signin", target, re.I)
    return Diagnosis(
        layer="http",
        seen=f"{exchange.status_line} from {exchange.line} to {target}",
        likely="a login page stands before the gateway"
        if login
        else "the gateway lives at another address (https instead of http, another host or path)",
        advice="use the address for programs, not the one for browsers" if login else f"set base_url to {target}",
    )


def _front_page(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """Pages for people, and what a firewall or a web server in front says instead of the gateway."""
    words = error_words(exchange)
    blocked_by_firewall = exchange.status == 403 and ("cf-ray" in exchange.headers or "error code: 10" in words)
    basic = exchange.status == 401 and exchange.headers.get("www-authenticate", "").lower().startswith("basic")
    page = exchange.is_html and (exchange.ok or exchange.status in (401, 403, 511))
    empty = exchange.ok and not exchange.body
    if not (page or basic or blocked_by_firewall or empty):
        return None
    layer = "http" if setting.endpoint == "models" or not exchange.ok else setting.endpoint
    proxy = setting.route.proxy
    who = f"the proxy {proxy.shown}" if proxy else "a proxy, portal or web server in front"
    if empty:
        return Diagnosis(
            layer=layer,
            seen=f"{exchange.status_line} from {exchange.line} with an empty body",
            likely="another service listens there, or a proxy swallowed the answer",
            advice=f"curl -v {setting.domain.base_url}/models and compare with the gateway's documentation",
        )
    return Diagnosis(
        layer=layer,
        seen=describe(exchange),
        likely=f"{who} wants its own user and password"
        if basic
        else f"{who} answers instead of the gateway"
        + (": its deny rule or address list refuses this bench" if exchange.status == 403 else ""),
        advice=(f"add {setting.route.host} to $no_proxy; " if proxy else "")
        + "ask for the address that leads past it, or for this bench to be let through",
    )


def _money(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    words = error_words(exchange)
    if exchange.status not in (400, 401, 402, 403, 429):
        return None
    if exchange.status != 402 and not _MONEY.search(words):
        return None
    return Diagnosis(
        layer="quota",
        seen=describe(exchange),
        likely=f"the account behind {setting.key_text} has no credit or quota left",
        advice="top the account up or raise the key's quota in the gateway's console; waiting does not help",
    )


def _upstream_key(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status not in (401, 403) or setting.endpoint == "models":
        return None
    words = error_words(exchange)
    if not (_UPSTREAM.search(words) or (setting.key_proven and exchange.status == 401)):
        return None
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely="not this bench's key: the key that the gateway itself uses towards the engine"
        f"{f' of {setting.model!r}' if setting.model else ''} is refused",
        advice="in the gateway's configuration renew the upstream key of this route, or use the other route meanwhile",
    )


def _key(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    words = error_words(exchange)
    without_key = setting.domain.key is None
    by_words = exchange.status in (400, 403) and _KEY_WORDS.search(words)
    broken_by_no_key = exchange.status == 500 and without_key
    if exchange.status != 401 and not by_words and not broken_by_no_key:
        return None
    others = [name for name in setting.key_variables if f"${name}" != setting.domain.key_origin]
    hint = f"; also set here: {', '.join('$' + name for name in others[:4])}" if others else ""
    if without_key:
        return Diagnosis(
            layer="key",
            seen=f"{describe(exchange)}, asked without a key",
            likely="the bench file names no key, and this gateway wants one",
            advice='set "api_key": "${NAME}" in settings.json or api_key_env in config.toml, and export NAME' + hint,
        )
    oddity = _key_oddity(setting.domain)
    if oddity:
        likely = f"{setting.key_text} {oddity}"
    elif "expired" in words or "过期" in words:
        likely = f"{setting.key_text} has expired"
    elif _NO_DATABASE.search(words):
        likely = f"{setting.key_text} is not the gateway's master key, and the gateway has no database of other keys"
    else:
        likely = f"{setting.key_text} is wrong, disabled, or belongs to another gateway or project"
    return Diagnosis(
        layer="key",
        seen=describe(exchange),
        likely=likely,
        advice=f"compare head and length with the gateway's console and set {setting.domain.key_origin} anew" + hint,
    )


def _scope(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 403:
        return None
    words = error_words(exchange)
    if re.search(r"\bip\b|address|whitelist|allow-?list|白名单|region|country|地区", words):
        return Diagnosis(
            layer="key",
            seen=describe(exchange),
            likely=f"{setting.key_text} is good, but not from this machine's address or region",
            advice="add this bench's address to the key's allow list in the gateway's console",
        )
    on_model = f" for model {setting.model!r}" if setting.model else ""
    return Diagnosis(
        layer="key",
        seen=describe(exchange),
        likely=f"{setting.key_text} is known, but lacks the right{on_model} to {exchange.line}",
        advice="give the key's project access to this model and endpoint in the gateway's console",
    )


def _model_unknown(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if setting.endpoint == "models" or exchange.status not in (400, 403, 404, 410, 422, 500, 503):
        return None
    if not _MODEL_UNKNOWN.search(error_words(exchange)):
        return None
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely=f"{setting.model!r} is listed, but no engine behind the gateway serves it (unloaded, renamed, or no"
        " channel for this key's group)",
        advice="load the model or correct model_route; ask one engine directly for its /v1/models",
    )


def _not_here(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status not in (404, 405, 410, 501):
        return None
    if setting.endpoint == "models":
        return Diagnosis(
            layer="models",
            seen=describe(exchange),
            likely="the address has one level of path too many or too few, or this gateway offers no model list",
            advice=f"compare base_url {setting.domain.base_url} with the gateway's documentation",
        )
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely="this gateway has no chat completions at this path although it lists models",
        advice=f"compare base_url {setting.domain.base_url} with the gateway's documentation",
    )


def _rate(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 429:
        return None
    return Diagnosis(
        layer="quota",
        seen=f"{describe(exchange)}, {waiting(exchange)}",
        likely=f"{setting.key_text} has used up its requests or tokens for this minute"
        + (f" ({limit_kind(exchange)})" if limit_kind(exchange) else ""),
        advice="wait for the window to pass and run again alone; who else uses this key? raise rate_limit if it is too low",
    )


def _gateway_down(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """5xx and 408: the web server in front, the gateway, or the engine behind it."""
    status = exchange.status or 0
    if status != 408 and status < 500:
        return None
    layer = "http" if setting.endpoint == "models" else setting.endpoint
    words = error_words(exchange)
    asked = retry_after_seconds(exchange.headers)
    engine = layer != "http"
    if "x-envoy-overloaded" in exchange.headers or "overload" in words:
        likely, advice = "the gateway sheds load: too many requests at once", "who else loads it? try again when idle"
    elif re.search(r"enginecore|engine.{0,20}(dead|died|crash)|cuda|out of memory|npu|hccl|nccl", words):
        likely, advice = "the inference engine crashed; the gateway in front still lists its models", (
            "the engine's log, above the first stack trace; restart the engine"
        )
    elif status in (408, 504) or "timed out" in words or "timeout" in words:
        likely, advice = (
            "the gateway gave up waiting for the engine behind it",
            "the engine's log and queue; its timeout in the gateway's configuration",
        )
    elif status == 503 and asked is not None:
        likely = f"the gateway is in maintenance or overloaded, {waiting(exchange)}"
        advice = "wait that long, then run again"
    elif status in (502, 503):
        likely = "the web server in front is up, the " + ("engine" if engine else "gateway") + " behind it is not"
        advice = "is its process running, and on the port that the front expects? see the front's error log"
    else:
        likely = (
            "the gateway cannot reach its engine, or failed on this request"
            if engine
            else "the gateway itself fails on a request as simple as this"
        )
        advice = "the gateway's log at this minute"
    return Diagnosis(layer=layer, seen=describe(exchange), likely=likely, advice=advice)


def _unknown(exchange: Exchange, setting: Setting) -> Diagnosis:
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely="the gateway refuses a request in OpenAI's form"
        if setting.endpoint != "models"
        else "what answers is no OpenAI-compatible gateway",
        advice="the gateway's own words above; compare with its documentation",
    )


_RULES: tuple[Callable[[Exchange, Setting], Diagnosis | None], ...] = (
    _proxy_login,
    _redirect,
    _front_page,
    _money,
    _upstream_key,
    _model_unknown,
    _key,
    _scope,
    _not_here,
    _rate,
    _gateway_down,
)

_MONEY = re.compile(
    r"insufficient.?(quota|balance|credit|funds)|exceeded your current quota|billing|payment|arrear|balance"
    r"|余额|额度不足|欠费|quota.?(failed|not.?enough)|预扣费"
)
_UPSTREAM = re.compile(
    r"litellm\.\w*(error|exception)|upstream|openaiexception|provider.{0,30}(key|auth)|上游|channel.{0,20}(key|auth)"
)
_KEY_WORDS = re.compile(
    r"no connected db|no_db_connection|(invalid|incorrect|wrong|missing|expired|unknown|bad).{0,12}(api.?key|token|credential)"
    r"|api.?key.{0,40}(invalid|incorrect|not valid|missing|expired|required|not found)|unauthori[sz]ed|authentication"
    r"|invalid_api_key|invalid_key|无效的令牌|令牌.{0,6}(无效|过期|不存在)|密钥.{0,6}(无效|错误|过期)|鉴权|认证失败"
)
_NO_DATABASE = re.compile(r"no connected db|no_db_connection")
_MODEL_UNKNOWN = re.compile(
    r"model_not_found|invalid model name|model.{0,80}(not exist|not found|not supported|unknown|is not available"
    r"|not be found|unavailable)|(unknown|unsupported|no such|invalid) model|pinned to|no.{0,12}(deployments?|channel).{0,20}available"
    r"|模型.{0,20}(不存在|未找到|不支持)|无可用渠道|notfounderror"
)
_PARALLEL = re.compile(r"parallel|concurren|并发|x-envoy-overloaded|overflow|queue.?(full|timeout)|too many connections")
_PER_MINUTE = re.compile(
    r"per.?(minute|min\b|second|hour|day)|\brpm\b|\btpm\b|\bqps\b|limit_type: (requests|tokens)|rate.?limit|throttl|频率|每分钟"
    r"|remaining-(requests|tokens): 0"
)


def limit_kind(exchange: Exchange) -> str:
    """``parallel`` or ``rate``, from what a refusal says of itself; empty where it does not say."""
    words = error_words(exchange)
    if _PARALLEL.search(words):
        return "parallel"
    if _PER_MINUTE.search(words):
        return "rate"
    return ""


def waiting(exchange: Exchange) -> str:
    """What the answer says about waiting, in words."""
    asked = retry_after_seconds(exchange.headers)
    if asked is None:
        return "without Retry-After"
    stated = exchange.headers.get("retry-after", "").strip()
    as_date = bool(stated) and not stated.replace(".", "", 1).isdigit()
    return f"Retry-After {asked:.0f} s" + (f" (given as the date {stated})" if as_date else "")


def _key_oddity(domain: Domain) -> str | None:
    """What is visibly odd about the key itself, without quoting it."""
    assert domain.key is not None
    text = domain.key.get_secret_value()
    if text != text.strip():
        return "has white space or a line break around it"
    if text[:1] in "\"'“‘`" or text[-1:] in "\"'”’`":
        return "stands in quotes, and the quotes are sent too"
    if text.lower().startswith("bearer "):
        return "begins with “Bearer ”, which is added anyway"
    if re.search(r"\$\{?\w+\}?|%\w+%", text):
        return "is an unexpanded variable, not a key"
    if re.fullmatch(r"(?i)(sk-)?(x{3,}|your[-_ ].*|.*change.?me.*|.*placeholder.*|test|dummy|none|null|todo)", text):
        return "is a placeholder, not a key"
    return None

