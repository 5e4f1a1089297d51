"""Server-sent events: however the bytes are cut, the same events come out; and how a stream's end is told."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import httpx
import pytest

from pytest_thermal.transport import Fault, StreamExchange, sse, stream_exchange
from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES
from pytest_thermal.transport.sse import EventDecoder
from tests.support.hush import Hush
from tests.support.patience import PATIENCE_SECONDS
from tests.transport.wire import Peer, Script, Wire, always, answer

MakeWire = Callable[..., Wire]
MakeClient = Callable[..., httpx.Client]


def decoded(chunks: Iterable[bytes]) -> list[tuple[str, str]]:
    decoder = EventDecoder()
    found = [event for chunk in chunks for event in decoder.feed(chunk)]
    return found + list(decoder.end())


STREAMS: dict[str, tuple[bytes, list[tuple[str, str]]]] = {
    "LF": (b"data: a\n\ndata: b\n\n", [("message", "a"), ("message", "b")]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [("message", "a"), ("message", "b")]),
    "CR": (b"data: a\r\rdata: b\r\r", [("message", "a"), ("message", "b")]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\r\n\rdata: c\r\r", [("message", c) for c in "abc"]),
    "several lines": (b"data: a\ndata: b\ndata:\ndata:  c\n\n", [("message", "a\nb\n\n c")]),
    "no blank after the colon": (b"data:a\n\n", [("message", "a")]),
    "a field without a colon": (b"data\n\n", [("message", "")]),
    "comments": (b": hello\n\n:\ndata: a\n: in the middle\n\n", [("message", "a")]),
    "other fields": (
        b"id: 7\nretry: 10\nfoo: bar\nevent: error\ndata: a\n\ndata: b\n\n",
        [("error", "a"), ("message", "b")],
    ),
    "an event without data": (b"event: ping\n\ndata: a\n\n", [("message", "a")]),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [("message", "a")]),
    "letters of several bytes": ("data: Kühlung 冷却 🌡\n\n".encode(), [("message", "Kühlung 冷却 🌡")]),
    "no blank line at the end": (b"data: a\n\ndata: b\n", [("message", "a"), ("message", "b")]),
    "no line end at the end": (b"data: a\n\ndata: b", [("message", "a"), ("message", "b")]),
    "a CR at the end": (b"data: a\r\n\r\ndata: b\r", [("message", "a"), ("message", "b")]),
    "a colon in the data": (b'data: {"a": 1}\n\n', [("message", '{"a": 1}')]),
    "nothing": (b"", []),
    "only blank lines": (b"\n\r\n\r\n\n", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_however_it_is_cut_in_two_the_events_are_the_same(name: str) -> None:
    stream, expected = STREAMS[name]
    for at in range(len(stream) + 1):
        assert decoded([stream[:at], stream[at:]]) == expected, at


@pytest.mark.parametrize("name", STREAMS)
def test_however_it_is_cut_in_three_the_events_are_the_same(name: str) -> None:
    stream, expected = STREAMS[name]
    for first, second in itertools.combinations(range(len(stream) + 1), 2):
        assert decoded([stream[:first], stream[first:second], b"", stream[second:]]) == expected, (first, second)


@pytest.mark.parametrize("name", STREAMS)
def test_byte_by_byte_the_events_are_the_same(name: str) -> None:
    stream, expected = STREAMS[name]
    assert decoded(bytes([byte]) for byte in stream) == expected


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_an_event_is_out_with_its_last_byte_and_not_later(end: bytes) -> None:
    decoder = EventDecoder()
    assert list(decoder.feed(b"data: a" + end[:-1])) in ([], [("message", "a")])
    early = end == b"\r\n\r\n"  # the CR before the last LF ends the blank line already
    assert bool(list(decoder.feed(end[-1:]))) is not early


def test_bytes_that_are_no_text_do_not_end_the_stream() -> None:
    assert decoded([b"data: \xff\xfe\n\ndata: b\n\n"]) == [("message", "\ufffd\ufffd"), ("message", "b")]


def test_a_line_of_two_megabytes_in_small_pieces_is_read() -> None:
    piece = b"x" * 16
    found = decoded(itertools.chain([b"data: "], itertools.repeat(piece, 125_000), [b"\n\n"]))
    assert [(kind, len(data)) for kind, data in found] == [("message", 2_000_000)]


# --- over the wire -------------------------------------------------------------------------------------------


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(text: str) -> bytes:
    content = text.encode()
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


def token(text: str) -> bytes:
    return chunk(f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n")


DONE = chunk("data: [DONE]\n\n")
END = b"0\r\n\r\n"


def streamed(
    client: httpx.Client, *, stall: float = PATIENCE_SECONDS, total: float = 2 * PATIENCE_SECONDS
) -> StreamExchange:
    return stream_exchange(
        client, "/chat/completions", json_body={"stream": True}, stall_seconds=stall, total_seconds=total
    )


def saying(*parts: bytes, then: Callable[[Peer], object] | None = None) -> Script:
    def script(peer: Peer) -> None:
        while peer.request() is not None:
            for part in parts:
                peer.send(part)
            if then is not None:
                then(peer)

    return script


def test_events_come_with_their_times(wire: MakeWire, connect: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    read = threading.Event()
    times: dict[str, float] = {}

    class Noting(EventDecoder):
        def feed(self, chunk: bytes) -> Iterator[tuple[str, str]]:
            read.set()
            return super().feed(chunk)

    def script(peer: Peer) -> None:
        peer.request()
        times["asked"] = time.perf_counter()
        peer.send(HEAD + token("a"))
        assert read.wait(PATIENCE_SECONDS)
        peer.hold(0.1)
        times["second"] = time.perf_counter()
        peer.send(token("b") + DONE + END)

    monkeypatch.setattr(sse, "EventDecoder", Noting)

    found = streamed(connect(wire(script)))
    assert found.exchange.ok
    assert found.is_event_stream
    assert [event.is_done for event in found.events] == [False, False, True]
    first, second, _ = found.events
    assert first.json["choices"][0]["delta"]["content"] == "a"
    assert first.at_seconds < second.at_seconds
    assert second.at_seconds >= times["second"] - times["asked"] >= 0.1
    assert found.exchange.latency_seconds >= second.at_seconds


def test_after_done_an_open_connection_is_not_waited_for(wire: MakeWire, connect: MakeClient) -> None:
    held: list[bool] = []
    server = wire(saying(HEAD + token("a") + DONE, then=lambda peer: held.append(peer.hold())))
    found = streamed(connect(server), stall=10_000, total=20_000)
    # Waited for, it would have ended when the server gave up: cut off.
    assert found.exchange.fault is None
    assert found.events[-1].is_done
    assert held == []


def test_what_comes_right_after_done_is_still_read(wire: MakeWire, connect: MakeClient) -> None:
    usage = chunk('data: {"choices": [], "usage": {"prompt_tokens": 1}}\n\n')
    found = streamed(connect(wire(saying(HEAD + token("a") + DONE + usage + END))))
    assert found.events[-1].json["usage"] == {"prompt_tokens": 1}


def test_after_a_whole_stream_the_connection_serves_the_next(wire: MakeWire, connect: MakeClient) -> None:
    connections = []

    def script(peer: Peer) -> None:
        connections.append(peer)
        saying(HEAD + token("a") + DONE + END)(peer)

    client = connect(wire(script))
    for _ in range(3):
        assert streamed(client).exchange.fault is None
    assert len(connections) == 1


def test_a_kept_connection_that_closes_just_then_is_no_fault(wire: MakeWire, connect: MakeClient) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD + token("a") + DONE + END)
        peer.request()

    client = connect(wire(script))
    for _ in range(3):
        assert streamed(client).exchange.fault is None


def test_a_stall_is_silence_with_what_came_before(wire: MakeWire, connect: MakeClient, hush: Hush) -> None:
    def falls_silent(peer: Peer) -> None:
        hush.tell()
        peer.hold()

    found = streamed(connect(wire(saying(HEAD + token("a"), then=falls_silent))), stall=0.3)
    assert found.exchange.fault is Fault.SILENCE
    assert found.exchange.fault_text == "no byte for 0.3 s"
    assert found.exchange.status == 200
    assert len(found.events) == 1


def test_silence_before_the_head_has_no_status(wire: MakeWire, connect: MakeClient) -> None:
    found = streamed(connect(wire(saying(then=Peer.hold))), stall=0.3)
    assert (found.exchange.fault, found.exchange.status) == (Fault.SILENCE, None)


def test_comments_for_ever_are_given_up_at_the_deadline(wire: MakeWire, connect: MakeClient) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD)
        while not peer.hold(0.05):
            peer.send(chunk(": keep-alive\n\n"))

    found = streamed(connect(wire(script)), total=0.5)
    assert found.exchange.fault is Fault.SLOW
    assert "bytes kept coming" in found.exchange.fault_text
    assert found.events == ()


def test_a_connection_that_closes_in_the_middle_is_cut(wire: MakeWire, connect: MakeClient) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD + token("a"))

    found = streamed(connect(wire(script)))
    assert found.exchange.fault is Fault.CUT
    assert len(found.events) == 1


def test_a_reset_in_the_middle_is_cut(wire: MakeWire, connect: MakeClient) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD + token("a"))
        peer.reset()

    assert streamed(connect(wire(script))).exchange.fault is Fault.CUT


def test_an_endless_stream_is_not_kept(wire: MakeWire, connect: MakeClient) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD)
        while not peer.hold(0):
            peer.send(token("x" * 50_000))

    found = streamed(connect(wire(script)))
    assert found.exchange.fault is Fault.OVERSIZE
    assert BODY_LIMIT_BYTES < len(found.exchange.body) < 2 * BODY_LIMIT_BYTES


def test_an_error_in_place_of_a_stream_is_an_exchange_without_events(wire: MakeWire, connect: MakeClient) -> None:
    refusal = answer({"error": {"message": "no"}}, status="400 Bad Request")
    found = streamed(connect(wire(always(refusal))))
    assert (found.exchange.status, found.events, found.is_event_stream) == (400, (), False)
    assert found.exchange.json == {"error": {"message": "no"}}


def test_events_without_the_right_label_are_events(wire: MakeWire, connect: MakeClient) -> None:
    found = streamed(connect(wire(always(answer(b"data: {}\n\ndata: [DONE]\n\n", kind="text/plain")))))
    assert found.is_event_stream
    assert len(found.events) == 2
    assert found.events[0].json == {}
    assert found.events[1].json is None


def test_nothing_listens(connect: MakeClient, unused_port: int) -> None:
    found = streamed(connect(f"http://127.0.0.1:{unused_port}/v1"))
    assert (found.exchange.fault, found.events) == (Fault.REFUSED, ())
