"""One request against everything that a network or a gateway can do to it: an answer or a named fault, no exception."""

from __future__ import annotations

import errno
import gzip
import json
import socket
import ssl
import threading
import zlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pytest_thermal.transport import Exchange, Fault, deadline, exchange
from pytest_thermal.transport.deadline import Patience
from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES, read_fault
from tests.support.clock import Leaping, Standing
from tests.support.hush import Hush
from tests.support.patience import PATIENCE_SECONDS
from tests.transport.wire import Peer, Script, Wire, always, answer, once

MakeWire = Callable[..., Wire]
MakeClient = Callable[..., httpx.Client]


@pytest.fixture
def ask(wire: MakeWire, connect: MakeClient) -> Callable[..., Exchange]:
    """A GET of the model list from a server of that script; its read timeout can be set."""

    def asked(
        script: Script, *, read: float = PATIENCE_SECONDS, total: float | None = None, **settings: Any
    ) -> Exchange:
        server = wire(script, **settings)
        return exchange(connect(server, read_seconds=read), "GET", server.url + "/models", total_seconds=total)

    return asked


Ask = Callable[..., Exchange]


def raw(content: bytes) -> Script:
    """Says these bytes, whatever they are, and closes."""
    return once(content)


# --- whole answers in odd dress ------------------------------------------------------------------------------


LISTING = {"object": "list", "data": [{"id": "a"}]}
BODY = json.dumps(LISTING).encode()
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"

WHOLE: dict[str, bytes] = {
    "plain": answer(LISTING),
    "labelled as text": answer(LISTING, kind="text/plain"),
    "labelled as a page": answer(LISTING, kind="text/html"),
    "without a label": answer(LISTING, kind=""),
    "with a label of another kind": answer(LISTING, kind="application/octet-stream; charset=binary"),
    "byte order mark": answer(b"\xef\xbb\xbf" + BODY),
    "blank lines before it": answer(b"\n\n  \n" + BODY),
    "UTF-16": answer(json.dumps(LISTING).encode("utf-16")),
    "gzip": answer(gzip.compress(BODY), content_encoding="gzip"),
    "deflate": answer(zlib.compress(BODY), content_encoding="deflate"),
    "HTTP/1.0, ended by closing": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "HTTP/1.1, ended by closing": b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + BODY,
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: " + str(len(BODY)).encode() + b"\n\n" + BODY,
    "no reason": b"HTTP/1.1 200\r\ncontent-length: " + str(len(BODY)).encode() + b"\r\n\r\n" + BODY,
    "100 before it": b"HTTP/1.1 100 Continue\r\n\r\n" + answer(LISTING),
    "103 before it": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + answer(LISTING),
    "one byte a chunk": CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n",
    "chunk extensions": CHUNKED + b"%x;why=not\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\nx-usage: 3\r\nx-more: 4\r\n\r\n",
    "latin-1 in a header": answer(LISTING, server="Prüfstand"),
    "a header without a value": answer(LISTING, x_empty=""),
    "a header twice": b"HTTP/1.1 200 OK\r\nvia: a\r\nvia: b\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY,
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_answer_is_read_however_it_is_dressed(name: str, ask: Ask) -> None:
    found = ask(raw(WHOLE[name]))
    assert found.fault is None, found.fault_text
    assert found.ok
    assert found.status == 200
    assert found.json == LISTING
    assert not found.is_html
    assert found.line == "GET /v1/models"


def test_a_torn_letter_does_not_spoil_the_rest(ask: Ask) -> None:
    found = ask(raw(answer(b'{"choices": [{"message": {"content": "\xe5\x86"}}], "id": "a"}')))
    assert found.json["id"] == "a"
    assert found.json["choices"][0]["message"]["content"] == "\ufffd"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"not json", b"[" * 200_000, b"\xff\xfe\xfd", b'{"a": ' * 100_000, b"9" * 10_000]
)
def test_what_is_no_json_is_none(body: bytes, ask: Ask) -> None:
    assert ask(raw(answer(body))).json is None


