"""Faults of the chat answer."""
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.chat import ChatRequest, Completion, essay
from pytest_thermal.demo.wire import Answer, Json, error_answer, login_page, model_not_found

from .base import Behaviour, Settings

_REASONING_TOKENS = 48
_STUBBORN_TOKENS = 20


class ChatAnswers(Behaviour):
    """Every chat gets one and the same answer."""

    def __init__(self, answer: Callable[[ChatRequest], Answer]) -> None:
        self._answer = answer

    async def on_chat(self, call: Call, chat: ChatRequest) -> Answer | None:
        """That answer."""
        return self._answer(chat)


class ChatHang(Behaviour):
    """Chat is read and never answered."""

    async def on_chat(self, call: Call, chat: ChatRequest) -> Answer | None:
        """No answer."""
        return await call.hang()


class WrongModel(Behaviour):
    """Another model answers than the one that was asked, and says so only in the body."""

    def __init__(self) -> None:
        self._models: tuple[str, ...] = ()

    def settings(self, settings: Settings) -> Settings:
        """Look at which others there are."""
        self._models = settings.models
        return settings

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """The next listed model's name."""
        others = [model for model in self._models if model != completion.model]
        return replace(completion, model=others[0] if others else f"{completion.model}-other")


class NoChoices(Behaviour):
    """An answer in which nothing was said."""

    def body(self, body: Json) -> Json:
        """The list of choices is empty."""
        return {**body, "choices": []}

    def event(self, event: Json) -> Json | None:
        """The list of choices is empty in each event."""
        return {**event, "choices": []}


class NoUsage(Behaviour):
    """An answer that does not say what it cost."""

    def body(self, body: Json) -> Json:
        """Everything but the usage."""
        return {name: value for name, value in body.items() if name != "usage"}

    def event(self, event: Json) -> Json | None:
        """Everything but the usage."""
        return event if event["choices"] else None


class UsageSum(Behaviour):
    """The total is not the sum of its parts."""

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """Seven tokens more in total."""
        return replace(completion, total_tokens=completion.total_tokens + 7)


class Reasoning(Behaviour):
    """A reasoning model: it thinks first, and a small `max_tokens` ends before it says anything."""

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """Thoughts before the content, both within the limit of the request."""
        limit = call.chat.max_tokens if call.chat else None
        thoughts = essay(_REASONING_TOKENS if limit is None else min(limit, _REASONING_TOKENS))
        content = completion.content[: None if limit is None else limit - len(thoughts)]
        spent = len(thoughts) + len(content)
        return replace(
            completion,
            reasoning=thoughts,
            content=content,
            finish_reason="length" if limit is not None and spent >= limit else "stop",
            completion_tokens=spent,
            total_tokens=completion.prompt_tokens + spent,
        )


class IgnoresMaxTokens(Behaviour):
    """Spends as many tokens as it likes."""

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """Twenty tokens, the first ones being the answer."""
        padding = tuple(f" {word.strip()}" for word in essay(_STUBBORN_TOKENS))
        return replace(
            completion,
            content=(*completion.content, *padding)[:_STUBBORN_TOKENS],
            finish_reason="stop",
            completion_tokens=_STUBBORN_TOKENS,
            total_tokens=completion.prompt_tokens + _STUBBORN_TOKENS,
        )


class MaxCompletionTokensOnly(Behaviour):
    """Knows only the newer name of the limit."""

    async def on_chat(self, call: Call, chat: ChatRequest) -> Answer | None:
        """400 that says which name to use."""
        if "max_tokens" not in chat.names:
            return None
        return error_answer(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )


def not_found(chat: ChatRequest) -> Answer:
    """404, although the model is listed."""
    return model_not_found(chat.model)


def invalid_name(chat: ChatRequest) -> Answer:
    """The same as an error 400, as proxies put it."""
    return error_answer(
        400,
        f"/chat/completions: Invalid model name passed in model={chat.model}. "
        "Call `/v1/models` to view available models for your key.",
        code="400",
    )


def engine_dead(chat: ChatRequest) -> Answer:  # noqa: ARG001 - the engine is dead for every model
    """The engine behind the API has died; the API has not noticed."""
    return error_answer(
        500,
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        type="InternalServerError",
        code=500,
    )


def html(chat: ChatRequest) -> Answer:  # noqa: ARG001 - the portal does not read what it intercepts
    """A login page with status 200."""
    return login_page()
