"""Which limit refused a request, by what the refusal says of itself."""

from __future__ import annotations

import re

from pytest_thermal.access import words
from pytest_thermal.access.reading import error_text, error_words
from pytest_thermal.transport import Exchange

REQUESTS, TOKENS, PARALLEL, RATE, MONEY, UNTOLD = "requests", "tokens", "parallel", "rate", "money", "untold"
"""Requests a minute, tokens a minute, requests at one time; a rate of which it does not say what is counted; what has
been paid for; a refusal that says nothing."""
LIMITS = (REQUESTS, TOKENS, PARALLEL, RATE, MONEY, UNTOLD)
QUOTA = 429
ALSO = (403, 408, 503, 529)
"""Statuses in which some gateways put a limit, where their words say so."""

_TOKENS = re.compile(
    r"\b[ti]?tp[smd]\b|tokens?[ _-]*(per|/)[ _-]*(min|m\b|sec|hour|day)|token[ _-]*(rate|limit|quota)"
    r"|limit[a-z_ -]{0,12}tokens?\b|too many tokens|每分钟.{0,6}token|token.{0,6}(限|超)"
)
_REQUESTS = re.compile(
    r"\b[rq]p[smd]\b|requests?[ _-]*(per|/)[ _-]*(min|m\b|sec|hour|day)|request[ _-]*(rate|limit|quota)"
    r"|limit[a-z_ -]{0,12}requests?\b|请求.{0,6}(次数|频率|数)|每分钟.{0,6}请求"
)
_USED = re.compile(r"current (?P<what>[rt]pm): (?P<used>[\d.]+)|(?P<of>[rt]pm) limit: (?P<most>[\d.]+)")
"""LiteLLM names every limit of a key, with how much of each was used."""
_OF_TYPE = {"requests": REQUESTS, "request": REQUESTS, "tokens": TOKENS, "token": TOKENS}


def limit_met(exchange: Exchange) -> str:
    """One of ``LIMITS``, or empty for an answer that no limit refused.

    What the gateway states in a header or as the error's type counts before its words, a counter that has nothing
    left before none.
    """
    status = exchange.status
    if status != QUOTA and status not in ALSO:
        return ""
    kind = _kind(exchange)
    return (kind or UNTOLD) if status == QUOTA else kind


def _kind(exchange: Exchange) -> str:
    stated = exchange.headers.get("rate_limit_type", "").lower()
    if stated:
        return PARALLEL if "parallel" in stated else _OF_TYPE.get(stated.removesuffix("_per_minute"), RATE)
    said = error_words(exchange)
    if words.MONEY.search(said):
        return MONEY
    text = error_text(exchange).lower()
    kind = words.limit_kind(exchange)
    if kind == "parallel":
        return PARALLEL
    empty = {
        name.rpartition("-")[2] for name, value in exchange.headers.items() if _COUNTER.fullmatch(name) and value == "0"
    }
    used_up = _used_up(text)
    named = {_OF_TYPE[word] for word in re.findall(r"\b(?:requests?|tokens?)\b", _types(exchange)) if word in _OF_TYPE}
    for found in (named, used_up, {_OF_TYPE[name] for name in empty}, _in_words(text)):
        if len(found) == 1:
            return next(iter(found))
    return RATE if kind or len(_in_words(text)) > 1 else ""


_COUNTER = re.compile(r"x-ratelimit-.*remaining-(requests|tokens)")


def _in_words(text: str) -> set[str]:
    return {kind for kind, pattern in ((TOKENS, _TOKENS), (REQUESTS, _REQUESTS)) if pattern.search(text)}


def _used_up(text: str) -> set[str]:
    """Of limits that are told with what was used of them, those that are reached."""
    used: dict[str, float] = {}
    most: dict[str, float] = {}
    for match in _USED.finditer(text):
        if match["what"]:
            used[match["what"]] = float(match["used"].rstrip("."))
        else:
            most[match["of"]] = float(match["most"].rstrip("."))
    reached = {name for name, value in used.items() if name in most and value >= most[name]}
    return {TOKENS if name == "tpm" else REQUESTS for name in reached}


def _types(exchange: Exchange) -> str:
    """The error's type and code, as OpenAI has them: ``tokens``, ``requests``."""
    data = exchange.json
    error = data.get("error") if isinstance(data, dict) else None
    if not isinstance(error, dict):
        return ""
    return " ".join(str(error[name]) for name in ("type", "code") if error.get(name)).lower()
