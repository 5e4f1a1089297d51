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
from pytest_thermal.access.reading import describe, error_in, error_text, error_words, quote
from pytest_thermal.model.said import joined, say
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
    return replace(
        found,
        seen=say(
            "{describe}, but an error is in it: {text}", describe=describe(exchange), text=quote(error_text(exchange))
        ),
    )


def _told_status(data: Any) -> int | None:
    """The status that an error with status 200 should have had; None where ``data`` is no error."""
    error = error_in(data)
    if error is None:
        return None
    code = data.get("code", data.get("error_code"))
    if isinstance(error, dict):
        code = error.get("code", error.get("status", code))
    return int(str(code)) if re.fullmatch(r"[45]\d\d", str(code)) else 400


# --- an answer, but not the one hoped for: rules in order, the first that speaks wins -------------------------


def _proxy_login(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 407:
        return None
    proxy = setting.route.proxy
    return Diagnosis(
        layer="http",
        seen=describe(exchange),
        likely=say("the proxy {proxy} wants a login of its own", proxy=proxy.shown if proxy else say("on the way")),
        advice=say(
            "add {host} to $no_proxy, or put user and password into the proxy's address", host=setting.route.host
        ),
    )


def _plain_to_tls(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """Web servers say so when plain HTTP comes to their TLS port."""
    if exchange.status != 400 or setting.route.uses_tls or not words.PLAIN_TO_TLS.search(exchange.text[:2000].lower()):
        return None
    return Diagnosis(
        layer="http",
        seen=describe(exchange),
        likely=say("the port speaks HTTPS, and the address says http"),
        advice=say("https:// instead of http:// in base_url {base_url}", base_url=setting.domain.base_url),
    )


def _redirect(exchange: Exchange, _setting: Setting) -> Diagnosis | None:
    if exchange.status is None or not 300 <= exchange.status < 400:
        return None
    location = exchange.headers.get("location", "")
    # Without its query, which may hold a session or a ticket.
    target = urljoin(exchange.url, location).split("?", 1)[0] if location else say("an address it does not name")
    login = re.search(r"login|sso|auth|portal|signin|cas\b", location, re.IGNORECASE)
    right = re.sub(r"/(models|chat/completions)/?$", "", target)
    return Diagnosis(
        layer="http",
        seen=say(
            "{status_line} from {line} to {target}", status_line=exchange.status_line, line=exchange.line, target=target
        ),
        likely=say("a login page stands before the gateway")
        if login
        else say("the gateway lives at another address (https instead of http, another host or path)"),
        advice=say("use the address for programs, not the one for browsers")
        if login
        else say("set base_url to {right}", right=right),
    )


def _front(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """Pages for people, and what a firewall, mesh or web server in front says instead of the gateway."""
    status = exchange.status or 0
    if exchange.ok and not exchange.body:
        return Diagnosis(
            layer="http" if setting.endpoint == "models" else setting.endpoint,
            seen=say(
                "{status_line} from {line} with an empty body", status_line=exchange.status_line, line=exchange.line
            ),
            likely=say("another service listens there, or a proxy swallowed the answer"),
            advice=say(
                "curl -v {base_url}/models and compare with the gateway's documentation",
                base_url=setting.domain.base_url,
            ),
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
    who = (
        say("the proxy {proxy}", proxy=proxy.shown)
        if proxy
        else say("a proxy, portal, firewall or web server in front")
    )
    if own_login:
        likely = say("{who} wants its own user and password", who=who)
    elif squid and status >= 500:
        likely = say("{who} cannot reach the gateway ({split})", who=who, split=squid.split(" ")[0])
    elif status == 403:
        likely = say("{who} answers instead of the gateway: its deny rule or address list refuses this bench", who=who)
    else:
        likely = say("{who} answers instead of the gateway", who=who)
    return Diagnosis(
        layer="http" if setting.endpoint == "models" or not exchange.ok else setting.endpoint,
        seen=describe(exchange),
        likely=likely,
        advice=(say("add {host} to $no_proxy; ", host=setting.route.host) if proxy else "")
        + say("ask for the address that leads past it, or for this bench to be let through"),
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
        likely=say("the account behind {key_text} has no credit or quota left", key_text=setting.key_text),
        advice=say("top the account up or raise the key's quota in the gateway's console; waiting does not help"),
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
        likely=say(
            "not this bench's key: the key that the gateway itself uses towards the engine{and_model} is refused",
            and_model=say(" of {model!r}", model=setting.model) if setting.model else "",
        ),
        advice=say(
            "in the gateway's configuration renew the upstream key of this route, or use the other route meanwhile"
        ),
    )


def _model_unknown(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if setting.endpoint == "models" or exchange.status not in (400, 403, 404, 410, 422, 500, 503):
        return None
    if not words.MODEL_UNKNOWN.search(error_words(exchange)):
        return None
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely=say(
            "{model!r} is listed, but no engine behind the gateway serves it (unloaded, renamed, or "
            "no channel for this key's group)",
            model=setting.model,
        ),
        advice=say("load the model or correct model_route; ask one engine directly for its /v1/models"),
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
    hint = say("; also set here: {names}", names=joined(", ", ("$" + name for name in others[:4]))) if others else ""
    if setting.domain.key is None:
        return Diagnosis(
            layer="key",
            seen=say("{describe}, asked without a key", describe=describe(exchange)),
            likely=say("the bench file names no key, and this gateway wants one"),
            advice=say('set "api_key": "${NAME}" in settings.json or api_key_env in config.toml, and export NAME')
            + hint,
        )
    oddity = _key_oddity(setting.domain.key)
    if oddity:
        likely = say("{key_text} {oddity}", key_text=setting.key_text, oddity=oddity)
    elif words.EXPIRED.search(said):
        likely = say("{key_text} has expired", key_text=setting.key_text)
    elif words.NO_DATABASE.search(said):
        likely = say(
            "{key_text} is not the gateway's master key, and the gateway has no database of other keys",
            key_text=setting.key_text,
        )
    elif words.NOT_RECEIVED.search(said) and not words.WRONG.search(error_text(exchange).lower()):
        return Diagnosis(
            layer="key",
            seen=say(
                "{describe}, although {key_text} was sent as Authorization: Bearer",
                describe=describe(exchange),
                key_text=setting.key_text,
            ),
            likely=say(
                "the gateway looks for the key in another header (x-api-key, api-key, apikey), or a "
                "proxy on the way takes the header out"
            ),
            advice=say("switch the gateway to OpenAI's form (Authorization: Bearer …); its log says what it received"),
        )
    else:
        likely = say(
            "{key_text} is wrong, disabled, or belongs to another gateway or project", key_text=setting.key_text
        )
    if exchange.is_html:
        likely += say("; or a web server in front of the gateway wants a login of its own")
    return Diagnosis(
        layer="key",
        seen=describe(exchange),
        likely=likely,
        advice=say(
            "compare head and length with the gateway's console and set {key_origin} anew",
            key_origin=setting.domain.key_origin,
        )
        + hint,
    )


def _scope(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 403:
        return None
    if words.PLACE.search(error_words(exchange)):
        return Diagnosis(
            layer="key",
            seen=describe(exchange),
            likely=say("{key_text} is good, but not from this machine's address or region", key_text=setting.key_text),
            advice=say("add this bench's address to the key's allow list in the gateway's console"),
        )
    return _lacks_right(exchange, setting)


def _lacks_right(exchange: Exchange, setting: Setting) -> Diagnosis:
    on_model = say(" for model {model!r}", model=setting.model) if setting.model else ""
    return Diagnosis(
        layer="key",
        seen=describe(exchange),
        likely=say(
            "{key_text} is known, but lacks the right{on_model} to {line}",
            key_text=setting.key_text,
            on_model=on_model,
            line=exchange.line,
        ),
        advice=say("give the key's project access to this model and endpoint in the gateway's console"),
    )


def _not_here(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status not in (404, 405, 410, 501):
        return None
    compare = say("compare base_url {base_url} with the gateway's documentation", base_url=setting.domain.base_url)
    if words.NO_ROUTE.search(error_words(exchange)):
        return Diagnosis(
            layer="models" if setting.endpoint == "models" else setting.endpoint,
            seen=describe(exchange),
            likely=say("the ingress or gateway in front knows no route for this host name and path"),
            advice=say("{compare}, and with the routes of the ingress", compare=compare),
        )
    if setting.endpoint == "models":
        return Diagnosis(
            layer="models",
            seen=describe(exchange),
            likely=say("the address has one level of path too many or too few, or this gateway offers no model list"),
            advice=compare,
        )
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely=say("this gateway has no chat completions at this path although it lists models"),
        advice=compare,
    )


def _not_ready(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    """The engine or gateway says of itself that it is loading, overloaded, or taken out after failures."""
    if exchange.status not in (408, 425, 429, 500, 502, 503, 504, 529):
        return None
    said = error_words(exchange)
    if words.LOADING.search(said) and not re.search(r"error|fail", error_text(exchange).lower()):
        likely, advice = say("the engine is still loading its model"), say("wait until it is loaded, then run again")
    elif "cooldown" in said and not re.search(r"cooldown_list=\[\]", said):
        likely = say("the gateway took every engine of this model out for a while, after they had failed")
        advice = say("the gateway's log of the minutes before: what did the engines answer?")
    elif words.OVERLOAD.search(said):
        likely, advice = (
            say("the gateway sheds load: too many requests at once"),
            say("who else loads it? try again when idle"),
        )
    else:
        return None
    layer = "http" if setting.endpoint == "models" else setting.endpoint
    return Diagnosis(
        layer=layer,
        seen=say("{describe}, {waiting}", describe=describe(exchange), waiting=words.waiting(exchange)),
        likely=likely,
        advice=advice,
    )


def _rate(exchange: Exchange, setting: Setting) -> Diagnosis | None:
    if exchange.status != 429:
        return None
    kind = words.limit_kind(exchange)
    return Diagnosis(
        layer="quota",
        seen=say("{describe}, {waiting}", describe=describe(exchange), waiting=words.waiting(exchange)),
        likely=say(
            "{key_text} is at its limit of requests at the same time: someone else is using it",
            key_text=setting.key_text,
        )
        if kind == "parallel"
        else say("{key_text} has used up its requests or tokens for this minute", key_text=setting.key_text),
        advice=say(
            "wait for the window to pass and run again alone; who else uses this key? raise its limit if it is low"
        ),
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
            say("the inference engine crashed; the gateway in front still lists its models"),
            say("the engine's log, above the first stack trace; restart the engine"),
        )
    elif status in (408, 504, 524) or "timed out" in said or "timeout" in said:
        likely, advice = (
            say("the gateway gave up waiting for the engine behind it"),
            say("the engine's log and queue; its timeout in the gateway's configuration"),
        )
    elif status == 503 and retry_after_seconds(exchange.headers) is not None:
        likely = say("the gateway is in maintenance or overloaded, {waiting}", waiting=words.waiting(exchange))
        advice = say("wait that long, then run again")
    elif status in (502, 503) or 520 <= status <= 530:
        likely = (
            say("the web server in front is up, the ") + ("engine" if engine else "gateway") + say(" behind it is not")
        )
        likely += say("; or the proxy {proxy} cannot reach it", proxy=proxy.shown) if proxy else ""
        advice = say("is its process running, and on the port that the front expects? see the front's error log")
    else:
        likely = (
            say("the gateway cannot reach its engine, or failed on this request")
            if engine
            else say("the gateway itself fails on a request as simple as this")
        )
        advice = say("the gateway's log at this minute")
    return Diagnosis(
        layer=setting.endpoint if engine else "http", seen=describe(exchange), likely=likely, advice=advice
    )


def _unknown(exchange: Exchange, setting: Setting) -> Diagnosis:
    return Diagnosis(
        layer=setting.endpoint,
        seen=describe(exchange),
        likely=say("the gateway refuses a request in OpenAI's form")
        if setting.endpoint != "models"
        else say("what answers is no OpenAI-compatible gateway"),
        advice=say("the gateway's own words above; compare with its documentation"),
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
        return say("has white space or a line break around it")
    if text[:1] in "\"'“‘`" or text[-1:] in "\"'”’`":
        return say("stands in quotes, and the quotes are sent too")
    if text.lower().startswith("bearer "):
        return say("begins with “Bearer ”, which is added anyway")
    if re.search(r"\$\{?\w+\}?|%\w+%", text):
        return say("is an unexpanded variable, not a key")
    if re.fullmatch(r"(?i)(sk-)?(x{3,}|your[-_ ].*|.*change.?me.*|.*placeholder.*|test|dummy|none|null|todo)", text):
        return say("is a placeholder, not a key")
    if re.search(r"\s", text):
        return say("has white space in the middle: two things, or one that was wrapped")
    return None
