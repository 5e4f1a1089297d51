"""Certificates of every kind, and proxies on the way, for real: what the client makes of them."""

from __future__ import annotations

import base64
import importlib.util
import shutil
import ssl
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from pytest_thermal.transport import Exchange, Fault, exchange, stream_exchange, tls_context
from tests.transport.wire import Peer, Wire, always, answer, proxy

MakeWire = Callable[..., Wire]
MakeClient = Callable[..., httpx.Client]

GOOD = always(answer({"data": []}))
NOW = datetime.now(timezone.utc)


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(organization_name="Site issuer")


@pytest.fixture(scope="module")
def trust(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the site's issuer is trusted."""
    file = tmp_path_factory.mktemp("trust") / "site.pem"
    authority.cert_pem.write_to_path(str(file))
    return {"SSL_CERT_FILE": str(file)}


def ask(connect: MakeClient, server: Wire, environ: dict[str, str], url: str | None = None) -> Exchange:
    url = url or server.url
    return exchange(connect(url, environ=environ), "GET", url + "/models")


def test_a_certificate_of_the_sites_issuer_is_good(
    authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient
) -> None:
    server = wire(GOOD, tls=serving(authority.issue_cert("127.0.0.1", "localhost")))
    assert ask(connect, server, trust).ok
    assert ask(connect, server, trust, f"https://localhost:{server.port}/v1").ok


def test_ssl_cert_dir_is_trusted_too(
    authority: trustme.CA, wire: MakeWire, connect: MakeClient, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "site.pem"))
    if not shutil.which("openssl"):
        pytest.skip("no openssl command to give the folder's files their names")
    subprocess.run(["openssl", "rehash", str(tmp_path)], check=True, capture_output=True)
    server = wire(GOOD, tls=serving(authority.issue_cert("127.0.0.1")))
    assert ask(connect, server, {"SSL_CERT_DIR": str(tmp_path)}).ok
    assert ask(connect, server, {}).fault is Fault.TLS


@pytest.mark.parametrize(
    "names, dates, reason",
    [
        (["127.0.0.1"], {"not_after": NOW - timedelta(days=1)}, "CERTIFICATE_VERIFY_FAILED"),
        (["127.0.0.1"], {"not_before": NOW + timedelta(days=1)}, "CERTIFICATE_VERIFY_FAILED"),
        (["other.example"], {}, "CERTIFICATE_VERIFY_FAILED"),
        (["localhost"], {}, "CERTIFICATE_VERIFY_FAILED"),  # for the name, and we use the address
    ],
    ids=["expired", "not yet valid", "another host", "name for an address"],
)
def test_a_certificate_that_does_not_hold(
    names: list[str],
    dates: dict[str, Any],
    reason: str,
    authority: trustme.CA,
    trust: dict[str, str],
    wire: MakeWire,
    connect: MakeClient,
) -> None:
    found = ask(connect, wire(GOOD, tls=serving(authority.issue_cert(*names, **dates))), trust)
    assert (found.fault, found.fault_text) == (Fault.TLS, reason)


def test_an_unknown_issuer(authority: trustme.CA, wire: MakeWire, connect: MakeClient) -> None:
    server = wire(GOOD, tls=serving(authority.issue_cert("127.0.0.1")))
    found = ask(connect, server, {})
    assert found.fault is Fault.TLS
    assert server.asked == []


def test_plain_http_where_tls_is_expected(wire: MakeWire, connect: MakeClient) -> None:
    server = wire(lambda peer: peer.send(answer(b"Bad Request", status="400 Bad Request")))
    found = ask(connect, server, {}, f"https://{server.netloc}/v1")
    assert found.fault is Fault.TLS
    assert found.fault_text


def test_tls_where_plain_http_is_expected(authority: trustme.CA, wire: MakeWire, connect: MakeClient) -> None:
    server = wire(GOOD, tls=serving(authority.issue_cert("127.0.0.1")))
    found = ask(connect, server, {}, f"http://{server.netloc}/v1")
    assert found.fault in (Fault.NOT_HTTP, Fault.CLOSED, Fault.RESET)


def test_no_tls_version_in_common(
    authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient
) -> None:
    context = serving(authority.issue_cert("127.0.0.1"))
    context.set_ciphers("AES128-SHA")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    found = ask(connect, wire(GOOD, tls=context), trust)
    assert found.fault is Fault.TLS
    assert "HANDSHAKE_FAILURE" in found.fault_text.upper()


def test_a_client_certificate_is_wanted(
    authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient
) -> None:
    context = serving(authority.issue_cert("127.0.0.1"))
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    # In TLS 1.3 the refusal comes only after our request; either way it is TLS, or the connection just ends.
    found = ask(connect, wire(GOOD, tls=context), trust)
    assert found.fault in (Fault.TLS, Fault.RESET, Fault.CLOSED)


