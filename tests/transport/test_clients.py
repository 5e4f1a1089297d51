"""The clients: where the key goes and where it never goes, and what our side refuses to send."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import respx
from pydantic import SecretStr

from pytest_thermal.transport import Fault, KeyAuth, RetryRule, async_client, client, exchange, fast, unsendable
from pytest_thermal.transport.clients import _ByLibrary
from tests.transport.conftest import KEY
from tests.transport.wire import Peer, Wire, always, answer, proxy

MakeWire = Callable[..., Wire]
MakeClient = Callable[..., httpx.Client]

SETTINGS: dict[str, Any] = {
    "base_url": "http://gateway.test/v1",
    "key": SecretStr(KEY),
    "connect_seconds": 30.0,
    "read_seconds": 70.0,
    "environ": {},
}


def test_the_key_is_in_the_header_and_in_no_repr(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(always(answer({})))
    made = connect(server)
    assert made.get("/models").status_code == 200
    assert KEY not in repr(made.auth) + repr(made) + str(vars(made))
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.asked[0].headers["user-agent"] == "pytest-thermal"


def test_without_a_key_no_header_is_sent(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(always(answer({})))
    connect(server, key=None).get("/models")
    exchange(connect(server), "GET", server.url + "/models", auth=None)
    assert all("authorization" not in asked.headers for asked in server.asked)
    assert len(server.asked) == 2


def test_headers_of_ones_own_are_added(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(always(answer({})))
    connect(server, headers={"X-Project": "burn-in"}).get("/models")
    assert server.asked[0].headers["x-project"] == "burn-in"


def test_timeouts_are_the_benchs() -> None:
    with client(**SETTINGS) as made:
        assert (made.timeout.connect, made.timeout.read) == (30.0, 70.0)
    assert async_client(**SETTINGS).timeout.connect == 30.0


def test_a_netrc_and_the_environment_of_the_process_are_not_used(
    wire: MakeWire, connect: MakeClient, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    server = wire(always(answer({})))
    assert connect(server).get("/models").status_code == 200
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("without_httptools", [False, True])
def test_the_async_client_sends_the_same_and_retries(
    wire: MakeWire, monkeypatch: pytest.MonkeyPatch, without_httptools: bool
) -> None:
    if without_httptools:
        monkeypatch.setattr(fast, "missing", lambda: "httptools is not installed")
    said = iter([answer({}, status="429 Too Many Requests"), answer({"data": []})])

    def script(peer: Peer) -> None:
        while peer.request() is not None:
            peer.send(next(said))

    server = wire(script)
    settings = {**SETTINGS, "base_url": server.url, "retry": RetryRule(max_attempts=3, backoff_seconds=0.0)}

    async def ask() -> Any:
        async with async_client(**settings) as made:
            return (await made.get("/models")).json()

    assert asyncio.run(ask()) == {"data": []}
    assert {(asked.headers["authorization"], asked.target) for asked in server.asked} == {
        (f"Bearer {KEY}", "/v1/models")
    }
    assert len(server.asked) == 2


def test_the_async_client_has_the_loads_connections_where_asyncio_runs_and_stock_ones_elsewhere() -> None:
    """As under trio, which httpx knows and they do not."""
    both = _ByLibrary(
        *(httpx.MockTransport(lambda _, name=name: httpx.Response(200, text=name)) for name in ("ours", "stock"))
    )
    request = httpx.Request("GET", "http://gateway.test/v1/models")
    assert asyncio.run(both.handle_async_request(request)).text == "ours"
    with pytest.raises(StopIteration) as ended:
        both.handle_async_request(request).send(None)
    assert ended.value.value.text == "stock"


# --- the key goes to its own origin only ---------------------------------------------------------------------


def test_a_redirect_is_not_followed(wire: MakeWire, connect: MakeClient) -> None:
    elsewhere = wire(always(answer({"data": []})))
    server = wire(always(answer(None, status="302 Found", location=f"{elsewhere.url}/models")))
    found = exchange(connect(server), "GET", server.url + "/models")
    assert found.status == 302
    assert found.headers["location"] == f"{elsewhere.url}/models"
    assert elsewhere.asked == []


@pytest.mark.parametrize("retry", [None, RetryRule(max_attempts=2, backoff_seconds=0)])
def test_where_a_user_follows_redirects_the_key_does_not_leave_the_origin(
    retry: RetryRule | None, wire: MakeWire, connect: MakeClient
) -> None:
    elsewhere = wire(always(answer({"data": []})))
    server = wire(always(answer(None, status="307 Temporary Redirect", location=f"{elsewhere.url}/models")))
    assert connect(server, retry=retry).get("/models", follow_redirects=True).status_code == 200
    assert "authorization" in server.asked[0].headers
    assert "authorization" not in elsewhere.asked[0].headers


def test_within_the_origin_a_redirect_keeps_the_key(wire: MakeWire, connect: MakeClient) -> None:
    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            there = asked.target == "/v1/models/"
            peer.send(answer({}) if there else answer(None, status="307 Temporary Redirect", location="/v1/models/"))

    server = wire(script)
    assert connect(server).get("/models", follow_redirects=True).status_code == 200
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {KEY}"] * 2


def test_a_whole_url_of_another_origin_gets_no_key(wire: MakeWire, connect: MakeClient) -> None:
    server, elsewhere = wire(always(answer({}))), wire(always(answer({})))
    assert connect(server).get(f"{elsewhere.url}/models").status_code == 200
    assert "authorization" not in elsewhere.asked[0].headers


@respx.mock
@pytest.mark.parametrize(
    "url, sent",
    [
        ("https://gateway.test/v1/models", True),
        ("https://gateway.test:443/v1/models", True),
        ("https://GATEWAY.test/other/path", True),
        ("http://gateway.test/v1/models", False),
        ("https://gateway.test:8443/v1/models", False),
        ("https://gateway.test.evil.test/v1/models", False),
        ("https://test/v1/models", False),
    ],
)
def test_which_addresses_are_the_keys_own(url: str, sent: bool) -> None:
    route = respx.get(url__startswith="http").mock(return_value=httpx.Response(200))
    with httpx.Client(auth=KeyAuth(SecretStr(KEY), base_url="https://gateway.test/v1")) as made:
        made.get(url)
    assert ("authorization" in route.calls.last.request.headers) is sent


def test_a_client_for_plain_http_never_speaks_unverified_tls(wire: MakeWire, connect: MakeClient) -> None:
    elsewhere = wire(always(answer({})))
    server = wire(
        always(answer(None, status="301 Moved Permanently", location=f"https://{elsewhere.netloc}/v1/models"))
    )
    made = connect(server)
    with pytest.raises(httpx.UnsupportedProtocol, match="set base_url to https"):
        made.get("/models", follow_redirects=True)
    assert elsewhere.asked == []

    async def ask() -> None:
        async with async_client(**{**SETTINGS, "base_url": server.url}) as another:
            await another.get("/models", follow_redirects=True)

    with pytest.raises(httpx.UnsupportedProtocol, match="set base_url to https"):
        asyncio.run(ask())


# --- keys that fit into no header ----------------------------------------------------------------------------


SENDABLE = [
    "sk-abc",
    "a b",
    "!#$%&'*+-.^_`|~",
    'quo"ted',
    "with:colon",
    "base64+/==",
    "sk-" + "x" * 4000,
    "{}",
    "%41",
    "a,b;c",
]
UNSENDABLE = {
    "": "empty",
    " ": "empty",
    "\n": "empty",
    "sk-abc\n": "line break",
    "sk-\nabc": "line break",
    "sk-abc\r\nX-Evil: 1": "line break",
    "sk-\x00abc": "control",
    "sk-\x7fabc": "control",
    "sk-abc\t": "control",
    " sk-abc": "white space",
    "sk-abc ": "white space",
    "ｓｋ-abc": "not ASCII",
    "sk–abc": "not ASCII",
    "sk-“abc”": "not ASCII",
    "sk-abc\u00a0": "not ASCII",
    "sk-abc\u200b": "not ASCII",
    "sk-é": "not ASCII",
}


@pytest.mark.parametrize("key", SENDABLE)
def test_an_unusual_key_arrives_as_it_is(key: str, wire: MakeWire, connect: MakeClient) -> None:
    assert unsendable(SecretStr(key)) is None
    server = wire(always(answer({})))
    assert exchange(connect(server, key=SecretStr(key)), "GET", server.url + "/models").ok
    assert server.asked[0].headers["authorization"] == f"Bearer {key}"


@pytest.mark.parametrize("key", UNSENDABLE)
def test_a_key_that_fits_into_no_header_is_said_and_not_quoted(key: str) -> None:
    reason = unsendable(SecretStr(key))
    assert reason is not None
    assert UNSENDABLE[key] in reason
    assert "abc" not in reason


@pytest.mark.parametrize("key", ["", "sk-abc\n", "sk-abc\r\nX-Evil: 1", "sk-\x00abc", "sk-abc "])
def test_what_cannot_be_written_as_http_is_a_fault_and_not_quoted(
    key: str, wire: MakeWire, connect: MakeClient
) -> None:
    server = wire(always(answer({})))
    found = exchange(connect(server, key=SecretStr(key)), "GET", server.url + "/models")
    assert found.fault is Fault.UNSENDABLE
    assert "abc" not in found.fault_text
    assert server.asked == []


def test_the_login_of_a_proxy_is_not_the_gateways_key(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(always(answer({})))
    login = "Basic " + base64.b64encode(b"user:p@ss").decode()
    front = wire(proxy(login=login))
    environ = {"http_proxy": f"http://user:p%40ss@{front.netloc}", "no_proxy": "none.example"}
    assert connect(server, environ=environ).get("/models").status_code == 200
    assert front.asked[0].headers["proxy-authorization"] == login
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert "proxy-authorization" not in server.asked[0].headers
