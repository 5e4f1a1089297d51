"""A chat request as it was asked, and the simulated model that writes its answer."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .wire import Answer, Json, error_answer

CONTEXT_TOKENS = 8192
ESSAY_TOKENS = 64
"""Length of an answer to which the request sets no lower limit."""

_TOKENS_PER_MESSAGE = 4
_ESSAY = (
    "Coolant carries the heat away from each cold plate , through the manifold and out to the radiator ,"
    " whose fans give it to the room . A pump that slows down shows first in the outlet temperature , then"
    " in the clocks ."
)
_NUMBER_WANTED = re.compile(r"reply with only the number\s+(-?\d+)", re.IGNORECASE)


class RefusedRequest(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """The request cannot be served; `answer` is what the client gets."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"status {answer.status}")
        self.answer = answer


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """A checked chat request. `max_tokens` is the limit in either spelling, `None` when there is none."""

    model: str
    prompt: str
    prompt_tokens: int
    max_tokens: int | None
    stream: bool
    include_usage: bool
    names: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One generated answer before it gets its wire form. One text per token; they join as they are."""

    id: str
    created: int
    model: str
    content: tuple[str, ...]
    reasoning: tuple[str, ...] = ()
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    def usage(self) -> Json:
        """The tokens spent."""
        usage: Json = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
        }
        if self.reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": len(self.reasoning)}
        return usage

    def body(self) -> Json:
        """The answer as one JSON object."""
        message: Json = {"role": "assistant", "content": "".join(self.content) if self.content else None}
        if self.reasoning:
            message["reasoning_content"] = "".join(self.reasoning)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self.usage()}

    def opening_event(self) -> Json:
        """The first event of a stream: who speaks, and no text yet."""
        return self._event({"role": "assistant", "content": ""})

    def token_events(self) -> Sequence[Json]:
        """One event per token."""
        return [
            *(self._event({"reasoning_content": text}) for text in self.reasoning),
            *(self._event({"content": text}) for text in self.content),
        ]

    def closing_event(self) -> Json:
        """The event that says why the answer ended."""
        return self._event({}, finish_reason=self.finish_reason)

    def usage_event(self) -> Json:
        """The last event when usage was asked for: no choices, only the tokens spent."""
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": self.usage()}

    def _event(self, delta: Json, *, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}

    def _head(self, kind: str) -> Json:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def read_chat(body: bytes) -> ChatRequest:
    """Check a request body.

    Raises:
        RefusedRequest: not JSON, a parameter is missing or wrong, or the model's context is too small.
    """
    data = _parse(body)
    model = data.get("model")
    if not isinstance(model, str) or not model:
        raise _refused("you must provide a model parameter", param="model", code="missing_required_parameter")
    prompt, prompt_tokens = _read_messages(data)
    limits = [_read_limit(data, name) for name in ("max_completion_tokens", "max_tokens")]
    max_tokens = next((limit for limit in limits if limit is not None), None)
    wanted_tokens = max_tokens or 1
    if prompt_tokens + wanted_tokens > CONTEXT_TOKENS:
        raise _refused(
            f"This model's maximum context length is {CONTEXT_TOKENS} tokens. However, you requested "
            f"{prompt_tokens + wanted_tokens} tokens ({prompt_tokens} in the messages, "
            f"{wanted_tokens} in the completion).",
            param="messages",
            code="context_length_exceeded",
        )
    stream = data.get("stream") or False
    if not isinstance(stream, bool):
        raise _refused("Invalid type for 'stream': expected a boolean.", param="stream", code="invalid_type")
    if data.get("n") not in {None, 1}:
        raise _refused("The simulated model gives one choice: 'n' must be 1.", param="n", code="invalid_value")
    return ChatRequest(
        model=model,
        prompt=prompt,
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        stream=stream,
        include_usage=_read_include_usage(data, stream=stream),
        names=frozenset(data),
    )


def write_completion(chat: ChatRequest) -> Completion:
    """The simulated model's answer: the number that was asked for, else prose cut at the request's limit."""
    wanted = _NUMBER_WANTED.search(chat.prompt)
    content = (wanted.group(1),) if wanted else essay(ESSAY_TOKENS)
    finish_reason = "stop"
    if chat.max_tokens is not None and len(content) >= chat.max_tokens:
        content, finish_reason = content[: chat.max_tokens], "length"
    return Completion(
        id=f"chatcmpl-demo-{os.urandom(12).hex()}",
        created=int(time.time()),
        model=chat.model,
        content=content,
        finish_reason=finish_reason,
        prompt_tokens=chat.prompt_tokens,
        completion_tokens=len(content),
        total_tokens=chat.prompt_tokens + len(content),
    )


def essay(tokens: int) -> tuple[str, ...]:
    """So many tokens of prose; each but the first begins with a space."""
    words = itertools.islice(itertools.cycle(_ESSAY.split()), tokens)
    return tuple(f" {word}" if index else word for index, word in enumerate(words))


def _parse(body: bytes) -> Mapping[str, object]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        message = "We could not parse the JSON body of your request."
        raise RefusedRequest(error_answer(400, message, code="invalid_json")) from None
    if not isinstance(data, dict):
        raise _refused("The body of the request must be a JSON object.", code="invalid_type")
    return data


def _read_messages(data: Mapping[str, object]) -> tuple[str, int]:
    """The text of the last message, and the tokens of all: one per word, and a few for each message."""
    messages = data.get("messages")
    if messages is None:
        raise _refused("Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter")
    if not isinstance(messages, list) or not messages:
        raise _refused(
            "Invalid 'messages': expected an array with at least one message.",
            param="messages",
            code="invalid_type",
        )
    texts = [_read_text(index, message) for index, message in enumerate(messages)]
    return texts[-1], sum(len(text.split()) + _TOKENS_PER_MESSAGE for text in texts)


def _read_text(index: int, message: object) -> str:
    param = f"messages[{index}]"
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise _refused(f"Invalid '{param}': expected an object with a role.", param=param, code="invalid_type")
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return " ".join(part["text"] for part in content if isinstance(part.get("text"), str))
    raise _refused(f"Invalid '{param}.content': expected text.", param=f"{param}.content", code="invalid_type")


def _read_limit(data: Mapping[str, object], name: str) -> int | None:
    limit = data.get(name)
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise _refused(f"Invalid type for '{name}': expected an integer.", param=name, code="invalid_type")
    if limit < 1:
        raise _refused(
            f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {limit} instead.",
            param=name,
            code="integer_below_min_value",
        )
    if limit > CONTEXT_TOKENS:
        raise _refused(
            f"{name} is too large: {limit}. This model supports at most {CONTEXT_TOKENS} completion tokens.",
            param=name,
            code="invalid_value",
        )
    return limit


def _read_include_usage(data: Mapping[str, object], *, stream: bool) -> bool:
    options = data.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise _refused(
            "Invalid type for 'stream_options': expected an object.",
            param="stream_options",
            code="invalid_type",
        )
    if not stream:
        raise _refused(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
            code="invalid_value",
        )
    return options.get("include_usage") is True


def _refused(message: str, *, code: str, param: str | None = None) -> RefusedRequest:
    return RefusedRequest(error_answer(400, message, param=param, code=code))
