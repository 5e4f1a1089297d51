"""Reading answers: error texts in all their shapes, usage, model lists, and an exchange as a transcript."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pytest_thermal.model.said import joined, say
from pytest_thermal.transport import Exchange

QUOTE_LIMIT = 200
_MOST_READ = 4000
"""Of what should be one line."""
TRANSCRIPT_LIMIT = 4000

# "sk-abcd****wxyz", "1a2b****c3d4", "sk-...wxyz": gateways echo the tail of a key, and only its head may be shown.
_ECHOED_KEY = re.compile(
    r"(?<![\w-])(?P<head>[\w-]{0,4})[\w-]*[*•]{3,}[\w*•-]*"
    r"|(?<![\w-])(?P<prefix>(?:sk|pk|rk|ak|tk|key|gsk|xai|nvapi)-)[\w-]{0,12}(?:\.{2,}|…|\\u2026|\*{2})[\w.-]*"
)


def error_text(exchange: Exchange) -> str:
    """The gateway's own words about an error, whichever of the known shapes they come in.

    ``{"error": {"message"}}``, ``{"error": "…"}``, ``{"detail"}``, ``{"message"}``, ``{"msg"}``,
    ``{"html-message"}``, a problem document (RFC 9457), a page's title, or the text as it stands.
    """
    return _without_echoed_keys(_error_text(exchange))


def error_words(exchange: Exchange) -> str:
    """Everything in an error that can tell its kind, in lower case: text, type, code, and the headers that matter."""
    parts = [_error_text(exchange)]
    data = _error_object(exchange)
    for layer in (data, data.get("error")):
        if isinstance(layer, dict):
            parts += [str(layer[name]) for name in _KINDS if layer.get(name)]
    parts += [str(one["loc"]) for one in _listed(data.get("detail")) if one.get("loc")]
    parts += [f"{name}: {value}" for name, value in exchange.headers.items() if name.startswith(_TELLING_HEADERS)]
    return " ".join(parts).lower()


def _listed(detail: Any) -> list[dict[str, Any]]:
    """FastAPI names the field that it refuses beside the words, not in them."""
    return [one for one in detail if isinstance(one, dict)] if isinstance(detail, list) else []


_KINDS = ("type", "code", "status", "reason", "param", "error_type", "error_code")
_TELLING_HEADERS = (
    "rate_limit", "x-ratelimit", "x-envoy-overloaded", "x-envoy-ratelimited", "x-squid-error", "cf-mitigated",
)  # fmt: skip
"""Not all of a proxy's: `x-envoy-upstream-service-time` stands on every answer that comes through Envoy."""

_TEXTS = (
    "message", "detail", "msg", "error_msg", "errorMessage", "html-message", "status_msg", "title", "error",
    "error_description",
)  # fmt: skip
_INNER = ("error", "errors", "detail", "base_resp")


def _error_object(exchange: Exchange) -> dict[str, Any]:
    """The JSON object that tells the error, out of the list that some wrap it in; empty where there is none."""
    data = exchange.json
    if isinstance(data, list) and data:
        data = data[0]
    return data if isinstance(data, dict) else {}


def _error_text(exchange: Exchange) -> str:
    found = _words_in(_error_object(exchange))
    if found:
        return _squeeze(found)
    if exchange.is_html:
        title = re.search(r"<title[^>]*>(.*?)</title>", exchange.text, _PAGE) or re.search(
            r"<h1[^>]*>(.*?)</h1>", exchange.text, _PAGE
        )
        return _squeeze(re.sub(r"<[^>]+>", " ", title.group(1) if title else cut(exchange.text, _MOST_READ)))
    return _squeeze(exchange.text)


_PAGE = re.IGNORECASE | re.DOTALL


def _words_in(data: dict[str, Any], *, depth: int = 3) -> str:
    for name in _INNER:
        inner = data.get(name)
        if isinstance(inner, list) and inner:  # FastAPI: [{"loc": …, "msg": …}]
            inner = inner[0] if isinstance(inner[0], dict) else {"message": str(inner[0])}
        if isinstance(inner, dict) and depth:
            found = _words_in(inner, depth=depth - 1)
            if found:
                return found
    return next((data[name] for name in _TEXTS if isinstance(data.get(name), str) and data[name].strip()), "")


