"""What chat and stream conclude from one answer: names of models, odd usage, streams that end in every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_thermal.access import Ladder
from pytest_thermal.access.probes.inference import completion_trouble, same_model
from pytest_thermal.model import Finding, Outcome
from tests.support.hush import Hush
from tests.transport.wire import Asked, Peer, Script, Wire, answer

MakeLadder = Callable[..., Ladder]
MakeWire = Callable[..., Wire]

# --- one model or two ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked, answered",
    [
        ("qwen3-8b", "qwen3-8b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("qwen3-8b", "/models/Qwen3-8B/"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-4", "gpt-4-0613"),
        ("gpt-4", "gpt-4-1106-preview"),
        ("gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
        ("gpt-4o", "gpt-4o-latest"),
        ("qwen-max", "qwen-max-2025-01-25"),
        ("qwen-plus", "qwen-plus-latest"),
        ("deepseek-v3", "deepseek-v3-0324"),
        ("deepseek-r1", "deepseek-r1-0528"),
        ("doubao-pro-32k", "doubao-pro-32k-241215"),
        ("claude-3-5-sonnet", "claude-3-5-sonnet-20241022"),
        ("claude-3-5-sonnet", "claude-3-5-sonnet@20240620"),
        ("anthropic/claude-3-5-sonnet", "claude-3-5-sonnet-20241022-v2:0"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("gemini-1.5-pro", "gemini-1.5-pro-002"),
        ("gemini-2.5-flash", "gemini-2.5-flash-preview-05-20"),
        ("kimi-k2", "kimi-k2-0905-preview"),
        ("llama3", "llama3:latest"),
        ("mistral-large", "mistral-large-2411"),
        ("model", "model-v2"),
    ],
)
def test_dates_revisions_and_prefixes_make_no_other_model(asked: str, answered: str) -> None:
    assert same_model(asked, answered)
    assert same_model(answered, asked)


@pytest.mark.parametrize(
    "asked, answered",
    [
        ("qwen3-8b", "qwen3-80b"),
        ("qwen3", "qwen3-8b"),
        ("qwen3-8b", "qwen3-8b-instruct"),
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-4o-mini", "gpt-4o"),
        ("gpt-4", "gpt-4.1"),
        ("gpt-4", "gpt-4o"),
        ("gpt-4", "gpt-4-32k"),
        ("gpt-4", "gpt-4-turbo"),
        ("gpt-3.5-turbo", "gpt-3.5-turbo-16k"),
        ("deepseek-v3", "deepseek-v3.1"),
        ("deepseek-v3", "deepseek-r1"),
        ("llama-3", "llama-3-70b"),
        ("llama3", "llama3:8b"),
        ("claude-3", "claude-3-5-sonnet"),
        ("glm-4", "glm-4-9b"),
        ("moonshot-v1", "moonshot-v1-8k"),
        ("mistral-7b", "mixtral-8x7b"),
        ("a", "b"),
        ("demo-chat", "demo-chat-mini"),
        ("demo-chat", "demo-chat-2"),
    ],
)
def test_sizes_kinds_and_versions_make_another(asked: str, answered: str) -> None:
    assert not same_model(asked, answered)
    assert not same_model(answered, asked)


# --- an answer and its judgement -----------------------------------------------------------------------------


GOOD: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "demo-chat",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "OK"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}


@pytest.mark.parametrize(
    "data, trouble",
    [
        (GOOD, None),
        ({"choices": [{"message": {}}]}, None),
        ({"choices": [{"message": {"content": None}}]}, None),
        (None, "no JSON object"),
        ([], "no JSON object"),
        ("x", "no JSON object"),
        ({}, "no choices"),
        ({"choices": None}, "no choices"),
        ({"choices": []}, "no choices"),
        ({"choices": [None]}, "no choices"),
        ({"choices": "x"}, "no choices"),
        ({"choices": [{}]}, "no message"),
        ({"choices": [{"message": None}]}, "no message"),
        ({"choices": [{"delta": {"content": "x"}}]}, "no message"),
        ({"choices": [{"text": "x"}]}, "no message"),
    ],
)
def test_what_is_no_completion(data: Any, trouble: str | None) -> None:
    found = completion_trouble(data)
    assert (found is None) if trouble is None else (found is not None and trouble in found)


def saying(chat: Callable[[Asked], bytes], *, said: Callable[[], None] | None = None) -> Script:
    """Lists models and answers chats; ``said`` is called after a streamed one."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            listed = answer({"data": [{"id": "demo-chat"}, {"id": "demo-chat-mini"}, {"id": "other"}]})
            refused = answer({"error": "Unauthorized"}, status="401 Unauthorized")
            if asked.method == "GET":
                peer.send(listed if "authorization" in asked.headers else refused)
            else:
                peer.send(chat(asked))
                if said is not None and json.loads(asked.body).get("stream"):
                    said()

    return script


Judge = Callable[..., Finding]


@pytest.fixture
def judge(make_ladder: MakeLadder, wire: MakeWire) -> Judge:
    """The finding of a check where every chat gets the same JSON."""

    def judged(check: str, body: object, **settings: Any) -> Finding:
        server = wire(saying(lambda _: answer(body)))
        settings = {"default": "demo-chat", "fallback": None, **settings}
        return make_ladder(server.url, **settings).finding(check)

    return judged


