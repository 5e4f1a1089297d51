"""Ways to the gateway: TLS, proxies, and what stands in them."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
import trustme

from pytest_thermal.transport import Fault, fast, route_to
from tests.transport.fast.helpers import KEY, answers, asked, connection_to, run
from tests.transport.wire import Peer, Wire, always, answer, proxy

MakeWire = Callable[..., Wire]

GOOD = always(answer(b"good"))
LOGIN = "Basic " + base64.b64encode(b"me:p@ss").decode()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def serving(authority: trustme.CA, *names: str, until: datetime | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, not_after=until).configure_cert(context)
    return context


def test_tls_is_kept_and_verified(authority: trustme.CA, trust: ssl.SSLContext, wire: MakeWire) -> None:
    server = wire(GOOD, tls=serving(authority, "127.0.0.1", "localhost"))
    for url in (server.url, f"https://localhost:{server.port}/v1"):
        found = answers(connection_to(url, trust=trust), 3)
        assert [taken.whole for taken in found] == [(200, b"good", None)] * 3
    (taken,) = answers(connection_to(server.url, trust=ssl.create_default_context()))
    assert (taken.fault, taken.text) == (Fault.TLS, "CERTIFICATE_VERIFY_FAILED")


@pytest.mark.parametrize("names, days", [(["other.example"], 1), (["127.0.0.1"], -1)], ids=["another host", "expired"])
def test_a_certificate_that_does_not_hold(
    names: list[str], days: int, authority: trustme.CA, trust: ssl.SSLContext, wire: MakeWire
) -> None:
    until = datetime.now(timezone.utc) + timedelta(days=days)
    server = wire(GOOD, tls=serving(authority, *names, until=until))
    (taken,) = answers(connection_to(server.url, trust=trust))
    assert (taken.fault, taken.text) == (Fault.TLS, "CERTIFICATE_VERIFY_FAILED")
    assert server.asked == []


def test_plain_http_where_tls_is_expected(trust: ssl.SSLContext, wire: MakeWire) -> None:
    server = wire(lambda peer: peer.send(answer(b"Bad Request", status="400 Bad Request")))
    (taken,) = answers(connection_to(f"https://{server.netloc}/v1", trust=trust))
    assert taken.fault is Fault.TLS


def test_a_handshake_that_never_ends(trust: ssl.SSLContext, wire: MakeWire) -> None:
    def still(peer: Peer) -> None:
        peer.hold()

    (taken,) = answers(connection_to(f"https://{wire(still).netloc}/v1", trust=trust, connect_seconds=0.2))
    assert (taken.fault, taken.text) == (Fault.CONNECT_TIMEOUT, "no connection in time")


def test_a_tls_answer_that_breaks_off(authority: trustme.CA, trust: ssl.SSLContext, wire: MakeWire) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")

    (taken,) = answers(connection_to(wire(script, tls=serving(authority, "127.0.0.1")).url, trust=trust))
    assert taken.whole == (200, b"abc", Fault.CUT)


def test_through_a_proxy(authority: trustme.CA, trust: ssl.SSLContext, wire: MakeWire) -> None:
    plain, secure = wire(GOOD), wire(GOOD, tls=serving(authority, "127.0.0.1"))
    between = wire(proxy(login=LOGIN))
    environ = dict.fromkeys(("http_proxy", "https_proxy"), f"http://me:p%40ss@{between.netloc}")
    environ["no_proxy"] = "nowhere.example"
    for server in (plain, secure):
        connection = connection_to(server.url, environ, trust=trust if server is secure else None)
        dialer = connection._dialer

        (taken,) = answers(connection, target=dialer.prefix + b"/v1/models", fields=dialer.fields)
        assert taken.whole == (200, b"good", None)
    assert [asked.method for asked in between.asked] == ["GET", "CONNECT"]
    assert between.asked[0].target == f"{plain.url}/models"
    assert between.asked[1].target == secure.netloc
    assert secure.asked[0].target == "/v1/models"
    # The key is for the gateway: of what goes to it through TLS, a proxy sees nothing.
    assert "authorization" not in between.asked[1].headers
    assert KEY in secure.asked[0].headers["authorization"]
    assert "proxy-authorization" not in secure.asked[0].headers


@pytest.mark.parametrize(
    "said, text",
    [
        (answer(b"who are you?", status="407 Proxy Authentication Required"), "407 Proxy Authentication Required"),
        (answer(b"", status="502 Bad Gateway"), "502 Bad Gateway"),
        (b"SSH-2.0-x\r\n\r\n", "the proxy answers CONNECT with something that is no HTTP"),
    ],
)
def test_a_proxy_that_refuses(said: bytes, text: str, trust: ssl.SSLContext, wire: MakeWire) -> None:
    between = wire(proxy(refusal=said))
    environ = {"https_proxy": f"http://{between.netloc}", "no_proxy": "nowhere.example"}
    (taken,) = answers(connection_to("https://127.0.0.1:1/v1", environ, trust=trust))
    assert (taken.fault, taken.text) == (Fault.PROXY, text)


def test_a_proxy_that_closes_or_keeps_still(trust: ssl.SSLContext, wire: MakeWire) -> None:
    closing = wire(lambda peer: peer.request() and None)
    environ = {"https_proxy": f"http://{closing.netloc}", "no_proxy": "nowhere.example"}
    (taken,) = answers(connection_to("https://127.0.0.1:1/v1", environ, trust=trust))
    assert taken.fault is Fault.CLOSED

    def still(peer: Peer) -> None:
        peer.hold()

    environ = {"https_proxy": f"http://{wire(still).netloc}", "no_proxy": "nowhere.example"}
    (taken,) = answers(connection_to("https://127.0.0.1:1/v1", environ, trust=trust, connect_seconds=0.2))
    assert taken.fault is Fault.CONNECT_TIMEOUT


def test_a_proxy_that_is_spoken_to_over_tls(authority: trustme.CA, trust: ssl.SSLContext, wire: MakeWire) -> None:
    server, between = wire(GOOD), wire(proxy(), tls=serving(authority, "127.0.0.1"))
    environ = {"http_proxy": f"https://{between.netloc}", "no_proxy": "nowhere.example"}
    connection = connection_to(server.url, environ, trust=trust)
    (taken,) = answers(connection, target=connection._dialer.prefix + b"/v1/models")
    assert taken.whole == (200, b"good", None)
    assert between.asked[0].target == f"{server.url}/models"


@pytest.mark.parametrize(
    "url, proxy_url, why",
    [
        ("http://gateway.example/v1", "", ""),
        ("https://gateway.example/v1", "http://me:secret@proxy.example:3128", ""),
        ("http://gateway.example/v1", "https://proxy.example:3128", ""),
        ("https://gateway.example/v1", "https://me:secret@proxy.example:3128", "TLS within the TLS of https://proxy"),
        ("http://gateway.example/v1", "socks5://me:secret@proxy.example", "SOCKS, for socks5://proxy.example:1080"),
    ],
)
def test_ways_that_it_leaves_to_httpx(url: str, proxy_url: str, why: str) -> None:
    found = fast.cannot_take(route_to(url, {"all_proxy": proxy_url} if proxy_url else {}))
    assert found.startswith(why)
    assert bool(found) is bool(why)
    assert "secret" not in found


def test_an_address_that_refuses_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch, wire: MakeWire) -> None:
    server = wire(GOOD)

    async def ask() -> object:
        connection = connection_to(f"http://two.example:{server.port}/v1")

        async def both(*_: object) -> list[str]:
            return ["127.0.0.2", "127.0.0.1"]

        monkeypatch.setattr(connection._dialer, "_resolve", both)
        taken = await asked(connection)
        await connection.close()
        return taken.whole

    assert run(ask()) == (200, b"good", None)
