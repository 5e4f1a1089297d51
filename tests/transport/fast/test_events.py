"""The quick decoder finds what the other finds, however the bytes are cut."""

from __future__ import annotations

import itertools

import pytest

from pytest_thermal.transport.fast.events import DataDecoder
from pytest_thermal.transport.sse import EventDecoder, told_as_error
from tests.transport.test_sse import STREAMS

MORE = {
    "quick ones": b"data: a\n\ndata: b\n\ndata: c\n\n",
    "one after a comment": b": x\n\ndata: a\n\n",
    "two lines of data": b"data: a\ndata: b\n\ndata: c\n\n",
    "an event's name first": b"event: x\ndata: a\n\n",
    "ends that look quick": b"data: a\n\n\n\ndata: b\n\n",
    "a CR within": b"data: a\r\rdata: b\n\n",
    "no data": b"data: \n\ndata: \n\n",
}
ALL = {**{name: content for name, (content, _) in STREAMS.items()}, **MORE}


def plain(chunks: list[bytes]) -> list[str]:
    decoder = EventDecoder()
    found = [told_as_error(*event) for chunk in chunks for event in decoder.feed(chunk)]
    return found + [told_as_error(*event) for event in decoder.end()]


def quick(chunks: list[bytes]) -> list[str]:
    decoder = DataDecoder()
    found = [data for chunk in chunks for data in decoder.data(chunk)]
    return [data.decode("utf-8", "replace") for data in (*found, *decoder.rest())]


@pytest.mark.parametrize("name", ALL)
def test_cut_anywhere_the_data_is_the_same(name: str) -> None:
    content = ALL[name]
    whole = plain([content])
    assert quick([content]) == whole
    assert quick([bytes([byte]) for byte in content]) == whole
    for first, second in itertools.combinations_with_replacement(range(len(content) + 1), 2):
        assert quick([content[:first], content[first:second], content[second:]]) == whole, (first, second)


@pytest.mark.parametrize("name", ALL)
def test_each_event_is_out_with_the_same_byte(name: str) -> None:
    one, other = EventDecoder(), DataDecoder()
    for byte in ALL[name]:
        told = [told_as_error(*event) for event in one.feed(bytes([byte]))]
        assert told == [data.decode() for data in other.data(bytes([byte]))]


def test_an_error_that_only_the_kind_tells_is_in_the_data() -> None:
    assert quick([b"event: error\ndata: too long\n\n"]) == ['{"error": "too long"}']
    assert quick([b'event: response.error\ndata: {"message": "no"}\n\n']) == ['{"error": {"message": "no"}}']
    assert quick([b'event: error\ndata: {"error": "no"}\n\n']) == ['{"error": "no"}']