def _without_echoed_keys(text: str) -> str:
    return _ECHOED_KEY.sub(lambda match: f"{match['head'] or match['prefix'] or ''}…", text)


def quote(text: str) -> str:
    """``text`` on one line, cut to a readable length, in quotes; empty stays empty."""
    text = _squeeze(text)
    return f"“{cut(text, QUOTE_LIMIT)}”" if text else ""


def cut(text: str, most: int) -> str:
    """No more than ``most`` characters, and no word torn: half a key is not found by whoever takes keys out."""
    if len(text) <= most:
        return text
    end = most - 1
    while end and "!" <= text[end - 1] <= "~" and text[end - 1] not in _ENDS_A_KEY:
        end -= 1
    return text[:end] + "…"


_ENDS_A_KEY = frozenset("\"'<>(){}[],;")


def describe(exchange: Exchange) -> str:
    """``401 Unauthorized from GET /v1/models (“Invalid API Key”, server nginx)``."""
    notes = []
    if exchange.fault is None:
        if exchange.is_html:
            notes.append(say("an HTML page"))
        elif not exchange.body:
            notes.append(say("empty body"))
        if exchange.status is None or exchange.status >= 300 or exchange.is_html:
            notes.append(quote(error_text(exchange)))
        server = exchange.headers.get("server", "")
        if server and (exchange.is_html or (exchange.status or 0) >= 500):
            notes.append(say("server: {squeeze}", squeeze=cut(_squeeze(server), 40)))
        via = exchange.headers.get("via", "")
        if via:
            notes.append(say("via: {squeeze}", squeeze=cut(_squeeze(via), 60)))
    told = joined(", ", (note for note in notes if note))
    return say("{squeeze} from {line}", squeeze=cut(_squeeze(exchange.status_line), 80), line=exchange.line) + (
        say(" ({notes})", notes=told) if told else ""
    )


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Token counts of one answer; None for one that is missing or no whole number (12.0 is one, "12" is none)."""

    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    reasoning_tokens: int

    @property
    def adds_up(self) -> bool:
        """Whether the total is the sum. Some gateways count reasoning beside completion: that is a sum too."""
        if self.prompt_tokens is None or self.completion_tokens is None or self.total_tokens is None:
            return False
        plain = self.prompt_tokens + self.completion_tokens
        return self.total_tokens in (plain, plain + self.reasoning_tokens)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the counts that are not there."""
        return tuple(
            name for name in ("prompt_tokens", "completion_tokens", "total_tokens") if getattr(self, name) is None
        )

    def __str__(self) -> str:
        return say(
            "prompt {prompt_tokens}, completion {completion_tokens}, total {total_tokens}",
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            total_tokens=self.total_tokens,
        )


def usage_in(data: Any) -> Usage | None:
    """The ``usage`` of an answer or of a stream's chunk; None where there is none."""
    usage = data.get("usage") if isinstance(data, dict) else None
    if not isinstance(usage, dict):
        return None
    details = usage.get("completion_tokens_details")
    reasoning = token_count(details.get("reasoning_tokens")) if isinstance(details, dict) else None
    return Usage(
        prompt_tokens=token_count(usage.get("prompt_tokens")),
        completion_tokens=token_count(usage.get("completion_tokens")),
        total_tokens=token_count(usage.get("total_tokens")),
        reasoning_tokens=reasoning or 0,
    )


def choices_in(data: Any) -> list[dict[str, Any]]:
    """The choices of an answer or chunk that are objects; an empty list where there are none."""
    choices = data.get("choices") if isinstance(data, dict) else None
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def said_in(choice: dict[str, Any]) -> tuple[str, str]:
    """What a choice says and what it thought: ``(content, reasoning)`` of a message, a delta, or old-style text."""
    part = choice.get("message") or choice.get("delta") or {}
    if not isinstance(part, dict):
        return "", ""
    content = part.get("content")
    if isinstance(content, list):
        content = "".join(str(piece.get("text", "")) for piece in content if isinstance(piece, dict))
    thought = part.get("reasoning_content") or part.get("reasoning") or part.get("reasoning_text") or ""
    return str(content or choice.get("text") or ""), str(thought)