@pytest.mark.parametrize(
    "usage, words",
    [
        (None, "the answer has no usage"),
        ([], "the answer has no usage"),
        ({}, "no whole number for prompt_tokens, completion_tokens, total_tokens"),
        (
            {"prompt_tokens": "10", "completion_tokens": 2, "total_tokens": 12},
            "no whole number for prompt_tokens: “{'prompt",
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2}, "no whole number for total_tokens"),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": None}, "no whole number for total_tokens"),
        ({"prompt_tokens": 10, "completion_tokens": 1.5, "total_tokens": 12}, "no whole number for completion_tokens"),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 13}, "does not add up: prompt 10, completion 2"),
        ({"prompt_tokens": 0, "completion_tokens": 2, "total_tokens": 2}, "counts no prompt tokens"),
        ({"input_tokens": 10, "output_tokens": 2}, "no whole number for prompt_tokens"),
    ],
)
def test_usage_that_is_wrong(usage: object, words: str, judge: Judge) -> None:
    found = judge("chat_usage", {**GOOD, "usage": usage})
    assert (found.outcome, found.layer) == (Outcome.FAILED, "chat")
    assert words in found.seen


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10.0, "completion_tokens": 2.0, "total_tokens": 12.0},
        {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10},
        {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 8},
        },
        {
            "prompt_tokens": 10,
            "completion_tokens": 0,
            "total_tokens": 12,
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    ],
)
def test_usage_that_is_right(usage: object, judge: Judge) -> None:
    assert judge("chat_usage", {**GOOD, "usage": usage}).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "body, layer, words",
    [
        ({"error": {"message": "the engine is gone", "type": "server_error"}}, "chat", "the engine is gone"),
        ({"error": {"message": "Invalid API key", "code": 401}}, "chat", "Invalid API key"),  # the key was proven
        ({"error": {"message": "Rate limit exceeded", "code": 429}}, "quota", "Rate limit exceeded"),
        ({"error_code": 17, "error_msg": "Open api daily request limit reached"}, "chat", "daily request limit"),
        ({"code": 402, "message": "余额不足"}, "quota", "余额不足"),
        ({"choices": None}, "chat", "no choices"),
        ({"choices": []}, "chat", "no choices"),
        ([GOOD], "chat", "no JSON object"),
        ("OK", "chat", "no JSON object"),
    ],
)
def test_an_error_told_with_200(body: object, layer: str, words: str, judge: Judge) -> None:
    found = judge("chat", body)
    assert (found.outcome, found.layer) == (Outcome.FAILED, layer)
    assert words in found.message


@pytest.mark.parametrize(
    "message, warned",
    [
        ({"content": "OK"}, False),
        ({"content": ""}, True),
        ({"content": None}, True),
        ({"content": None, "reasoning_content": "hm"}, False),
        ({"content": [{"type": "text", "text": "OK"}]}, False),
    ],
)
def test_an_empty_answer_is_a_warning(message: dict[str, Any], warned: bool, judge: Judge) -> None:
    found = judge("chat", {**GOOD, "choices": [{"message": message, "finish_reason": "stop"}]})
    assert found.outcome is Outcome.PASSED
    assert bool(found.warnings) is warned


@pytest.mark.parametrize(
    "named, outcome, words",
    [
        ("demo-chat", Outcome.PASSED, "answered by 'demo-chat'"),
        ("demo-chat-2026-01-01", Outcome.PASSED, ""),
        ("other", Outcome.FAILED, "fell back to another route"),
        ("demo-chat-mini", Outcome.FAILED, "fell back to another route"),
        ("/srv/weights/x", Outcome.PASSED, "taken for an alias"),
        ("", Outcome.INCONCLUSIVE, "does not name its model"),
        (None, Outcome.INCONCLUSIVE, "does not name its model"),
        (7, Outcome.INCONCLUSIVE, "does not name its model"),
    ],
)
def test_who_answered(named: object, outcome: Outcome, words: str, judge: Judge) -> None:
    found = judge("chat_model", {**GOOD, "model": named})
    assert found.outcome is outcome, found.message
    assert words in found.message


def test_an_unknown_model_that_another_one_answers(judge: Judge) -> None:
    """As llama.cpp does: 200, and the loaded model's name."""
    found = judge("chat_model", {**GOOD, "model": "other"}, default="demo-chat", fallback="demo-chat-mini")
    assert "asked for 'demo-chat', answered by 'other'" in found.seen


# --- streams -------------------------------------------------------------------------------------------------


def event(data: object, kind: str = "") -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {kind}\n" if kind else "") + f"data: {text}\n\n"


def piece(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}
DONE = event("[DONE]")