@pytest.mark.parametrize(
    "body, kind, is_page",
    [
        (b"<!DOCTYPE html><html></html>", "text/html", True),
        (b"<html><body>login", "application/json", True),
        (b"\xef\xbb\xbf\r\n <HTML>", "", True),
        (b" " * 2000 + b"<html>", "", True),
        (b"<!-- served by edge7 --><p>Sign in</p>", "text/html; charset=gbk", True),
        (b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>", "application/xhtml+xml", True),
        (b'{"error": "<nil>"}', "text/html", False),
        (b"OK", "text/html", False),
        (b"<Error><Code>AccessDenied</Code></Error>", "application/xml", False),
        (b"", "text/html", False),
    ],
)
def test_what_is_a_page_for_people(body: bytes, kind: str, is_page: bool, ask: Ask) -> None:
    assert ask(raw(answer(body, kind=kind))).is_html is is_page


def test_what_was_sent_and_when_is_kept(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(always(answer({}, status="401 Unauthorized")))
    sent = {"model": "模型", "max_tokens": 2}
    found = exchange(
        connect(server), "POST", server.url + "/chat/completions", json_body=sent, headers={"X-Request-Id": "7"}
    )
    assert json.loads(server.asked[0].body) == sent
    assert server.asked[0].headers["x-request-id"] == "7"
    assert (found.sent, found.status_line, found.ok) == (sent, "401 Unauthorized", False)
    assert found.started_unix_seconds > 1.5e9
    assert found.latency_seconds > 0


def test_an_ipv6_address_is_spoken_to(wire: MakeWire, connect: MakeClient) -> None:
    try:
        server = wire(always(answer(LISTING)), host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    assert server.url.startswith("http://[::1]:")
    found = exchange(connect(server), "GET", server.url + "/models")
    assert found.ok
    assert server.asked[0].headers["host"] == server.netloc


# --- faults on real sockets ----------------------------------------------------------------------------------


def test_refused(unused_port: int, connect: MakeClient) -> None:
    url = f"http://127.0.0.1:{unused_port}/v1"
    found = exchange(connect(url), "GET", url + "/models")
    assert (found.fault, found.status, found.ok) == (Fault.REFUSED, None, False)
    assert found.status_line == "Connection refused"


def test_a_name_that_nobody_knows(connect: MakeClient) -> None:
    url = "http://gateway.invalid/v1"
    assert exchange(connect(url), "GET", url + "/models").fault is Fault.RESOLVE


def test_a_host_name_that_cannot_be_one(connect: MakeClient) -> None:
    url = f"http://{'x' * 70}.example/v1"
    assert exchange(connect(url), "GET", url + "/models").fault in (Fault.UNSENDABLE, Fault.RESOLVE)


def test_a_connection_that_is_never_accepted(connect: MakeClient) -> None:
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        found = exchange(connect(url, connect_seconds=0.3), "GET", url + "/models")
    if found.fault is Fault.SILENCE:
        pytest.skip("this kernel accepts whatever the length of the queue")
    assert (found.fault, found.fault_text) == (Fault.CONNECT_TIMEOUT, "no connection in time")


def test_closed_without_a_word(ask: Ask) -> None:
    assert ask(raw(b"")).fault is Fault.CLOSED


def test_reset_without_a_word(ask: Ask) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.reset()

    found = ask(script)
    assert (found.fault, found.status) == (Fault.RESET, None)


def test_silence(ask: Ask) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.hold()

    found = ask(script, read=0.3)
    assert (found.fault, found.status, found.fault_text) == (Fault.SILENCE, None, "no answer in time")
    assert found.latency_seconds >= 0.3


def test_a_read_timeout_of_ones_own(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(lambda peer: peer.hold())
    found = exchange(connect(server, read_seconds=60), "GET", server.url + "/models", read_seconds=0.3)
    assert found.fault is Fault.SILENCE


@pytest.mark.parametrize(
    "said",
    [
        b"\x15\x03\x01\x00\x02\x02\x46",  # a TLS alert
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",  # HTTP/2 settings, as a gRPC port sends them
        b"-ERR unknown command 'GET'\r\n\r\n",
        b"HTTP/2.7 banana\r\n\r\n",
        b"<html>no head</html>\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nthis is no header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
)
def test_something_that_is_not_http(said: bytes, ask: Ask) -> None:
    found = ask(raw(said))
    assert (found.fault, found.status) == (Fault.NOT_HTTP, None)
    assert found.fault_text


CUT: dict[str, bytes] = {
    "fewer bytes than announced": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc",
    "chunks without an end": CHUNKED + b"3\r\nabc\r\n",
    "half a chunk": CHUNKED + b"30\r\nabc",
    "a chunk that is none": CHUNKED + b"zz\r\nabc\r\n",
    "gzip that is none": answer(BODY, content_encoding="gzip"),
}


@pytest.mark.parametrize("name", CUT)
def test_an_answer_that_breaks_off(name: str, ask: Ask) -> None:
    found = ask(raw(CUT[name]))
    assert (found.fault, found.status, found.ok) == (Fault.CUT, 200, False)


def test_an_answer_that_stops_half_way(ask: Ask, hush: Hush) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")
        hush.tell()
        peer.hold()

    found = ask(script)
    assert (found.fault, found.status, found.body) == (Fault.CUT, 200, b"abc")


def test_an_answer_that_is_reset_half_way(ask: Ask) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")
        peer.reset()  # what was sent before it is read before it

    assert ask(script).fault is Fault.CUT


def test_a_redirect_to_something_that_is_no_address(ask: Ask) -> None:
    found = ask(raw(answer(None, status="302 Found", location="http://[::1/login")))
    assert found.fault is Fault.OTHER
    assert "redirect" in found.fault_text


@pytest.mark.parametrize(
    "before",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n"],
)
def test_a_byte_now_and_then_does_not_hold_us_for_ever(before: bytes, ask: Ask) -> None:
    """In the head or in the body: no single read ever times out."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(before)
        peer.drip(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 9999, every_seconds=0.05)

    found = ask(script, total=0.6)
    assert found.fault is Fault.SLOW
    assert "bytes kept coming" in found.fault_text
    assert found.status_line == found.fault_text
    assert not found.ok


def test_by_default_the_whole_answer_may_take_twice_the_time_for_the_next_bytes(
    connect: MakeClient, wire: MakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Leaping()
    monkeypatch.setattr(deadline, "time", clock)

    def script(peer: Peer) -> None:
        peer.request()
        peer.drip(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 9999, every_seconds=2, clock=clock)

    server = wire(script)
    found = exchange(connect(server, read_seconds=40, connect_seconds=20), "GET", server.url + "/models")
    assert found.fault is Fault.SLOW
    # On a clock that only leaps: a byte each 2 s, and the deadline at 100 s.
    assert clock.ahead_seconds + found.latency_seconds >= 100


def test_what_came_while_this_process_stood_still_is_read_after_the_deadline(
    connect: MakeClient, wire: MakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after Ctrl-Z and `fg`: the peer answered in time, and only we were late."""
    clock = Leaping()
    monkeypatch.setattr(deadline, "time", clock)
    read, sent = threading.Event(), threading.Event()
    really = deadline._Stream.read

    def stands_still(stream: deadline._Stream, max_bytes: int, timeout: float | None = None) -> bytes:
        content = really(stream, max_bytes, timeout=timeout)
        read.set()
        assert sent.wait(PATIENCE_SECONDS)
        clock.leap(10_000)
        return content

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(CHUNKED + b"%x\r\n" % len(BODY) + BODY + b"\r\n")
        assert read.wait(PATIENCE_SECONDS)
        peer.send(b"0\r\n\r\n")
        sent.set()

    monkeypatch.setattr(deadline._Stream, "read", stands_still)
    found = exchange(connect(server := wire(script)), "GET", server.url + "/models")
    assert (found.fault, found.json) == (None, LISTING)


def test_silence_is_no_slow_answer_however_late_we_look(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Standing()
    monkeypatch.setattr(deadline, "time", clock)
    patience = Patience(10.0, total_seconds=25.0)
    assert (patience.next_seconds(), patience.ran_out) == (10.0, False)
    clock.now_seconds += 60  # nothing came, and we were asleep for longer than we should have waited
    assert not patience.ran_out
    assert (0 < patience.next_seconds() < 0.01, patience.ran_out) == (True, True)


def test_after_the_deadline_one_who_never_stops_is_not_listened_to_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Standing()
    monkeypatch.setattr(deadline, "time", clock)
    patience = Patience(10.0, total_seconds=0.0)
    looks = 0
    while patience.next_seconds() > 0:
        clock.now_seconds += 0.01
        looks += 1
    assert 1 < looks < 100


def test_blanks_while_the_request_waits_its_turn_are_no_fault(ask: Ask) -> None:
    """So do gateways that queue: the head, then an empty line now and then, then the JSON."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(CHUNKED)
        for _ in range(5):
            peer.send(b"1\r\n\n\r\n")
            peer.hold(0.1)
        peer.send(b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n")

    found = ask(script)
    assert found.ok
    assert found.json == LISTING


@pytest.mark.parametrize("packed", [False, True])
def test_a_body_without_end_is_not_kept(packed: bool, ask: Ask) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        squeeze = zlib.compressobj(wbits=31)
        peer.send(CHUNKED.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") if packed else CHUNKED)
        while not peer.hold(0):
            plain = b" " * 100_000
            part = squeeze.compress(plain) + squeeze.flush(zlib.Z_SYNC_FLUSH) if packed else plain
            peer.send(b"%x\r\n" % len(part) + part + b"\r\n")

    found = ask(script)
    assert (found.fault, found.status) == (Fault.OVERSIZE, 200)
    assert BODY_LIMIT_BYTES < len(found.body) < 40 * BODY_LIMIT_BYTES


def test_a_body_just_within_the_limit_is_whole(ask: Ask) -> None:
    body = b'"' + b"x" * (BODY_LIMIT_BYTES - 2) + b'"'
    found = ask(raw(answer(body)))
    assert found.ok
    assert len(found.body) == BODY_LIMIT_BYTES


def test_a_kept_connection_that_the_peer_closed_meanwhile_is_no_fault(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(once(answer(LISTING)))
    made = connect(server)
    for _ in range(3):
        assert exchange(made, "GET", server.url + "/models").ok
        threading.Event().wait(0.1)


@pytest.mark.parametrize("reset", [True, False])
def test_a_kept_connection_that_closes_just_then_is_no_fault(reset: bool, wire: MakeWire, connect: MakeClient) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(answer(LISTING))
        peer.request()  # taken, and not answered: as when an idle timeout and a request meet
        if reset:
            peer.reset()

    server = wire(script)
    made = connect(server)
    for _ in range(3):
        assert exchange(made, "POST", server.url + "/chat/completions", json_body={"a": 1}).ok
    assert {asked.body for asked in server.asked} == {b'{"a":1}'}
    assert len(server.asked) == 5


@pytest.mark.parametrize("reset", [True, False])
def test_what_a_new_connection_does_is_not_repeated(reset: bool, wire: MakeWire, connect: MakeClient) -> None:
    """An engine that crashes on a request is not made to crash again and again."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None and asked.method == "GET":
            peer.send(answer(LISTING))
        if reset:
            peer.reset()

    server = wire(script)
    assert not exchange(connect(server), "POST", server.url + "/chat/completions", json_body={}).ok
    assert len(server.asked) == 1
    kept = connect(server)
    assert exchange(kept, "GET", server.url + "/models").ok
    found = exchange(kept, "POST", server.url + "/chat/completions", json_body={})
    assert found.fault in (Fault.CLOSED, Fault.RESET)
    assert [asked.method for asked in server.asked] == ["POST", "GET", "POST", "POST"]


def test_a_client_that_was_closed_is_a_fault_too(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(always(answer({})))
    made = connect(server)
    made.close()
    assert exchange(made, "GET", server.url + "/models").fault is Fault.OTHER


# --- faults that loopback cannot show: from the error alone --------------------------------------------------


def raised(outer: Exception, inner: BaseException) -> Exception:
    try:
        raise outer from inner
    except type(outer) as error:
        return error


@pytest.mark.parametrize(
    "number, fault, begun",
    [
        (errno.ECONNREFUSED, Fault.REFUSED, Fault.REFUSED),
        (errno.ECONNRESET, Fault.RESET, Fault.CUT),
        (errno.EPIPE, Fault.RESET, Fault.CUT),
        (errno.EHOSTUNREACH, Fault.UNREACHABLE, Fault.UNREACHABLE),
        (errno.ENETUNREACH, Fault.UNREACHABLE, Fault.UNREACHABLE),
        (errno.EACCES, Fault.UNREACHABLE, Fault.UNREACHABLE),
        (errno.EINVAL, Fault.UNREACHABLE, Fault.UNREACHABLE),  # what a blackhole route answers
    ],
)
def test_the_systems_error_decides(number: int, fault: Fault, begun: Fault) -> None:
    error = raised(httpx.ConnectError("All connection attempts failed"), OSError(number, "x"))
    assert read_fault(error, began=False)[0] is fault
    assert read_fault(raised(httpx.ReadError(""), OSError(number, "x")), began=True)[0] is begun


@pytest.mark.parametrize(
    "error, began, fault",
    [
        (httpx.ConnectTimeout(""), False, Fault.CONNECT_TIMEOUT),
        (httpx.PoolTimeout(""), False, Fault.CONNECT_TIMEOUT),
        (httpx.ReadTimeout(""), False, Fault.SILENCE),
        (httpx.ReadTimeout(""), True, Fault.CUT),
        (httpx.WriteTimeout(""), False, Fault.SILENCE),
        (httpx.ProxyError("403 Forbidden"), False, Fault.PROXY),
        (httpx.ReadError(""), False, Fault.CLOSED),
        (httpx.WriteError(""), False, Fault.CLOSED),
        (httpx.ReadError(""), True, Fault.CUT),
        (httpx.DecodingError("x"), True, Fault.CUT),
        (httpx.UnsupportedProtocol("x"), False, Fault.UNSENDABLE),
        (raised(httpx.ConnectError(""), socket.gaierror(socket.EAI_NONAME, "Name not known")), False, Fault.RESOLVE),
        (raised(httpx.ConnectError(""), ssl.SSLError(1, "handshake failure")), False, Fault.TLS),
        (raised(httpx.ConnectError(""), ssl.SSLEOFError(8, "EOF occurred")), False, Fault.TLS),
        (raised(httpx.ReadError(""), ssl.SSLEOFError(8, "EOF occurred")), False, Fault.CLOSED),
        (raised(httpx.ReadError(""), ssl.SSLEOFError(8, "EOF occurred")), True, Fault.CUT),
        (raised(httpx.ReadError(""), ssl.SSLError(1, "certificate required")), False, Fault.TLS),
        (RuntimeError("what?"), False, Fault.OTHER),
        (MemoryError(), True, Fault.OTHER),
    ],
)
def test_what_an_error_means(error: Exception, began: bool, fault: Fault) -> None:
    found, text = read_fault(error, began=began)
    assert found is fault
    assert text


@pytest.mark.parametrize(
    "error", [httpx.LocalProtocolError("Illegal header value b'Bearer sk-secret'"), UnicodeError("sk-secret")]
)
def test_an_error_that_quotes_the_key_is_not_quoted(error: Exception) -> None:
    assert read_fault(error, began=False) == (Fault.UNSENDABLE, "it cannot be written as HTTP")
