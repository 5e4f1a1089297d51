"""Words found without reading JSON are the words that reading it finds, whatever the events are."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from pytest_thermal.load.alike import Alike
from pytest_thermal.load.answers import Answer
from pytest_thermal.load.completions import Stream

WORDS = (
    *("heat", " flows", "热", " °C", "r", "null", ":", '"', 'say "so"', "\\", "\\n", "\n", "\t", "{", "}]", "", " "),
    *("👍", "\u2028", "delta", '","content":"', "chat.completion.chunk", "0", "\x7f", "é" * 40),
)


def event(content: str | None, *, place: str = "content", **more: Any) -> dict[str, Any]:
    delta = {} if content is None else {place: content}
    return {"id": "r", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, **more}]}


def told(event: Any, *, ascii_only: bool = False, tight: bool = True) -> bytes:
    separators = (",", ":") if tight else None
    return json.dumps(event, ensure_ascii=ascii_only, separators=separators).encode("utf-8", "surrogatepass")


def stream_of(*events: bytes) -> Answer:
    answer = Answer(started_seconds=0.0)
    stream = Stream(answer)
    for at, data in enumerate(events):
        stream.take(data, float(at))
    stream.end(float(len(events)))
    return answer


@pytest.mark.parametrize("place", ["content", "reasoning_content", "reasoning"])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("tight", [False, True])
def test_a_stream_says_what_its_events_say(place: str, ascii_only: bool, tight: bool) -> None:
    dice = random.Random(f"{place} {ascii_only} {tight}")
    for _ in range(60):
        said = dice.choices(WORDS, k=40)
        events = [told(event(words, place=place), ascii_only=ascii_only, tight=tight) for words in said]
        last = told(event(None, finish_reason="stop"))
        answer = stream_of(*events, last, b"[DONE]")
        assert answer.text == "".join(said)
        at = [index for index, words in enumerate(said) if words]
        assert answer.ttft_seconds == at[0]
        assert answer.gaps_seconds == [after - before for before, after in itertools.pairwise(at)]
        assert answer.ok


@pytest.mark.parametrize(
    "other",
    [
        event("on", finish_reason="stop"),
        {**event("on"), "error": {"message": "out of memory"}},
        {**event("on"), "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        {**event("on"), "id": "another"},
        event(None),
        {"error": "gone"},
        [],
        "on",
        None,
    ],
    ids=repr,
)
def test_an_event_that_is_not_alike_is_read(other: Any) -> None:
    first = event("word")
    alike = Alike.to(told(first), first, "word")
    assert alike is not None
    assert alike.words(told(event("on"))) == "on"
    assert alike.words(told(other)) == ""
    assert alike.words(b"[DONE]") == ""


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"delta":{"content":"a"}}],"model":"a"}',
        b'{"a":1,"choices":[{"delta":{"content":"a"}}]}',
        b'{"choices":[{"delta":{"content":"x","content":"a"},"n":"\\u0061"}],"content":"b","z":["a"]}',
        b'{"choices":[{"delta":{"role":"a","content":"\\u0061"}}]}',
    ],
)
def test_words_whose_place_is_not_sure_are_not_learned(data: bytes) -> None:
    assert Alike.to(data, json.loads(data), "a") is None


def test_of_two_values_for_one_name_the_last_counts() -> None:
    """As for whoever reads the JSON; the first is then no place for words."""
    data = b'{"choices":[{"delta":{"content":"%b","content":"kept"}}]}'
    answer = stream_of(*(data % words for words in (b"one", b"two", b"three")), b"[DONE]")
    assert answer.text == "kept" * 3


@pytest.mark.parametrize("inner", [b"\xff", b"a\x00b", b"a\nb", b"", b"a\\", b'a","x":"b'])
def test_what_is_no_json_string_is_left_to_the_reader(inner: bytes) -> None:
    first = event("word")
    alike = Alike.to(told(first), first, "word")
    assert alike is not None
    assert alike.words(told(first).replace(b"word", inner)) == ""


def test_where_before_and_after_overlap_nothing_is_found() -> None:
    assert Alike(b'"a"', b'"a"').words(b'"a"') == ""
