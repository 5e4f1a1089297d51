"""What an answer to a chat request says: whole, streamed, or refused."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

import httpx
from pydantic_core import from_json, to_json

from pytest_thermal.access.limits import limit_met
from pytest_thermal.access.reading import error_in, error_text, error_words, gave_up, quote, token_count, told_error
from pytest_thermal.load.alike import Alike
from pytest_thermal.load.answers import Answer
from pytest_thermal.transport import Exchange, retry_after_seconds
from pytest_thermal.transport.exchange import read_json
from pytest_thermal.transport.sse import DONE

_DONE = DONE.encode()
_LEARNED_EVENTS = 4
"""Of a stream: the first often differs from the others, and where all differ there is nothing to learn."""

Fields = list[tuple[bytes, bytes]]
"""Headers as they came."""


def to_body(asked: Mapping[str, Any]) -> bytes:
    """The body of a request. Raises ValueError for what is no JSON."""
    return to_json(asked)


def comes_in_events(begin: bytes, content_type: str) -> bool | None:
    """Whether an answer comes in events, by how it begins; None as long as that cannot be told.

    The label alone does not tell: gateways call a stream ``text/plain`` or nothing, and an error in one piece a stream.
    """
    if begin.startswith(b"{"):
        return False  # JSON in one piece, by far the most of what has no events
    if codecs.BOM_UTF8.startswith(begin):
        return None
    begin = begin.removeprefix(codecs.BOM_UTF8).lstrip()
    if begin.startswith(_EVENT_FIELDS):
        return True
    if not begin or any(field.startswith(begin) for field in _EVENT_FIELDS):
        return None
    labelled = content_type.strip().lower().startswith("text/event-stream")
    return labelled and not begin.startswith((b"{", b"[", b"<"))


_EVENT_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


def read_refusal(answer: Answer, *, status: int, reason: str, fields: Fields, body: bytes) -> None:
    """An answer that is no 2xx."""
    answer.retry_after_seconds = retry_after_seconds(httpx.Headers(fields))
    answer.trouble = f"{status} {reason}".strip()
    exchange = _exchange(status, reason, fields, body)
    answer.detail = quote(error_text(exchange))
    answer.limit = limit_met(exchange)
    if status in (400, 422):
        answer.words = error_words(exchange)


def read_whole(answer: Answer, *, status: int, reason: str, fields: Fields, body: bytes) -> None:
    """An answer that came in one piece."""
    data = _read(body)
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    error = error_in(data)
    if error is not None and choice:
        answer.trouble, answer.detail = "an error within the answer", quote(told_error(error))
    elif not isinstance(message, dict):
        answer.trouble = "no completion"
        answer.detail = _quoted(status, reason, fields, body) or "the answer is empty"
        return
    elif broken := gave_up(choice):
        answer.trouble, answer.detail = _BROKEN, f"finish_reason {broken}"
    answer.text = _words(message)
    _take_usage(data, answer)
    if answer.completion_tokens == 0 and answer.text:
        answer.completion_tokens = None  # it fills the counts in without counting


_BROKEN = "the engine broke off"


class Stream:
    """The events of one answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._parts: list[str] = []
        self._finished = False
        self.done = False
        self._last_seconds = 0.0
        self.alike: Alike | None = None
        """What events are like; None until that is known."""
        self._to_learn = _LEARNED_EVENTS

    @property
    def is_whole(self) -> bool:
        """Whether its end was said, whatever becomes of the connection."""
        return self.done or self._finished

    def take(self, data: bytes, now_seconds: float) -> None:
        """An event that came so long after the request."""
        alike = self.alike
        if alike is not None and (words := alike.words(data)):
            self.token(words, now_seconds)
            return
        answer = self._answer
        self._last_seconds = now_seconds
        if data.strip() == _DONE:
            self.done = True
            answer.latency_seconds = now_seconds
            return
        event = _read(data)
        if not isinstance(event, dict):
            return
        error = error_in(event)
        if error is not None:
            answer.trouble = "an error within the stream"
            answer.detail = quote(told_error(error))
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        words = _words(choice.get("delta"))
        if words:
            self.token(words, now_seconds)
        if choice.get("finish_reason"):
            self._finished = True
            if not answer.trouble and (broken := gave_up(choice)):
                answer.trouble, answer.detail = _BROKEN, f"finish_reason {broken} after {len(self._parts)} tokens"
        elif words and self._to_learn and not (error is not None or event.get("usage")):
            self._to_learn -= 1
            self.alike = Alike.to(data, event, words)
        if "usage" in event:
            _take_usage(event, answer)

    def token(self, words: str, now_seconds: float) -> None:
        """Words that came so long after the request."""
        answer = self._answer
        self._parts.append(words)
        if answer.last_token_seconds is None:
            answer.ttft_seconds = now_seconds
        else:
            answer.gaps_seconds.append(now_seconds - answer.last_token_seconds)
        answer.last_token_seconds = now_seconds

    def end(self, now_seconds: float | None = None) -> None:
        """It ended so long after the request; None where it broke off once it was whole."""
        answer = self._answer
        if not answer.latency_seconds:
            answer.latency_seconds = self._last_seconds if now_seconds is None else now_seconds
        answer.text = "".join(self._parts)
        # A gateway that fills usage in without counting says 0.
        answer.completion_tokens = answer.completion_tokens or len(self._parts)
        if answer.trouble:
            return
        if not self.is_whole:
            answer.trouble = "the stream ended early"
            answer.detail = f"after {len(self._parts)} tokens, without finish_reason and [DONE]"
        elif not answer.completion_tokens:
            answer.trouble = "no completion"
            answer.detail = "the stream came to its end without a token"


def first_model(body: bytes) -> str | None:
    """The first model of a list; None where it is none."""
    try:
        return str(read_json(body.decode())["data"][0]["id"])
    except (LookupError, TypeError, UnicodeError):
        return None


def _read(text: bytes) -> Any:
    """JSON, by the quicker of two readers; the other one knows how to read what is slightly wrong."""
    try:
        return from_json(text)
    except ValueError:
        return read_json(text.decode("utf-8", "replace"))


def _exchange(status: int, reason: str, fields: Fields, body: bytes) -> Exchange:
    return Exchange(method="POST", url="", status=status, reason=reason, headers=httpx.Headers(fields), body=body)


def _quoted(status: int, reason: str, fields: Fields, body: bytes) -> str:
    return quote(error_text(_exchange(status, reason, fields, body)))


def _words(message: Any) -> str:
    """What an answer, or a part of it, says; thinking aloud, refusals and calls of tools included."""
    if not isinstance(message, dict):
        return ""
    content = message.get("content")
    if isinstance(content, str) and not _OTHER_WORDS.intersection(message):
        return content
    if isinstance(content, list):
        content = "".join(str(piece.get("text", "")) for piece in content if isinstance(piece, dict))
    parts = [message.get("reasoning_content"), message.get("reasoning"), content, message.get("refusal")]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        called = call.get("function") if isinstance(call, dict) else None
        parts += [called.get("name"), called.get("arguments")] if isinstance(called, dict) else []
    return "".join(part for part in parts if isinstance(part, str))


_OTHER_WORDS = frozenset({"reasoning", "reasoning_content", "refusal", "tool_calls"})


def _take_usage(data: Mapping[str, Any], answer: Answer) -> None:
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return
    answer.prompt_tokens = token_count(usage.get("prompt_tokens")) or answer.prompt_tokens
    completion_tokens = token_count(usage.get("completion_tokens"))
    if completion_tokens is not None:
        answer.completion_tokens = completion_tokens
