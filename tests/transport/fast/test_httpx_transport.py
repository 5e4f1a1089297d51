"""httpx over connections of our own: whatever the peer does, what comes of it is what stock httpx makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from pytest_thermal.transport.exchange import read_fault
from pytest_thermal.transport.fast.httpx_transport import MOST_UNREAD_BYTES, FastTransport
from tests.support.patience import PATIENCE_SECONDS, until
from tests.transport.fast.helpers import KEY, run
from tests.transport.wire import Peer, Script, Wire, always, answer, once, proxy

MakeWire = Callable[..., Wire]

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"


def hangs(peer: Peer) -> None:
    peer.request()
    peer.hold()


def stops(peer: Peer) -> None:
    peer.request()
    peer.send(CHUNKED[:-8])
    peer.hold()


def resets(peer: Peer) -> None:
    peer.request()
    peer.reset()


SCRIPTS: dict[str, Script] = {
    "good": always(answer({"a": 1}, x_more="b")),
    "chunked": always(CHUNKED),
    "to the end": once(b"HTTP/1.1 200 OK\r\n\r\nabc"),
    "empty": always(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "no reason": always(b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"),
    "refusal": always(answer({"error": "no"}, status="429 Too Many Requests", retry_after="3")),
    "redirect": always(answer(b"", status="302 Found", location="/elsewhere")),
    "early hints": always(b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" + answer(b"abc")),
    "closed": once(b""),
    "cut": once(answer(b"abcdef")[:-2]),
    "cut chunked": once(CHUNKED[:-9]),
    "not http": once(b"SSH-2.0-x\r\n\r\n"),
    "hangs": hangs,
    "stops": stops,
    "resets": resets,
}


async def outcome(
    transport: httpx.AsyncBaseTransport, url: str, method: str = "POST", *, read_seconds: float = PATIENCE_SECONDS
) -> object:
    timeout = httpx.Timeout(PATIENCE_SECONDS, read=read_seconds)
    async with httpx.AsyncClient(transport=transport, timeout=timeout, headers={"Authorization": KEY}) as client:
        try:
            found = await client.request(method, url, json={"a": "ü"} if method == "POST" else None)
        except httpx.HTTPError as error:
            return type(error), read_fault(error, began=False)[0], str(error.request.url)
        return found.status_code, found.reason_phrase, found.content, sorted(found.headers.items()), found.http_version


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_is_what_stock_httpx_makes_of_it(name: str, method: str, wire: MakeWire) -> None:
    server = wire(SCRIPTS[name])
    patience = 0.3 if name in {"hangs", "stops"} else PATIENCE_SECONDS
    ours = run(outcome(FastTransport({}), f"{server.url}/chat?a=1", method, read_seconds=patience))
    theirs = run(outcome(httpx.AsyncHTTPTransport(), f"{server.url}/chat?a=1", method, read_seconds=patience))
    assert ours == theirs
    until(lambda: len(server.asked) == 2)  # whoever gave up may have done so before it was heard
    one, other = server.asked
    assert (one.method, one.target, one.body) == (other.method, other.target, other.body)
    assert one.headers == other.headers


def test_what_cannot_be_reached(unused_port: int) -> None:
    for url in (f"http://127.0.0.1:{unused_port}/v1", "http://no-such-host.invalid/v1"):
        assert run(outcome(FastTransport({}), url)) == run(outcome(httpx.AsyncHTTPTransport(), url))


def test_connections_are_kept_unless_they_are_not_to_be(wire: MakeWire) -> None:
    async def connections(*, keep_alive: bool) -> int:
        seen: list[int] = []

        def script(peer: Peer) -> None:
            seen.append(1)
            always(answer(b"abc"))(peer)

        server = wire(script)
        transport = FastTransport({}, keep_alive=keep_alive)
        async with httpx.AsyncClient(transport=transport, timeout=PATIENCE_SECONDS) as client:
            for _ in range(3):
                assert (await client.get(server.url)).content == b"abc"
            async with client.stream("GET", server.url) as left:  # not read
                assert left.status_code == 200
            assert (await client.get(server.url)).content == b"abc"
        return len(seen)

    assert run(connections(keep_alive=False)) == 5
    assert run(connections(keep_alive=True)) <= 2


def test_a_client_outlives_an_event_loop(wire: MakeWire) -> None:
    server, transport = wire(always(answer(b"abc"))), FastTransport({}, keep_alive=False)
    client = httpx.AsyncClient(transport=transport, timeout=PATIENCE_SECONDS)
    for _ in range(2):
        assert run(client.get(server.url)).content == b"abc"


def test_a_stream_comes_as_it_comes(wire: MakeWire) -> None:
    async def stream() -> list[bytes]:
        read = asyncio.Event()
        loop = asyncio.get_running_loop()

        def script(peer: Peer) -> None:
            peer.request()
            peer.send(CHUNKED[:-14])
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(read.wait(), PATIENCE_SECONDS), loop).result()
            peer.send(CHUNKED[-14:])

        server = wire(script)
        found = []
        async with (
            httpx.AsyncClient(transport=FastTransport({}), timeout=PATIENCE_SECONDS) as client,
            client.stream("GET", server.url) as answered,
        ):
            async for chunk in answered.aiter_raw():
                found.append(chunk)
                read.set()  # the rest is sent only now
        return found

    assert run(stream()) == [b"abc", b"defg"]


def test_one_who_reads_slowly_lets_the_peer_wait(wire: MakeWire) -> None:
    content = b"x" * (8 * MOST_UNREAD_BYTES)

    async def slowly() -> int:
        server = wire(always(answer(content)))
        async with (
            httpx.AsyncClient(transport=FastTransport({}), timeout=PATIENCE_SECONDS) as client,
            client.stream("GET", server.url) as answered,
        ):
            await asyncio.sleep(0.3)
            assert answered.stream._stream._answer._unread < 3 * MOST_UNREAD_BYTES  # type: ignore[union-attr]
            return len(await answered.aread())

    assert run(slowly()) == len(content)


def test_cancelled_it_leaves_no_socket(wire: MakeWire) -> None:
    gone = asyncio.Event()

    async def cancelled() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def script(peer: Peer) -> None:
            peer.request()
            loop.call_soon_threadsafe(begun.set)
            assert peer.sock.recv(1) == b""
            loop.call_soon_threadsafe(gone.set)

        server = wire(script)
        async with httpx.AsyncClient(transport=FastTransport({}), timeout=PATIENCE_SECONDS) as client:
            asking = asyncio.create_task(client.get(server.url))
            await begun.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.wait_for(gone.wait(), PATIENCE_SECONDS)

    run(cancelled())


def test_a_kept_connection_that_was_closed_is_opened_anew(wire: MakeWire) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(answer(b"abc"))
        peer.request()

    async def twice() -> list[bytes]:
        server = wire(script)
        async with httpx.AsyncClient(transport=FastTransport({}), timeout=PATIENCE_SECONDS) as client:
            return [(await client.get(server.url)).content for _ in range(3)]

    assert run(twice()) == [b"abc"] * 3


def test_a_body_in_parts_and_one_that_cannot_be_sent(wire: MakeWire) -> None:
    server = wire(always(answer(b"abc")))

    async def parts() -> AsyncIterator[bytes]:
        for part in (b"one ", b"two"):
            yield part

    async def ask() -> None:
        async with httpx.AsyncClient(transport=FastTransport({}), timeout=PATIENCE_SECONDS) as client:
            await client.post(server.url, content=parts())
            with pytest.raises(httpx.LocalProtocolError) as caught:
                await client.get(server.url, headers={"Authorization": f"Bearer {KEY}\r\nX: 1"})
            assert KEY not in str(caught.value)

    run(ask())
    (asked,) = server.asked
    assert asked.body == b"one two"
    assert "transfer-encoding" not in asked.headers


def test_proxies_and_ways_it_does_not_go(wire: MakeWire) -> None:
    server, between = wire(always(answer(b"abc"))), wire(proxy())

    async def ask(variable: str) -> bytes:
        environ = {"http_proxy": variable, "no_proxy": "nowhere.example"}
        async with httpx.AsyncClient(transport=FastTransport(environ), timeout=PATIENCE_SECONDS) as client:
            return (await client.get(server.url)).content

    assert run(ask(f"http://{between.netloc}")) == b"abc"
    assert [asked.target for asked in between.asked] == [server.url]
    with pytest.raises(httpx.UnsupportedProtocol, match="SOCKS"):
        run(ask("socks5://127.0.0.1:1"))