@pytest.mark.parametrize("name", ["SSL_CERT_FILE"])
def test_certificates_that_cannot_be_read_are_said(name: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        tls_context({name: str(tmp_path / "missing.pem")})
    (tmp_path / "garbage.pem").write_text("no certificate\n")
    with pytest.raises(OSError, match=r"."):
        tls_context({name: str(tmp_path / "garbage.pem")})


# --- proxies -------------------------------------------------------------------------------------------------


def through(front: Wire, scheme: str = "http", login: str = "") -> dict[str, str]:
    """An environment that leads through ``front``; `no_proxy` is set, since else loopback goes straight."""
    return {f"{scheme}_proxy": f"http://{login}{front.netloc}", "no_proxy": "none.example"}


def test_a_plain_request_through_a_proxy(wire: MakeWire, connect: MakeClient) -> None:
    server, front = wire(GOOD), wire(proxy())
    found = ask(connect, server, through(front))
    assert found.ok
    assert front.asked[0].target == f"{server.url}/models"
    assert server.asked[0].target == "/v1/models"


def test_tls_through_a_proxy(authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient) -> None:
    server = wire(GOOD, tls=serving(authority.issue_cert("127.0.0.1")))
    front = wire(proxy())
    found = ask(connect, server, {**trust, **through(front, "https")})
    assert found.ok
    assert (front.asked[0].method, front.asked[0].target) == ("CONNECT", server.netloc)
    assert "authorization" not in front.asked[0].headers  # the key is the gateway's, not the proxy's


def test_a_proxy_that_itself_is_spoken_to_over_tls(
    authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient
) -> None:
    front = wire(proxy(), tls=serving(authority.issue_cert("127.0.0.1")))
    environ = {"http_proxy": f"https://{front.netloc}", "no_proxy": "none.example"}
    server = wire(GOOD)
    assert ask(connect, server, {**trust, **environ}).ok
    assert ask(connect, server, environ).fault is Fault.TLS  # its certificate is verified with the same trust


@pytest.mark.parametrize("status", ["403 Forbidden", "407 Proxy Authentication Required", "503 Service Unavailable"])
def test_a_proxy_that_opens_no_tunnel(
    status: str, authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient
) -> None:
    server = wire(GOOD, tls=serving(authority.issue_cert("127.0.0.1")))
    front = wire(proxy(refusal=answer(b"<html>no</html>", status=status, kind="text/html")))
    found = ask(connect, server, {**trust, **through(front, "https")})
    assert found.fault is Fault.PROXY
    assert status[:3] in found.fault_text
    assert server.asked == []


@pytest.mark.parametrize("status", ["403 Forbidden", "407 Proxy Authentication Required", "503 Service Unavailable"])
def test_a_proxy_that_refuses_a_plain_request_answers_in_the_gateways_place(
    status: str, wire: MakeWire, connect: MakeClient
) -> None:
    server = wire(GOOD)
    front = wire(proxy(refusal=answer(b"<html>no</html>", status=status, kind="text/html")))
    found = ask(connect, server, through(front))
    assert (found.fault, found.status_line) == (None, status)
    assert found.is_html
    assert server.asked == []


def test_a_proxys_login_is_sent_to_it(
    authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient
) -> None:
    login = "Basic " + base64.b64encode(b"user:p@ss").decode()
    server = wire(GOOD, tls=serving(authority.issue_cert("127.0.0.1")))
    front = wire(proxy(login=login))
    assert ask(connect, server, {**trust, **through(front, "https", "user:p%40ss@")}).ok
    assert ask(connect, server, {**trust, **through(front, "https")}).fault is Fault.PROXY
    assert "proxy-authorization" not in server.asked[0].headers


def test_a_dead_proxy(unused_port: int, wire: MakeWire, connect: MakeClient) -> None:
    server = wire(GOOD)
    found = ask(connect, server, {"http_proxy": f"http://127.0.0.1:{unused_port}", "no_proxy": "none.example"})
    assert found.fault is Fault.REFUSED
    assert server.asked == []


@pytest.mark.skipif(importlib.util.find_spec("socksio") is not None, reason="socksio is installed")
def test_a_socks_proxy_needs_a_package_that_is_not_there(wire: MakeWire, connect: MakeClient) -> None:
    with pytest.raises(ImportError, match="httpx"):
        connect(wire(GOOD), environ={"all_proxy": "socks5://127.0.0.1:1", "no_proxy": "none.example"})


def dripping(peer: Peer) -> None:
    peer.request()
    peer.drip(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 9999, every_seconds=0.05)


def test_the_deadline_holds_over_tls_and_through_a_tunnel(
    authority: trustme.CA, trust: dict[str, str], wire: MakeWire, connect: MakeClient
) -> None:
    server = wire(dripping, tls=serving(authority.issue_cert("127.0.0.1")))
    front = wire(proxy())
    made = connect(server, environ={**trust, **through(front, "https")})
    assert exchange(made, "GET", server.url + "/models", read_seconds=60, total_seconds=0.6).fault is Fault.SLOW
    streamed = stream_exchange(made, server.url + "/x", json_body={}, stall_seconds=60, total_seconds=0.6)
    assert streamed.exchange.fault is Fault.SLOW
