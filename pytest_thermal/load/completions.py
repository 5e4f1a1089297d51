"""What an answer to a chat request says: whole, streamed, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from pydantic_core import from_json, to_json

from pytest_thermal.access.limits import limit_met
from pytest_thermal.access.reading import error_text, quote
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


def is_stream(content_type: str) -> bool:
    """Whether an answer of that type comes in events."""
    return content_type.startswith("text/event-stream")


def read_refusal(answer: Answer, *, status: int, reason: str, fields: Fields, body: bytes) -> None:
    """An answer that is no 2xx."""
    answer.retry_after_seconds = retry_after_seconds(httpx.Headers(fields))
    answer.trouble = f"{status} {reason}".strip()
    exchange = _exchange(status, reason, fields, body)
    answer.detail = quote(error_text(exchange))
    answer.limit = limit_met(exchange)


def read_whole(answer: Answer, *, status: int, reason: str, fields: Fields, body: bytes) -> None:
    """An answer that came in one piece."""
    data = _read(body)
    choices = data.get("choices") if isinstance(data, dict) else None
    if not choices or not isinstance(choices, list):
        answer.trouble = "no completion"
        answer.detail = _quoted(status, reason, fields, body) or "the answer is empty"
        return
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    answer.text = _words(message)
    _take_usage(data, answer)


class Stream:
    """The events of one answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._parts: list[str] = []
        self._finished = False
        self.done = False
        self.alike: Alike | None = None
        """What events are like; None until that is known."""
        self._to_learn = _LEARNED_EVENTS

    def take(self, data: bytes, now_seconds: float) -> None:
        """An event that came so long after the request."""
        alike = self.alike
        if alike is not None and (words := alike.words(data)):
            self.token(words, now_seconds)
            return
        answer = self._answer
        if data.strip() == _DONE:
            self.done = True
            answer.latency_seconds = now_seconds
            return
        event = _read(data)
        if not isinstance(event, dict):
            return
        if event.get("error"):
            answer.trouble = "an error within the stream"
            answer.detail = quote(str(event["error"]))
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        words = _words(choice.get("delta"))
        if words:
            self.token(words, now_seconds)
        if choice.get("finish_reason"):
            self._finished = True
        elif words and self._to_learn and not (event.get("error") or event.get("usage")):
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

    def end(self, now_seconds: float) -> None:
        """It ended so long after the request."""
        answer = self._answer
        if not answer.latency_seconds:
            answer.latency_seconds = now_seconds
        answer.text = "".join(self._parts)
        if answer.completion_tokens is None:
            answer.completion_tokens = len(self._parts)
        if not answer.trouble and not (self.done or self._finished):
            answer.trouble = "the stream ended early"
            answer.detail = f"after {len(self._parts)} tokens, without finish_reason and [DONE]"


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


def _quoted(status: int, reason: str, fields: Fields, body: bytes) -> str:
    return quote(error_text(_exchange(status, reason, fields, body)))


def _exchange(status: int, reason: str, fields: Fields, body: bytes) -> Exchange:
    headers = httpx.Headers(fields)
    return Exchange(method="POST", url="", status=status, reason=reason, headers=headers, body=body)


def _words(message: Any) -> str:
    """What an answer, or a part of it, says; thinking aloud included."""
    if not isinstance(message, dict):
        return ""
    content = message.get("content")
    if isinstance(content, str) and "reasoning" not in message and "reasoning_content" not in message:
        return content
    parts = (message.get("reasoning_content"), message.get("reasoning"), content)
    return "".join(part for part in parts if isinstance(part, str))


def _take_usage(data: Mapping[str, Any], answer: Answer) -> None:
    usage = data.get("usage")
    if isinstance(usage, dict):
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(prompt, int):
            answer.prompt_tokens = prompt
        if isinstance(completion, int):
            answer.completion_tokens = completion
