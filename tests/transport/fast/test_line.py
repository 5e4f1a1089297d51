"""Answers of every kind, whole and broken, however their bytes are cut."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

import pytest

from pytest_thermal.transport.exchange import Fault
from pytest_thermal.transport.fast import line
from pytest_thermal.transport.fast.errors import LineError
from pytest_thermal.transport.fast.line import HEAD_LIMIT_BYTES, Head, Line
from tests.support.clock import Leaping
from tests.support.patience import PATIENCE_SECONDS
from tests.transport.fast.helpers import Taken, answers, asked, connection_to, run
from tests.transport.wire import Peer, Script, Wire, always, answer, once

MakeWire = Callable[..., Wire]

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=1\r\ndefg\r\n0\r\ntrailer: 1\r\n\r\n"
BY_LENGTH = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nabcdefg"
TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\nabcdefg"
OLD = b"HTTP/1.0 200 OK\r\n\r\nabcdefg"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" + BY_LENGTH
BARE_LF = b"HTTP/1.1 200 OK\ncontent-length: 7\n\nabcdefg"
TWICE_FRAMED = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\ntransfer-encoding: chunked\r\n\r\n7\r\nabcdefg\r\n0\r\n\r\n"

KEPT = {"chunked": CHUNKED, "by length": BY_LENGTH, "after interim ones": INTERIM, "lines without CR": BARE_LF}
CLOSED = {"to the connection's end": TO_THE_END, "HTTP/1.0": OLD}


class Fed:
    """A line whose transport is a list."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False
        self.line = Line(asyncio.get_running_loop())
        self.line.connection_made(self)  # type: ignore[arg-type]  # as much of a transport as it uses

    async def ask(self, taken: Taken, read_seconds: float = PATIENCE_SECONDS) -> float:
        return await self.line.exchange(b"GET / HTTP/1.1\r\n\r\n", taken, read_seconds=read_seconds)

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.line.connection_lost, None)


async def fed(*parts: bytes, ends: bool = False) -> tuple[Taken, Fed]:
    """What comes of an answer in these parts."""
    peer, taken = Fed(), Taken()
    asking = asyncio.create_task(peer.ask(taken))
    await asyncio.sleep(0)
    for part in parts:
        if not peer.closed and part:
            peer.line.data_received(part)
    if ends and not peer.closed:
        peer.line.connection_lost(None)
    with contextlib.suppress(Exception):
        taken.ended = await asking
    if not peer.closed and not ends:
        peer.abort()
        await peer.line.closed
    return taken, peer


@pytest.mark.parametrize("name", KEPT)
def test_however_an_answer_is_cut_it_is_the_same_and_the_connection_is_kept(name: str) -> None:
    async def cut_everywhere() -> None:
        content = KEPT[name]
        for at in range(len(content)):
            for parts in ((content[:at], content[at:]), (content[:at], content[at : at + 1], content[at + 1 :])):
                peer, taken = Fed(), Taken()
                asking = asyncio.create_task(peer.ask(taken))
                await asyncio.sleep(0)
                for part in parts:
                    peer.line.data_received(part) if part else None
                await asking
                assert (taken.status, taken.reason, taken.content) == (200, "OK", b"abcdefg"), at
                assert peer.line.usable
                peer.abort()
                await peer.line.closed

    run(cut_everywhere())


@pytest.mark.parametrize("name", [*KEPT, *CLOSED])
def test_an_answer_byte_by_byte(name: str) -> None:
    content = {**KEPT, **CLOSED}[name]
    taken, _ = run(fed(*(bytes([byte]) for byte in content), ends=True))
    assert (taken.status, taken.content) == (200, b"abcdefg")
    assert taken.ended is not None
    assert taken.at == sorted(taken.at)


@pytest.mark.parametrize("name", KEPT)
def test_torn_anywhere_it_is_no_whole_answer(name: str, wire: MakeWire) -> None:
    async def torn_everywhere() -> None:
        content = KEPT[name]
        for at in range(len(content)):
            taken, _ = await fed(content[:at], ends=True)
            assert taken.ended is None, at

    run(torn_everywhere())


