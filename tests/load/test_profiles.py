"""What is asked: bodies, beginnings that no cache knows, turns of an agent, and what a gateway teaches."""

from __future__ import annotations

import pytest

from pytest_thermal.load.profiles import AGENT_TURNS, LONG_CONTEXT_WORDS, Conversation, Dialect, body_of


def text_of(messages: list[dict[str, str]]) -> str:
    return " ".join(message["content"] for message in messages)


@pytest.mark.parametrize("profile", ["chat", "long-context", "agent"])
def test_no_two_conversations_begin_alike(profile: str) -> None:
    beginnings = {text_of(Conversation(profile, slot=slot).messages())[:25] for slot in range(50)}
    assert len(beginnings) == 50


@pytest.mark.parametrize("profile", ["chat", "long-context"])
def test_no_two_requests_of_a_slot_are_the_same(profile: str) -> None:
    conversation = Conversation(profile, slot=0)
    assert len({text_of(conversation.messages()) for _ in range(20)}) == 20


def test_a_chat_is_short_and_a_long_context_is_long() -> None:
    assert len(text_of(Conversation("chat", slot=0).messages()).split()) < 60
    assert len(text_of(Conversation("long-context", slot=0).messages()).split()) > LONG_CONTEXT_WORDS


def test_an_agent_carries_on_with_what_was_said_and_then_begins_anew() -> None:
    agent = Conversation("agent", slot=0)
    for turn in range(AGENT_TURNS):
        messages = agent.messages()
        assert [message["role"] for message in messages] == ["user", "assistant"] * turn + ["user"]
        agent.took(f"answer {turn}", ok=True)
        assert turn == 0 or messages[-2]["content"] == f"answer {turn - 1}"
    assert len(agent.messages()) == 1


def test_after_a_failure_an_agent_begins_anew() -> None:
    agent = Conversation("agent", slot=0)
    agent.messages()
    agent.took("first", ok=True)
    agent.messages()
    agent.took("", ok=False)
    assert len(agent.messages()) == 1


def body(dialect: Dialect, *, stream: bool) -> dict[str, object]:
    return dict(
        body_of(
            [{"role": "user", "content": "hi"}],
            model="m",
            max_tokens=7,
            temperature=0.5,
            stream=stream,
            dialect=dialect,
        )
    )


def test_the_body_is_what_the_bench_asks_for() -> None:
    assert body(Dialect(), stream=True) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 7,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream_options" not in body(Dialect(), stream=False)


def test_a_gateway_teaches_how_to_write() -> None:
    dialect = Dialect()
    assert not dialect.learn(400, "“model is missing”")
    assert not dialect.learn(500, "“use max_completion_tokens”")
    assert dialect.learn(400, "“Use 'max_completion_tokens' instead.”")
    assert not dialect.learn(400, "“Use 'max_completion_tokens' instead.”")
    assert dialect.learn(422, "“stream_options: extra fields not permitted”")
    assert body(dialect, stream=True) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "stream": True,
    }
