"""Faults of the key: which key the bench holds, and how gateways say that they do not like it."""
# ruff: noqa: ARG002

from __future__ import annotations

import os
from collections.abc import Callable

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.chat import ChatRequest
from pytest_thermal.demo.wire import Answer, error_answer, json_answer

from .base import Behaviour


def fresh_key() -> str:
    """A random key that can be told from a real one."""
    return f"sk-demo-{os.urandom(20).hex()}"


class WrongKey(Behaviour):
    """The bench holds another key than the gateway accepts; `answer` is how some make of gateway puts it."""

    def __init__(self, answer: Callable[[], Answer] | None = None) -> None:
        self._answer = answer

    def bench_key(self, key: str) -> str:
        """A key of the right form and the wrong value."""
        return fresh_key()

    def on_key(self, call: Call, refusal: Answer | None) -> Answer | None:
        """The refusal in this gateway's words."""
        return self._answer() if refusal and self._answer else refusal


class WrongKeyOnChat(WrongKey):
    """Models are open to everybody, so that a wrong key shows only at the first chat."""

    def on_key(self, call: Call, refusal: Answer | None) -> Answer | None:
        """No refusal but for chat."""
        return refusal if call.is_chat else None


class MissingKey(Behaviour):
    """The bench holds no key."""

    def bench_key(self, key: str) -> str:
        """None."""
        return ""


class KeyScope(Behaviour):
    """The right key, without the right to do anything."""

    def on_key(self, call: Call, refusal: Answer | None) -> Answer | None:
        """403, naming the scope that is missing."""
        scope = "model.request" if call.is_chat else "api.model.read"
        return refusal or error_answer(
            403,
            f"You have insufficient permissions for this operation. Missing scopes: {scope}. "
            "A restricted key needs them, and so does your role in the project.",
            code="insufficient_permissions",
        )


class UpstreamKey(Behaviour):
    """The bench's key is right; the one with which the gateway goes on to its upstream is not."""

    async def on_chat(self, call: Call, chat: ChatRequest) -> Answer | None:
        """401 that is not about the bench's key."""
        return error_answer(
            401,
            "litellm.AuthenticationError: AuthenticationError: OpenAIException - Invalid API Key from the "
            f"upstream provider. Received Model Group={chat.model}\nAvailable Model Group Fallbacks=None",
            type="auth_error",
            code="401",
        )


class Open(Behaviour):
    """Asks nobody for a key."""

    def on_key(self, call: Call, refusal: Answer | None) -> Answer | None:
        """Everybody may."""
        return None


def no_database() -> Answer:
    """A proxy that looks keys up in a database it does not have: every key but its own is an error 400."""
    return error_answer(400, "No connected db.", type="no_db_connection", code="400")


def string_error() -> Answer:
    """The error is a string where others have an object."""
    return json_answer({"error": "Unauthorized"}, status=401)


def number_code() -> Answer:
    """The code is a number where others have a word."""
    return json_answer(
        {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}, status=401
    )


def detail() -> Answer:
    """No error at all, but a detail."""
    return json_answer({"detail": "Invalid API key"}, status=401)