@pytest.mark.parametrize(
    "content, expected",
    [
        (CHUNKED, (200, b"abcdefg", None)),
        (BY_LENGTH, (200, b"abcdefg", None)),
        (TO_THE_END, (200, b"abcdefg", None)),
        (OLD, (200, b"abcdefg", None)),
        (INTERIM, (200, b"abcdefg", None)),
        (BARE_LF, (200, b"abcdefg", None)),
        (TWICE_FRAMED, (200, b"abcdefg", None)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", None)),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", (304, b"", None)),
        (b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", (200, b"", None)),
        (b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", (302, b"", None)),
        (b"", (None, b"", Fault.CLOSED)),
        (b"HTTP/1.1 200 O", (None, b"", Fault.CLOSED)),
        (BY_LENGTH[:-1], (200, b"abcdef", Fault.CUT)),
        (CHUNKED[:-2], (200, b"abcdefg", Fault.CUT)),
        (CHUNKED.replace(b"4;x", b"zz"), (200, b"abc", Fault.CUT)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", (None, b"", Fault.NOT_HTTP)),
        (b"\x15\x03\x01\x00\x02\x02\x16", (None, b"", Fault.NOT_HTTP)),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", (None, b"", Fault.NOT_HTTP)),
        (b"HTTP/1.1 999999 OK\r\n\r\n", (None, b"", Fault.NOT_HTTP)),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", (None, b"", Fault.NOT_HTTP)),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nab", (None, b"", Fault.NOT_HTTP)),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * HEAD_LIMIT_BYTES, (None, b"", Fault.NOT_HTTP)),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, (None, b"", Fault.NOT_HTTP)),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", (101, b"", None)),
    ],
)  # fmt: skip
def test_what_a_server_says_once(
    content: bytes, expected: tuple[int | None, bytes, Fault | None], wire: MakeWire
) -> None:
    (taken,) = answers(connection_to(wire(once(content)).url))
    assert taken.whole == expected
    assert (taken.ended is None) is (taken.fault is not None)
    assert bool(taken.text) is (taken.fault is not None)


