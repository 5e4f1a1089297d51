"""From an exchange to the layer at fault, the likely cause and the next thing to try. Pure: no network, no clock.

Gateways tell the same thing in many ways (a 401 in five shapes, a wrong key as 400, capacity as 408, 429 or 503, a
page with status 200), so the rules below go by what an answer says before what number it carries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

from pydantic import SecretStr

from pytest_thermal.access import words
from pytest_thermal.access.case import Diagnosis, Setting
from pytest_thermal.access.faults import from_fault
from pytest_thermal.access.reading import describe, error_text, error_words, quote
from pytest_thermal.transport import Exchange, retry_after_seconds

__all__ = ["Diagnosis", "Setting", "diagnose"]


def diagnose(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """The fault in ``exchange``, or None for a whole 2xx answer that is neither a page for people nor an error."""
    if exchange.fault is not None:
        return from_fault(exchange, exchange.fault, setting)
    judged = exchange
    if exchange.ok and not exchange.is_html and exchange.body:
        status = _told_status(exchange.json)
        if status is None:
            return None
        judged = replace(exchange, status=status)
    found = next(filter(None, (rule(judged, setting) for rule in _RULES)), None) or _unknown(judged, setting)
    if judged is exchange:
        return found
    return replace(found, seen=f"{describe(exchange)}, but an error is in it: {quote(error_text(exchange))}")


def _told_status(data: Any) -> int | None:
    """The status that an error with status 200 should have had; None where ``data`` is no error."""
    if not isinstance(data, dict) or data.get("choices") or data.get("data"):
        return None
    error, base = data.get("error"), data.get("base_resp")
    code = data.get("code", data.get("error_code"))
    if isinstance(error, dict):
        code = error.get("code", error.get("status", code))
    told_by_code = code not in (None, 0, "0", 200, "200") and any(data.get(name) for name in ("message", "msg"))
    refused = (
        bool(error)
        or bool(data.get("error_code"))
        or data.get("success") is False
        or (isinstance(base, dict) and base.get("status_code") not in (0, None))
        or (told_by_code and data.get("data") is None)
    )
    if not refused:
        return None
    return int(str(code)) if re.fullmatch(r"[45]\d\d", str(code)) else 400


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


def _plain_to_tls(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """Web servers say so when plain HTTP comes to their TLS port."""
    if exchange.status != 400 or setting.route.uses_tls or not words.PLAIN_TO_TLS.search(exchange.text[:2000].lower()):
        return None
    return Diagnosis(
        layer="http",
        seen=describe(exchange),
        likely="the port speaks HTTPS, and the address says http",
        advice=f"https:// instead of http:// in base_url {setting.domain.base_url}",
    )


def _redirect(exchange: Exchange, _setting: Setting) -> Diagnosis | None:
    if exchange.status is None or not 300 <= exchange.status < 400:
        return None
    location = exchange.headers.get("location", "")
    # Without its query, which may hold a session or a ticket.
    target = urljoin(exchange.url, location).split("?", 1)[0] if location else "an address it does not name"
    login = re.search(r"login|sso|auth|portal|signin|cas\b", location, re.IGNORECASE)
    right = re.sub(r"/(models|chat/completions)/?$", "", target)
    return Diagnosis(
        layer="http",
        seen=f"{exchange.status_line} from {exchange.line} to {target}",
        likely="a login page stands before the gateway"
        if login
        else "the gateway lives at another address (https instead of http, another host or path)",
        advice="use the address for programs, not the one for browsers" if login else f"set base_url to {right}",
    )


def _front(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """Pages for people, and what a firewall, mesh or web server in front says instead of the gateway."""
    status = exchange.status or 0
    if exchange.ok and not exchange.body:
        return Diagnosis(
            layer="http" if setting.endpoint == "models" else setting.endpoint,
            seen=f"{exchange.status_line} from {exchange.line} with an empty body",
            likely="another service listens there, or a proxy swallowed the answer",
            advice=f"curl -v {setting.domain.base_url}/models and compare with the gateway's documentation",
        )
    challenge = exchange.headers.get("www-authenticate", "").lower()
    own_login = status == 401 and re.search(r"\b(basic|negotiate|ntlm|digest)\b", challenge)
    by_status = exchange.ok or status == 511 or (400 <= status < 500 and status not in _PAGES_THAT_MEAN_MORE)
    page = exchange.is_html and by_status
    squid = exchange.headers.get("x-squid-error", "")
    said = error_words(exchange)
    firewall = status == 403 and (words.FIREWALL.search(said) or "cf-ray" in exchange.headers)
    if not (page or own_login or firewall or squid):
        return None
    proxy = setting.route.proxy
    who = f"the proxy {proxy.shown}" if proxy else "a proxy, portal, firewall or web server in front"
    if own_login:
        likely = f"{who} wants its own user and password"
    elif squid and status >= 500:
        likely = f"{who} cannot reach the gateway ({squid.split(' ')[0]})"
    elif status == 403:
        likely = f"{who} answers instead of the gateway: its deny rule or address list refuses this bench"
    else:
        likely = f"{who} answers instead of the gateway"
    return Diagnosis(
        layer="http" if setting.endpoint == "models" or not exchange.ok else setting.endpoint,
        seen=describe(exchange),
        likely=likely,
        advice=(f"add {setting.route.host} to $no_proxy; " if proxy else "")
        + "ask for the address that leads past it, or for this bench to be let through",
    )


_PAGES_THAT_MEAN_MORE = (401, 404, 405, 407, 408, 410, 429)
"""Statuses whose number says more than that a web server wrote the page."""


def _money(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status not in (400, 401, 402, 403, 429):
        return None
    if exchange.status != 402 and not words.MONEY.search(error_words(exchange)):
        return None
    return Diagnosis(
        layer="quota",
        seen=describe(exchange),
        likely=f"the account behind {setting.key_text} has no credit or quota left",
        advice="top the account up or raise the key's quota in the gateway's console; waiting does not help",
    )


def _model_denied(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """A good key that may not use this model, told with any of four statuses."""
    said = error_words(exchange)
    if exchange.status not in (400, 401, 403, 404) or "not exist" in said or not words.MODEL_DENIED.search(said):
        return None
    return _lacks_right(exchange, setting)


def _upstream_key(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status not in (401, 403) or setting.endpoint == "models":
        return None
    if not (words.UPSTREAM.search(error_words(exchange)) or (setting.key_proven and exchange.status == 401)):
        return None
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely="not this bench's key: the key that the gateway itself uses towards the engine"
        f"{f' of {setting.model!r}' if setting.model else ''} is refused",
        advice="in the gateway's configuration renew the upstream key of this route, or use the other route meanwhile",
    )


def _model_unknown(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if setting.endpoint == "models" or exchange.status not in (400, 403, 404, 410, 422, 500, 503):
        return None
    if not words.MODEL_UNKNOWN.search(error_words(exchange)):
        return None
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely=f"{setting.model!r} is listed, but no engine behind the gateway serves it (unloaded, renamed, or no"
        " channel for this key's group)",
        advice="load the model or correct model_route; ask one engine directly for its /v1/models",
    )


def _key(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    said = error_words(exchange)
    without_key = setting.domain.key is None
    by_words = (exchange.status in (400, 403) and words.KEY.search(said)) or (exchange.status == 403 and without_key)
    # A gateway that stumbles over the missing header; on chat a 500 is the engine's.
    broken_by_no_key = exchange.status == 500 and without_key and setting.endpoint == "models"
    if exchange.status != 401 and not by_words and not broken_by_no_key:
        return None
    others = [name for name in setting.key_variables if f"${name}" != setting.domain.key_origin]
    hint = f"; also set here: {', '.join('$' + name for name in others[:4])}" if others else ""
    if setting.domain.key is None:
        return Diagnosis(
            layer="key",
            seen=f"{describe(exchange)}, asked without a key",
            likely="the bench file names no key, and this gateway wants one",
            advice='set "api_key": "${NAME}" in settings.json or api_key_env in config.toml, and export NAME' + hint,
        )
    oddity = _key_oddity(setting.domain.key)
    if oddity:
        likely = f"{setting.key_text} {oddity}"
    elif words.EXPIRED.search(said):
        likely = f"{setting.key_text} has expired"
    elif words.NO_DATABASE.search(said):
        likely = f"{setting.key_text} is not the gateway's master key, and the gateway has no database of other keys"
    elif words.NOT_RECEIVED.search(said) and not words.WRONG.search(error_text(exchange).lower()):
        return Diagnosis(
            layer="key",
            seen=f"{describe(exchange)}, although {setting.key_text} was sent as Authorization: Bearer",
            likely="the gateway looks for the key in another header (x-api-key, api-key, apikey), or a proxy on the way"
            " takes the header out",
            advice="switch the gateway to OpenAI's form (Authorization: Bearer …); its log says what it received",
        )
    else:
        likely = f"{setting.key_text} is wrong, disabled, or belongs to another gateway or project"
    if exchange.is_html:
        likely += "; or a web server in front of the gateway wants a login of its own"
    return Diagnosis(
        layer="key",
        seen=describe(exchange),
        likely=likely,
        advice=f"compare head and length with the gateway's console and set {setting.domain.key_origin} anew" + hint,
    )


def _scope(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 403:
        return None
    if words.PLACE.search(error_words(exchange)):
        return Diagnosis(
            layer="key",
            seen=describe(exchange),
            likely=f"{setting.key_text} is good, but not from this machine's address or region",
            advice="add this bench's address to the key's allow list in the gateway's console",
        )
    return _lacks_right(exchange, setting)


def _lacks_right(exchange: Exchange, setting: Setting) -> Diagnosis:
    on_model = f" for model {setting.model!r}" if setting.model else ""
    return Diagnosis(
        layer="key",
        seen=describe(exchange),
        likely=f"{setting.key_text} is known, but lacks the right{on_model} to {exchange.line}",
        advice="give the key's project access to this model and endpoint in the gateway's console",
    )


def _not_here(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status not in (404, 405, 410, 501):
        return None
    compare = f"compare base_url {setting.domain.base_url} with the gateway's documentation"
    if words.NO_ROUTE.search(error_words(exchange)):
        return Diagnosis(
            layer="models" if setting.endpoint == "models" else setting.endpoint,
            seen=describe(exchange),
            likely="the ingress or gateway in front knows no route for this host name and path",
            advice=f"{compare}, and with the routes of the ingress",
        )
    if setting.endpoint == "models":
        return Diagnosis(
            layer="models",
            seen=describe(exchange),
            likely="the address has one level of path too many or too few, or this gateway offers no model list",
            advice=compare,
        )
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely="this gateway has no chat completions at this path although it lists models",
        advice=compare,
    )


def _not_ready(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """The engine or gateway says of itself that it is loading, overloaded, or taken out after failures."""
    if exchange.status not in (408, 425, 429, 500, 502, 503, 504, 529):
        return None
    said = error_words(exchange)
    if words.LOADING.search(said) and not re.search(r"error|fail", error_text(exchange).lower()):
        likely, advice = "the engine is still loading its model", "wait until it is loaded, then run again"
    elif "cooldown" in said and not re.search(r"cooldown_list=\[\]", said):
        likely = "the gateway took every engine of this model out for a while, after they had failed"
        advice = "the gateway's log of the minutes before: what did the engines answer?"
    elif words.OVERLOAD.search(said):
        likely, advice = "the gateway sheds load: too many requests at once", "who else loads it? try again when idle"
    else:
        return None
    layer = "http" if setting.endpoint == "models" else setting.endpoint
    return Diagnosis(layer=layer, seen=f"{describe(exchange)}, {words.waiting(exchange)}", likely=likely, advice=advice)


def _rate(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 429:
        return None
    kind = words.limit_kind(exchange)
    return Diagnosis(
        layer="quota",
        seen=f"{describe(exchange)}, {words.waiting(exchange)}",
        likely=f"{setting.key_text} is at its limit of requests at the same time: someone else is using it"
        if kind == "parallel"
        else f"{setting.key_text} has used up its requests or tokens for this minute",
        advice="wait for the window to pass and run again alone; who else uses this key? raise its limit if it is low",
    )


def _gateway_down(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """5xx, 408 and 424: the web server in front, the gateway, or the engine behind it."""
    status = exchange.status or 0
    if status not in (408, 424) and status < 500:
        return None
    engine = setting.endpoint != "models"
    said = error_words(exchange)
    proxy = setting.route.proxy if not setting.route.uses_tls else None
    if words.CRASHED.search(said):
        likely, advice = (
            "the inference engine crashed; the gateway in front still lists its models",
            "the engine's log, above the first stack trace; restart the engine",
        )
    elif status in (408, 504, 524) or "timed out" in said or "timeout" in said:
        likely, advice = (
            "the gateway gave up waiting for the engine behind it",
            "the engine's log and queue; its timeout in the gateway's configuration",
        )
    elif status == 503 and retry_after_seconds(exchange.headers) is not None:
        likely = f"the gateway is in maintenance or overloaded, {words.waiting(exchange)}"
        advice = "wait that long, then run again"
    elif status in (502, 503) or 520 <= status <= 530:
        likely = "the web server in front is up, the " + ("engine" if engine else "gateway") + " behind it is not"
        likely += f"; or the proxy {proxy.shown} cannot reach it" if proxy else ""
        advice = "is its process running, and on the port that the front expects? see the front's error log"
    else:
        likely = (
            "the gateway cannot reach its engine, or failed on this request"
            if engine
            else "the gateway itself fails on a request as simple as this"
        )
        advice = "the gateway's log at this minute"
    return Diagnosis(
        layer=setting.endpoint if engine else "http", seen=describe(exchange), likely=likely, advice=advice
    )


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
    _plain_to_tls,
    _redirect,
    _front,
    _money,
    _model_denied,
    _upstream_key,
    _model_unknown,
    _key,
    _scope,
    _not_here,
    _not_ready,
    _rate,
    _gateway_down,
)


def _key_oddity(key: SecretStr) -> str | None:
    """What is visibly odd about the key itself, without quoting it."""
    text = key.get_secret_value()
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
    if re.search(r"\s", text):
        return "has white space in the middle: two things, or one that was wrapped"
    return None