@pytest.fixture
def judge_stream(make_ladder: MakeLadder, wire: MakeWire, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """The finding of a check where a streamed chat gets these bytes."""

    def judged(check: str, body: str, *, kind: str = "text/event-stream", length: int | None = None) -> Finding:
        content = body.encode()
        hush = Hush.over_sockets(monkeypatch) if length is not None else None

        def chat(asked: Asked) -> bytes:
            if not json.loads(asked.body).get("stream"):
                return answer(GOOD)
            head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length or len(content)}\r\n\r\n"
            return head.encode() + content

        def script(peer: Peer) -> None:
            saying(chat, said=hush.tell if hush is not None else None)(peer)

        return make_ladder(wire(script).url, fallback=None).finding(check)

    return judged


@pytest.mark.parametrize(
    "body",
    [
        event(piece("one")) + event(piece(" two", "stop")) + event(USAGE) + DONE,
        event(piece("one")) + event(piece("", "length")) + DONE,
        event(piece("one", "stop")),  # no [DONE]: advisory
        event(piece("one")) + DONE,  # no finish_reason, as some engines write it
        event({"choices": [{"delta": {"reasoning_content": "hm"}}]}) + event(piece("", "length")) + DONE,
        event({"choices": [{"delta": {"tool_calls": [{"id": "1"}]}}]}) + event(piece("", "tool_calls")) + DONE,
        event({"choices": [{"text": "one", "finish_reason": "stop"}]}) + DONE,
        event({**piece("one"), "usage": None}) + event({**piece("", "stop"), "usage": USAGE["usage"]}) + DONE,
        event({**piece("one"), "error": None}) + event(piece("", "stop")) + DONE,
        event(piece("", "stop")) + event(USAGE) + DONE,  # nothing to be seen, but counted
        ": waiting\n\n" + event(piece("one"), "message") + event(piece("", "stop")) + DONE,
        event([]) + event(piece("one", "stop")) + DONE,
        event("") + event(" ") + event("hello", "ping") + event(piece("one", "stop")) + DONE,
        event({"choices": None}) + event({"choices": [None]}) + event(piece("one", "stop")) + DONE,
    ],
)
def test_a_stream_that_is_right(body: str, judge_stream: Judge) -> None:
    found = judge_stream("stream", body)
    assert found.outcome is Outcome.PASSED, found.message


@pytest.mark.parametrize(
    "body, words",
    [
        ("", "with an empty body"),
        (DONE, "without a single token"),
        (event(piece("", "stop")) + DONE, "without a single token"),
        (event(piece("one")), "ended after 1 chunks"),
        (event({"error": {"message": "engine died"}}), "engine died"),
        (
            event(piece("one")) + event({"error": "engine died"}) + DONE,
            "an error in the middle of the stream, after 1 chunks",
        ),
        (event(piece("one")) + event({"message": "engine died"}, "error") + DONE, "engine died"),
        (event(piece("one")) + event("engine died", "error"), "engine died"),
        (json.dumps(GOOD), "instead of an event stream"),
        ("one two", "instead of an event stream"),
        (
            event(piece("one")) + event('{"choices": [{"del') + event(piece("two", "stop")) + DONE,
            "a chunk of the stream is no JSON",
        ),
        ('{"error": {"message": "no stream here"}}', "no stream here"),
        ("<html><title>Sign in</title>", "an HTML page"),
    ],
)
def test_a_stream_that_is_wrong(body: str, words: str, judge_stream: Judge) -> None:
    kind = "application/json" if body.startswith(("{", "o")) else "text/event-stream"
    found = judge_stream("stream", body, kind=kind)
    assert (found.outcome, found.layer) == (Outcome.FAILED, "stream"), found.message
    assert words in found.message


@pytest.mark.parametrize(
    "body, outcome, words",
    [
        (event(piece("one")), Outcome.FAILED, "stalled after 1 chunks"),
        (event(piece("one", "stop")), Outcome.FAILED, "stalled after 1 chunks"),
        (event(piece("one", "stop")) + DONE, Outcome.PASSED, "first token"),
    ],
)
def test_a_stream_whose_end_does_not_come(body: str, outcome: Outcome, words: str, judge_stream: Judge) -> None:
    found = judge_stream("stream", body, length=10_000)
    assert found.outcome is outcome, found.message
    assert words in found.message


def test_a_stream_of_messages_in_place_of_deltas_is_a_warning(judge_stream: Judge) -> None:
    found = judge_stream("stream", event(GOOD) + DONE)
    assert found.outcome is Outcome.PASSED
    assert "no text" in found.warnings[0]


def test_a_stream_without_done_is_advised_against(judge_stream: Judge) -> None:
    body = event(piece("one", "stop")) + event(USAGE)
    assert judge_stream("stream", body).outcome is Outcome.PASSED
    assert judge_stream("stream_done", body).outcome is Outcome.FAILED
    assert judge_stream("stream_usage", body).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "usage, outcome",
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, Outcome.PASSED),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 13}, Outcome.FAILED),
        ({"prompt_tokens": 10}, Outcome.FAILED),
        (None, Outcome.FAILED),
    ],
)
def test_usage_of_a_stream(usage: object, outcome: Outcome, judge_stream: Judge) -> None:
    body = event(piece("one", "stop")) + event({"choices": [], "usage": usage}) + DONE
    assert judge_stream("stream_usage", body).outcome is outcome