def test_the_head_of_an_answer_has_no_body(wire: MakeWire) -> None:
    server = wire(always(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"))
    assert [taken.whole for taken in answers(connection_to(server.url), 2, method="HEAD")] == [(200, b"", None)] * 2


@pytest.mark.parametrize("content", [CHUNKED, BY_LENGTH, INTERIM])
def test_a_kept_connection_takes_the_next_request(content: bytes, wire: MakeWire) -> None:
    connections = 0

    def script(peer: Peer) -> None:
        nonlocal connections
        connections += 1
        always(content)(peer)

    found = answers(connection_to(wire(script).url), 5)
    assert [taken.whole for taken in found] == [(200, b"abcdefg", None)] * 5
    assert connections == 1


@pytest.mark.parametrize(
    "content",
    [BY_LENGTH + b"garbage", BY_LENGTH + BY_LENGTH, CHUNKED + b"\0", TWICE_FRAMED,
     BY_LENGTH.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")],
)  # fmt: skip
def test_a_connection_that_holds_more_than_was_asked_for_is_not_used_again(content: bytes, wire: MakeWire) -> None:
    connections = 0

    def script(peer: Peer) -> None:
        nonlocal connections
        connections += 1
        always(content)(peer)

    found = answers(connection_to(wire(script).url), 3)
    assert [taken.whole for taken in found] == [(200, b"abcdefg", None)] * 3
    assert connections == 3


def test_what_comes_unasked_is_no_answer() -> None:
    async def unasked() -> None:
        taken, peer = Taken(), Fed()
        asking = asyncio.create_task(peer.ask(taken))
        await asyncio.sleep(0)
        peer.line.data_received(BY_LENGTH)
        await asking
        usable = [peer.line.usable]
        peer.line.data_received(BY_LENGTH)  # an answer to a request that is not made yet
        usable.append(peer.line.usable)
        assert usable == [True, False]
        assert peer.closed
        await peer.line.closed

    run(unasked())


def closing_after(answers_each: int) -> tuple[Script, list[int]]:
    """A server that closes a kept connection when the next request comes, and how many connections it had."""
    seen: list[int] = []

    def script(peer: Peer) -> None:
        seen.append(1)
        for _ in range(answers_each):
            if peer.request() is None:
                return
            peer.send(BY_LENGTH)
        peer.request()

    return script, seen


def test_a_kept_connection_that_was_closed_is_opened_anew(wire: MakeWire) -> None:
    script, connections = closing_after(1)
    found = answers(connection_to(wire(script).url), 3)
    assert [taken.whole for taken in found] == [(200, b"abcdefg", None)] * 3
    assert len(connections) == 3


def test_a_new_connection_that_is_closed_is_not(wire: MakeWire) -> None:
    script, connections = closing_after(0)
    found = answers(connection_to(wire(script).url), 2)
    assert [taken.whole for taken in found] == [(None, b"", Fault.CLOSED)] * 2
    assert found[0].text == "Server disconnected without sending a response."
    assert len(connections) == 2


def test_one_that_began_to_answer_is_not_asked_again(wire: MakeWire) -> None:
    said = 0

    def script(peer: Peer) -> None:
        nonlocal said
        while peer.request() is not None:
            said += 1
            peer.send(BY_LENGTH if said == 1 else b"HTTP")
            if said == 2:
                return

    found = answers(connection_to(wire(script).url), 2)
    assert [taken.fault for taken in found] == [None, Fault.CLOSED]
    assert said == 2


def test_a_reset_is_told(wire: MakeWire) -> None:
    def before(peer: Peer) -> None:
        peer.request()
        peer.reset()

    def within(peer: Peer) -> None:
        peer.request()
        peer.send(BY_LENGTH[:-2])
        peer.reset()

    (taken,) = answers(connection_to(wire(before).url))
    assert (taken.fault, taken.text) == (Fault.RESET, "Connection reset by peer")
    (taken,) = answers(connection_to(wire(within).url))
    assert (taken.fault, taken.status) == (Fault.CUT, 200)


def test_deadlines(wire: MakeWire) -> None:
    def silent(peer: Peer) -> None:
        peer.request()
        peer.hold()

    def drips(peer: Peer) -> None:
        peer.request()
        peer.drip(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n" + b"x" * 999, every_seconds=0.01)

    (taken,) = answers(connection_to(wire(silent).url), read_seconds=0.1)
    assert (taken.fault, taken.text) == (Fault.SILENCE, "no answer in time")
    (taken,) = answers(connection_to(wire(drips).url), total_seconds=0.6)
    assert taken.fault is Fault.SLOW
    # A deadline that a kept connection had before is not that of the next request.
    pauses = iter((0.1, 30.0, 0.1))
    slow = wire(lambda peer: [peer.send(BY_LENGTH) for _ in iter(peer.request, None) if not peer.hold(next(pauses))])

    async def one_after_the_other() -> list[Fault | None]:
        connection = connection_to(slow.url)
        patience = (PATIENCE_SECONDS, 0.02, PATIENCE_SECONDS)
        found = [(await asked(connection, read_seconds=seconds)).fault for seconds in patience]
        await connection.close()
        return found

    assert run(one_after_the_other()) == [None, Fault.SILENCE, None]


def test_an_answer_that_stops_half_way() -> None:
    async def stops() -> Taken:
        peer, taken = Fed(), Taken()
        asking = asyncio.create_task(peer.ask(taken, read_seconds=0.1))
        await asyncio.sleep(0)
        peer.line.data_received(BY_LENGTH[:-2])
        with pytest.raises(LineError) as caught:
            await asking
        taken.fault, taken.text = caught.value.fault, str(caught.value)
        await peer.line.closed
        return taken

    taken = run(stops())
    assert (taken.status, taken.content, taken.fault) == (200, b"abcde", Fault.CUT)
    assert taken.text == "the answer stopped half-way"


def test_what_came_while_this_process_stood_still_is_read_before_it_is_called_late(
    wire: MakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a loop has its timers before its sockets."""
    clock = Leaping()
    monkeypatch.setattr(line, "time", clock)
    answered = threading.Event()

    def script(peer: Peer) -> None:
        while peer.request() is not None:
            peer.send(BY_LENGTH)
            answered.set()

    async def stands_still() -> Taken:
        connection = connection_to(wire(script).url)
        assert (await asked(connection)).fault is None
        answered.clear()
        asking = asyncio.create_task(asked(connection))
        for _ in range(3):
            await asyncio.sleep(0)  # it is sent
        assert answered.wait(PATIENCE_SECONDS)  # and this loop turns no further meanwhile
        clock.leap(10_000)
        assert connection.line is not None
        connection.line._tick()
        taken = await asking
        await connection.close()
        return taken

    assert run(stands_still()).whole == (200, b"abcdefg", None)


def test_nothing_listens(unused_port: int) -> None:
    (taken,) = answers(connection_to(f"http://127.0.0.1:{unused_port}/v1"))
    assert (taken.fault, taken.text) == (Fault.REFUSED, "Connection refused")


def test_a_name_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    (taken,) = answers(connection_to("http://no-such-host.invalid/v1"))
    assert taken.fault is Fault.RESOLVE
    assert taken.text


def test_cancelled_it_leaves_no_socket(wire: MakeWire) -> None:
    gone = asyncio.Event()

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()

        def script(peer: Peer) -> None:
            peer.request()
            loop.call_soon_threadsafe(begun.set)
            assert peer.sock.recv(1) == b""  # the end of the connection, while the test still runs
            loop.call_soon_threadsafe(gone.set)

        begun = asyncio.Event()
        connection = connection_to(wire(script).url)
        asking = asyncio.create_task(asked(connection))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(gone.wait(), PATIENCE_SECONDS)
        await connection.close()

    run(cancelled())


def test_what_the_receiver_raises_reaches_whoever_asked(wire: MakeWire) -> None:
    class Picky(Taken):
        def head(self, head: Head, at_seconds: float) -> None:
            raise ZeroDivisionError(head.status, at_seconds)

    async def ask() -> None:
        connection = connection_to(wire(always(BY_LENGTH)).url)
        with pytest.raises(ZeroDivisionError):
            await connection.exchange(b"GET / HTTP/1.1\r\n\r\n", Picky(), read_seconds=PATIENCE_SECONDS)
        assert (await asked(connection)).whole == (200, b"abcdefg", None)
        await connection.close()

    run(ask())


def test_a_large_answer_and_a_large_request(wire: MakeWire) -> None:
    content = bytes(range(256)) * 20_000
    server = wire(always(answer(content)))

    async def ask() -> Taken:
        taken, connection = Taken(), connection_to(server.url)
        head = b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(content)
        await connection.exchange(head + content, taken, read_seconds=PATIENCE_SECONDS)
        await connection.close()
        return taken

    assert run(ask()).content == content
    assert server.asked[0].body == content
