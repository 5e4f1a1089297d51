"""Chat and stream: does an engine behind the gateway answer, and count what it answers?"""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Access


@pytest.mark.critical
def test_chat(access: Access) -> None:
    """A minimal chat is answered with choices."""
    access.require("chat")


@pytest.mark.critical
def test_chat_usage(access: Access) -> None:
    """Its `usage` gives prompt, completion and total tokens, and they add up."""
    access.require("chat_usage")


@pytest.mark.critical
def test_chat_model(access: Access) -> None:
    """The model that was asked for is the one that answered."""
    access.require("chat_model")


@pytest.mark.critical
def test_chat_fallback(access: Access) -> None:
    """The fallback model answers too, so that a switch to it would work."""
    access.require("chat_fallback")


@pytest.mark.advisory
def test_chat_limit(access: Access) -> None:
    """`max_tokens` is kept, so that the cost of a load can be promised."""
    access.require("chat_limit")


@pytest.mark.critical
def test_stream(access: Access) -> None:
    """A streamed chat brings its first token, goes on without a stall, and comes to its end."""
    access.require("stream")


@pytest.mark.advisory
def test_stream_done(access: Access) -> None:
    """The stream closes with `[DONE]`."""
    access.require("stream_done")


@pytest.mark.advisory
def test_stream_usage(access: Access) -> None:
    """The stream ends with its `usage`."""
    access.require("stream_usage")
