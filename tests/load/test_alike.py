"""Words found without reading JSON are the words that reading it finds, whatever the events are."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_thermal.load.alike import Alike
from pytest_thermal.load.answers import Answer
from pytest_thermal.load.completions import Stream
from pytest_thermal.load.fast_engine import _Reading
from pytest_thermal.transport.fast.events import DataDecoder
from pytest_thermal.transport.fast.line import Head
from pytest_thermal.transport.sse import EventDecoder

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


# --- chunks as they come -------------------------------------------------------------------------------------------

FRAMES = (
    b"data: %b\n\n",
    b"data: %b\r\n\r\n",
    b"data:%b\n\n",
    b"data: %b\r\r",
    b"event: message\ndata: %b\n\n",
    b"id: 7\r\ndata: %b\r\nretry: 10\r\n\r\n",
    b": a word of nobody\n\ndata: %b\n\n: and one more\n\n",
    b"\xef\xbb\xbfdata: %b\n\n",
    b'data: %b\n\n: "heat"\n\n',
    b"data: %b\ndata: \n\n",
    b": \xff\ndata: %b\n\n",
    b"data: %b\n",
)


def read_chunks(chunks: Sequence[bytes]) -> Answer:
    """By the load engine; each chunk comes a second after the one before."""
    answer = Answer(started_seconds=0.0)
    reading = _Reading(answer, SimpleNamespace(line=None))  # type: ignore[arg-type]  # all that it asks of it
    reading.head(Head(200, "OK", [], {b"content-type": b"text/event-stream"}), 0.0)
    for at, chunk in enumerate(chunks):
        reading.body(chunk, float(at))
    reading.end(float(len(chunks)))
    return answer


def read_slowly(chunks: Sequence[bytes]) -> Answer:
    """The same by the decoder that the probes use, and each event as JSON."""
    answer = Answer(started_seconds=0.0)
    decoder = EventDecoder()
    times, words, done = list[float](), list[str](), False
    events = [(float(at), data) for at, chunk in enumerate(chunks) for _, data in decoder.feed(chunk)]
    events += [(float(len(chunks)), data) for _, data in decoder.end()]
    for at, data in events:
        done = done or data.strip() == "[DONE]"
        try:
            content = json.loads(data)["choices"][0]["delta"].get("content", "")
        except (ValueError, TypeError):  # [DONE], and two that were run together
            continue
        if content:
            words.append(content)
            times.append(at)
    answer.text = "".join(words)
    answer.ttft_seconds = times[0] if times else None
    answer.gaps_seconds = [after - before for before, after in itertools.pairwise(times)]
    answer.trouble = ("" if words else "no completion") if done else "the stream ended early"
    return answer


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("cut", ["whole", "torn", "together", "any"])
def test_however_events_are_framed_and_cut_they_say_what_they_say(frame: bytes, cut: str) -> None:
    dice = random.Random(f"{frame!r} {cut}")
    for _ in range(6):
        said = dice.choices(WORDS, k=40)
        framed = [frame % told(event(words)) for words in said]
        for at in dice.sample(range(40), 3):  # another frame among them
            framed[at] = dice.choice(FRAMES[:-1]) % told(event(said[at]))
        stream = b"".join([*framed, b"data: [DONE]\n\n"])
        if cut == "whole":
            chunks = [*framed, b"data: [DONE]\n\n"]
        elif cut == "together":
            chunks = [b"".join(framed[at : at + 2]) for at in range(0, 40, 2)] + [b"data: [DONE]\n\n"]
        else:
            few = 5 if cut == "any" else 60
            ends = sorted({0, len(stream), *dice.sample(range(len(stream)), few)})
            chunks = [stream[begin:end] for begin, end in itertools.pairwise(ends)]
        read, slowly = read_chunks(chunks), read_slowly(chunks)
        assert read.text == slowly.text
        assert (read.ttft_seconds, read.gaps_seconds) == (slowly.ttft_seconds, slowly.gaps_seconds)
        assert read.trouble == slowly.trouble


@pytest.mark.parametrize("frame", [FRAMES[0], FRAMES[1], FRAMES[2], FRAMES[4], FRAMES[5]])
def test_chunks_that_are_alike_are_not_taken_apart(frame: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []
    whole = DataDecoder.data

    def counted(decoder: DataDecoder, chunk: bytes) -> Sequence[bytes]:
        taken.append(chunk)
        return whole(decoder, chunk)

    monkeypatch.setattr(DataDecoder, "data", counted)
    chunks = [frame % told(event(f"word {number}")) for number in range(100)]
    answer = read_chunks([*chunks, b"data: [DONE]\n\n"])
    assert len(answer.gaps_seconds) == 99
    assert answer.ok
    assert len(taken) < 10


def test_what_is_left_over_belongs_to_the_next_chunk() -> None:
    event_chunks = [b"data: %b\n\n" % told(event(f"word{number} ")) for number in range(6)]
    # The fifth is the second line of an event that began before it: together they are no JSON, and no words.
    answer = read_chunks([*event_chunks[:4], b"data: {\n", *event_chunks[4:], b"data: [DONE]\n\n"])
    assert answer.text == "word0 word1 word2 word3 word5 "
    # And after a CR alone, the next LF ends nothing.
    answer = read_chunks([*event_chunks[:4], b": so\r", b"\n" + event_chunks[4], event_chunks[5]])
    assert answer.text == "".join(f"word{number} " for number in range(6))


def test_comments_for_hours_are_no_event_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_thermal.load.fast_engine.BODY_LIMIT_BYTES", 1000)
    chunks = [b"data: %b\n\n" % told(event(f"word{number} ")) for number in range(50)]
    answer = read_chunks([part for chunk in chunks for part in (chunk, b": " + b"x" * 50 + b"\n\n")])
    assert len(answer.gaps_seconds) == 49