def error_in(data: Any) -> Any:
    """The error that an answer, or an event of a stream, tells although its status is 200; None where it tells none.

    ``{"error": …}`` in any of its shapes, also beside choices; and, where there are no choices and no data,
    ``{"object": "error"}`` (vLLM, SGLang), a code with words, ``error_code`` (FastChat), ``success: false``,
    ``base_resp`` (MiniMax), ``detail`` (FastAPI).
    """
    if not isinstance(data, dict):
        return None
    error, base = data.get("error"), data.get("base_resp")
    if isinstance(error, dict):
        # Written in Go, "no error" may be an object with nothing in it.
        if any(value for name, value in error.items() if name != "code") or error.get("code") not in _NO_ERROR:
            return error
    elif error:
        return error
    if data.get("choices") or data.get("data"):
        return None
    told_by_code = data.get("code", data.get("error_code")) not in _NO_ERROR and any(
        data.get(name) for name in ("message", "msg")
    )
    told = (
        data.get("object") == "error"
        or bool(data.get("error_code"))
        or data.get("success") is False
        or (isinstance(base, dict) and base.get("status_code") not in (0, None))
        or (told_by_code and data.get("data") is None)
        or (bool(data.get("detail")) and "choices" not in data)
    )
    return data if told else None


_NO_ERROR = (None, 0, "0", "", 200, "200")
"""Codes with which gateways say that all is well."""


def told_error(error: Any) -> str:
    """What `error_in` found, in the gateway's own words."""
    words = _words_in(error) if isinstance(error, dict) else str(error)
    return _without_echoed_keys(_squeeze(words or str(error)))


def gave_up(choice: dict[str, Any]) -> str:
    """The ``finish_reason`` by which an engine says that it broke off; empty where it did not.

    SGLang and vLLM say ``abort``, OpenRouter and some gateways ``error``; SGLang's own API puts it into an object.
    """
    reason = choice.get("finish_reason")
    if isinstance(reason, dict):
        reason = reason.get("type")
    return reason if isinstance(reason, str) and reason.lower() in _BROKEN_OFF else ""


_BROKEN_OFF = ("abort", "aborted", "error", "failed", "engine_error", "insufficient_system_resource")
"""The last is DeepSeek's word for an engine that had no room to go on."""


def model_ids(data: Any) -> list[str] | None:
    """Ids in a model list (OpenAI's ``data``), each once; None when it has not that shape.

    ``"data": null`` is an empty list, as gateways in Go write it.
    """
    if not isinstance(data, dict) or "data" not in data:
        return None
    entries = data["data"] if data["data"] is not None else []
    if not isinstance(entries, list):
        return None
    ids = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    if len(ids) != len(entries) or not all(isinstance(name, str) and name for name in ids):
        return None
    return list(dict.fromkeys(str(name) for name in ids))


def transcript(exchange: Exchange) -> str:
    """The exchange as text: what was sent and what came, cut to a readable length.

    The key is never in it, since the `Authorization` header is not kept.
    """
    lines = [f"> {exchange.method} {exchange.url}"]
    if exchange.sent is not None:
        lines.append("> " + json.dumps(dict(exchange.sent), ensure_ascii=False))
    lines.append("")
    if exchange.status is not None:
        lines.append(f"< {exchange.status} {exchange.reason}".rstrip())
        lines += [f"< {name}: {value}" for name, value in exchange.headers.items() if name != "set-cookie"]
        lines += ["", cut(exchange.text, TRANSCRIPT_LIMIT)]
    if exchange.fault is not None:
        lines.append(f"! {exchange.fault.value}: {exchange.fault_text}")
    lines.append(f"after {exchange.latency_seconds * 1000:.0f} ms")
    # Control characters could move the cursor of the terminal that shows this.
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in "\n".join(lines).replace("\r\n", "\n"))
    return _without_echoed_keys(text)


def token_count(value: Any) -> int | None:
    """A count of tokens as a gateway told it; None where it is no whole number, or a negative one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _squeeze(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in cut(text, _MOST_READ))
    return re.sub(r"\s+", " ", printable).strip()
