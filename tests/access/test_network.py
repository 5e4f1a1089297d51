"""Name, connection and TLS on real sockets: certificates of every kind, with and without a proxy on the way."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import trustme

from pytest_thermal.access import Ladder
from pytest_thermal.access.probes import network
from pytest_thermal.model import Outcome
from tests.transport.wire import Peer, Script, Wire, always, answer, proxy

MakeLadder = Callable[..., Ladder]
MakeWire = Callable[..., Wire]

GOOD = always(answer({"data": [{"id": "a"}]}))
NOW = datetime.now(timezone.utc)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(organization_name="Site issuer")


@pytest.fixture(scope="module")
def trust(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    file = tmp_path_factory.mktemp("trust") / "site.pem"
    authority.cert_pem.write_to_path(str(file))
    return {"SSL_CERT_FILE": str(file)}


@pytest.fixture
def secure(wire: MakeWire, authority: trustme.CA) -> Callable[..., Wire]:
    """Starts a TLS server with a certificate of the site's issuer for these names."""

    def make(*names: str, script: Script = GOOD, **dates: Any) -> Wire:
        return wire(script, tls=context_of(authority.issue_cert(*(names or ("127.0.0.1",)), **dates)))

    return make


def context_of(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


Secure = Callable[..., Wire]


# --- name ----------------------------------------------------------------------------------------------------


def test_a_name_is_resolved(make_ladder: MakeLadder) -> None:
    finding = make_ladder("http://localhost:8000/v1").finding("name")
    assert finding.outcome is Outcome.PASSED
    assert finding.seen.startswith("localhost is ")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://[::1]:8000/v1"])
def test_an_address_needs_no_name(url: str, make_ladder: MakeLadder) -> None:
    assert make_ladder(url).finding("name").outcome is Outcome.SKIPPED


def test_a_name_that_nobody_knows(make_ladder: MakeLadder) -> None:
    finding = make_ladder("http://gateway.invalid/v1").finding("name")
    assert finding.outcome is Outcome.FAILED
    assert "'gateway.invalid' does not resolve" in finding.seen
    assert "base_url http://gateway.invalid/v1" in finding.advice


def test_a_name_that_can_be_none(make_ladder: MakeLadder) -> None:
    finding = make_ladder(f"http://{'x' * 70}.example/v1").finding("name")
    assert finding.outcome is Outcome.FAILED


def test_the_proxys_name_is_the_one_to_resolve(make_ladder: MakeLadder) -> None:
    finding = make_ladder("http://gw.example/v1", environ={"http_proxy": "http://proxy.invalid:3128"}).finding("name")
    assert "the proxy http://proxy.invalid:3128 (from $http_proxy) host 'proxy.invalid'" in finding.seen
    assert "(from $http_proxy)" in finding.advice


def test_name_servers_that_do_not_answer_are_told_from_a_wrong_name(
    make_ladder: MakeLadder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert "no name server" in make_ladder("http://gw.example/v1").finding("name").likely


# --- connection ----------------------------------------------------------------------------------------------


@pytest.fixture
def unused_port() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def test_a_port_that_refuses(make_ladder: MakeLadder, unused_port: int) -> None:
    finding = make_ladder(f"http://127.0.0.1:{unused_port}/v1").finding("connection")
    assert finding.outcome is Outcome.FAILED
    assert f"127.0.0.1 port {unused_port}: connection refused" in finding.seen
    assert "nothing listens" in finding.likely


def test_a_proxy_that_refuses(make_ladder: MakeLadder, unused_port: int) -> None:
    environ = {"http_proxy": f"http://127.0.0.1:{unused_port}"}
    finding = make_ladder("http://gw.example/v1", environ=environ).finding("connection")
    assert finding.layer == "connection"
    assert f"the proxy http://127.0.0.1:{unused_port} (from $http_proxy) did not accept" in finding.seen
    assert "the proxy's address" in finding.advice


def test_the_address_that_works_is_found_and_the_dead_one_told(
    make_ladder: MakeLadder, wire: MakeWire, unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = wire(GOOD)
    dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", unused_port))
    alive = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [dead, alive])
    verdict = network.connection(make_ladder(f"http://gw.example:{server.port}/v1").gateway)
    assert verdict.outcome is Outcome.PASSED
    assert "does not accept connections (connection refused)" in verdict.warnings[0]


@pytest.mark.parametrize(
    "number, likely",
    [
        ("EHOSTUNREACH", "no route to that network"),
        ("ENETUNREACH", "no route to that network"),
        ("EACCES", "a rule on this machine"),
        ("ENOBUFS", "the network between refused it"),
        ("ETIMEDOUT", "a firewall drops the packets"),
    ],
)
def test_other_reasons(number: str, likely: str, make_ladder: MakeLadder, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno  # noqa: PLC0415
    import os  # noqa: PLC0415

    code = getattr(errno, number)

    def fail(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(socket.socket, "connect", fail)
    finding = make_ladder("http://127.0.0.1:8000/v1").finding("connection")
    assert likely in finding.likely


# --- TLS -----------------------------------------------------------------------------------------------------


def test_plain_http_is_said_to_carry_the_key_in_clear(make_ladder: MakeLadder, wire: MakeWire) -> None:
    finding = make_ladder(wire(GOOD).url).finding("tls")
    assert finding.outcome is Outcome.SKIPPED
    assert "the key travels in clear" in finding.seen


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_good_certificate(host: str, make_ladder: MakeLadder, secure: Secure, trust: dict[str, str]) -> None:
    server = secure("127.0.0.1", "localhost", not_after=NOW + timedelta(days=90))
    ladder = make_ladder(f"https://{host}:{server.port}/v1", environ=trust)
    finding = ladder.finding("tls")
    assert finding.outcome is Outcome.PASSED, finding.message
    assert finding.evidence["issuer"] == "Site issuer"
    assert 89 <= float(finding.evidence["days_left"] or 0) <= 90
    assert ladder.finding("tls_lifetime").outcome is Outcome.PASSED


def test_a_certificate_that_ends_soon(make_ladder: MakeLadder, secure: Secure, trust: dict[str, str]) -> None:
    ladder = make_ladder(secure(not_after=NOW + timedelta(days=5)).url, environ=trust)
    assert ladder.finding("tls").outcome is Outcome.PASSED
    finding = ladder.finding("tls_lifetime")
    assert finding.outcome is Outcome.FAILED
    assert "fewer than 21" in finding.seen
    assert ladder.finding("http").outcome is Outcome.PASSED  # advisory: it blocks nothing


def test_an_expired_certificate(make_ladder: MakeLadder, secure: Secure, trust: dict[str, str]) -> None:
    ended = NOW - timedelta(days=3)
    finding = make_ladder(secure(not_after=ended).url, environ=trust).finding("tls")
    assert finding.outcome is Outcome.FAILED
    assert f"the certificate of 127.0.0.1 expired on {ended:%Y-%m-%d %H:%M} UTC" in finding.seen
    assert "the clock is wrong" in finding.likely


def test_a_certificate_of_the_future(make_ladder: MakeLadder, secure: Secure, trust: dict[str, str]) -> None:
    begins = NOW + timedelta(days=3)
    finding = make_ladder(secure(not_before=begins).url, environ=trust).finding("tls")
    assert f"is not valid yet (from {begins:%Y-%m-%d %H:%M} UTC)" in finding.seen
    assert "clock of this machine is behind" in finding.likely


@pytest.mark.parametrize(
    "names, host, shown",
    [
        (["other.example"], "127.0.0.1", "is for other.example, not for 127.0.0.1"),
        (["localhost"], "127.0.0.1", "is for localhost, not for 127.0.0.1"),
        (["127.0.0.1"], "localhost", "is for 127.0.0.1, not for localhost"),
        (["10.0.0.7"], "127.0.0.1", "is for 10.0.0.7, not for 127.0.0.1"),
        (
            ["a.example", "b.example", "c.example", "d.example"],
            "localhost",
            "a.example, b.example, c.example and 1 more",
        ),
    ],
)
def test_a_certificate_for_another_host(
    names: list[str], host: str, shown: str, make_ladder: MakeLadder, secure: Secure, trust: dict[str, str]
) -> None:
    server = secure(*names)
    finding = make_ladder(f"https://{host}:{server.port}/v1", environ=trust).finding("tls")
    assert finding.outcome is Outcome.FAILED
    assert shown in finding.seen


def test_an_unknown_issuer_is_named(make_ladder: MakeLadder, secure: Secure) -> None:
    finding = make_ladder(secure().url).finding("tls")
    assert "comes from Site issuer, which this machine does not trust" in finding.seen
    assert "SSL_CERT_FILE" in finding.advice


def test_an_unknown_issuer_does_not_hide_that_it_expired(make_ladder: MakeLadder, secure: Secure) -> None:
    ended = NOW - timedelta(days=3)
    finding = make_ladder(secure(not_after=ended).url).finding("tls")
    assert f"and it expired on {ended:%Y-%m-%d}" in finding.seen


def test_a_self_signed_certificate(make_ladder: MakeLadder, wire: MakeWire, tmp_path: Path) -> None:
    from cryptography import x509  # noqa: PLC0415 - trustme issues none without an authority
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bench-gateway")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "self.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    finding = make_ladder(wire(GOOD, tls=context).url).finding("tls")
    assert finding.outcome is Outcome.FAILED
    assert "comes from bench-gateway, which this machine does not trust" in finding.seen


def test_a_missing_intermediate_certificate(
    make_ladder: MakeLadder, wire: MakeWire, authority: trustme.CA, trust: dict[str, str]
) -> None:
    between = authority.create_child_ca()
    leaf = between.issue_cert("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with leaf.private_key_pem.tempfile() as key, leaf.cert_chain_pems[0].tempfile() as alone:
        context.load_cert_chain(alone, key)
    finding = make_ladder(wire(GOOD, tls=context).url, environ=trust).finding("tls")
    assert "an intermediate certificate is missing" in finding.likely
    whole = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(whole)
    assert make_ladder(wire(GOOD, tls=whole).url, environ=trust).finding("tls").outcome is Outcome.PASSED


def test_a_port_that_speaks_plain_http(make_ladder: MakeLadder, wire: MakeWire) -> None:
    server = wire(lambda peer: peer.send(answer(b"Bad Request", status="400 Bad Request")))
    finding = make_ladder(f"https://{server.netloc}/v1").finding("tls")
    assert "does not speak TLS" in finding.seen
    assert "http:// instead of https://" in finding.advice


def test_a_port_that_says_nothing(make_ladder: MakeLadder, wire: MakeWire) -> None:
    server = wire(lambda peer: peer.hold() and None)
    finding = make_ladder(f"https://{server.netloc}/v1", connect_seconds=0.3).finding("tls")
    assert "no handshake" in finding.seen
    assert "connected, then silence" in finding.seen


@pytest.mark.parametrize("reset", [True, False])
def test_a_port_that_hangs_up(reset: bool, make_ladder: MakeLadder, wire: MakeWire) -> None:
    def hang_up(peer: Peer) -> None:
        peer._more()  # the greeting: a reset before it would be the connection's fault
        if reset:
            peer.reset()

    server = wire(hang_up)
    finding = make_ladder(f"https://{server.netloc}/v1").finding("tls")
    assert (finding.outcome, finding.layer) == (Outcome.FAILED, "tls")


def test_no_cipher_in_common(
    make_ladder: MakeLadder, wire: MakeWire, authority: trustme.CA, trust: dict[str, str]
) -> None:
    context = context_of(authority.issue_cert("127.0.0.1"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-SHA")
    finding = make_ladder(wire(GOOD, tls=context).url, environ=trust).finding("tls")
    assert "no cipher in common" in finding.likely


def test_certificates_that_cannot_be_read_are_our_own_trouble(
    make_ladder: MakeLadder, secure: Secure, tmp_path: Path
) -> None:
    finding = make_ladder(secure().url, environ={"SSL_CERT_FILE": str(tmp_path / "none.pem")}).finding("tls")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "$SSL_CERT_FILE" in finding.seen


# --- through a proxy -----------------------------------------------------------------------------------------


def through(front: Wire, scheme: str = "https", login: str = "") -> dict[str, str]:
    return {f"{scheme}_proxy": f"http://{login}{front.netloc}", "no_proxy": "none.example"}


def test_tls_through_a_proxy(make_ladder: MakeLadder, secure: Secure, wire: MakeWire, trust: dict[str, str]) -> None:
    server, front = secure(), wire(proxy())
    ladder = make_ladder(server.url, environ={**trust, **through(front)})
    assert ladder.finding("tls").outcome is Outcome.PASSED
    assert ladder.finding("http").outcome is Outcome.PASSED
    assert {asked.method for asked in front.asked} == {"CONNECT"}


def test_a_bad_certificate_is_seen_through_a_proxy(
    make_ladder: MakeLadder, secure: Secure, wire: MakeWire, trust: dict[str, str]
) -> None:
    server = secure("other.example")
    finding = make_ladder(server.url, environ={**trust, **through(wire(proxy()))}).finding("tls")
    assert "is for other.example" in finding.seen


def test_a_tunnel_to_an_ipv6_address_is_asked_for_in_brackets(make_ladder: MakeLadder, wire: MakeWire) -> None:
    front = wire(proxy(refusal=answer(b"", status="502 Bad Gateway")))
    make_ladder("https://[2001:db8::7]:8443/v1", environ=through(front)).finding("tls")
    assert front.asked[0].target == "[2001:db8::7]:8443"


@pytest.mark.parametrize(
    "status, likely",
    [
        ("403 Forbidden", "rules do not let this bench through"),
        ("407 Proxy Authentication Required", "wants a login of its own"),
        ("502 Bad Gateway", "cannot reach the gateway"),
        ("200", ""),
    ],
)
def test_a_proxy_that_opens_no_tunnel_is_the_fault_of_http(
    status: str, likely: str, make_ladder: MakeLadder, secure: Secure, wire: MakeWire, trust: dict[str, str]
) -> None:
    front = wire(proxy(refusal=answer(b"<html>", status=status, kind="text/html")))
    finding = make_ladder(secure().url, environ={**trust, **through(front)}).finding("tls")
    assert finding.outcome is Outcome.FAILED
    if likely:
        assert finding.layer == "http"
        assert status in finding.seen
        assert f"http://{front.netloc} (from $https_proxy)" in finding.seen
        assert likely in finding.likely


@pytest.mark.parametrize(
    "status, likely",
    [
        ("403 Forbidden", "deny rule"),
        ("407 Proxy Authentication Required", "wants a login of its own"),
        ("503 Service Unavailable", "cannot reach it"),
    ],
)
def test_a_proxy_that_refuses_plain_requests(status: str, likely: str, make_ladder: MakeLadder, wire: MakeWire) -> None:
    front = wire(proxy(refusal=answer(b"<html><title>ERROR</title>", status=status, kind="text/html")))
    finding = make_ladder("http://gw.example/v1", environ=through(front, "http")).finding("http")
    assert (finding.outcome, finding.layer) == (Outcome.FAILED, "http")
    assert status in finding.seen
    assert likely in finding.likely


def test_a_proxys_login_is_used_and_not_shown(
    make_ladder: MakeLadder, secure: Secure, wire: MakeWire, trust: dict[str, str]
) -> None:
    import base64  # noqa: PLC0415

    front = wire(proxy(login="Basic " + base64.b64encode(b"user:hunter2").decode()))
    ladder = make_ladder(secure().url, environ={**trust, **through(front, login="user:hunter2@")})
    for name in ("name", "connection", "tls", "http"):
        finding = ladder.finding(name)
        assert finding.outcome in (Outcome.PASSED, Outcome.SKIPPED), finding.message
        assert "hunter2" not in repr(finding)
    assert "proxy-authorization" in front.asked[-1].headers


def test_a_proxy_that_cannot_be_looked_through_is_not_blamed(
    make_ladder: MakeLadder, secure: Secure, wire: MakeWire, authority: trustme.CA, trust: dict[str, str]
) -> None:
    front = wire(proxy(), tls=context_of(authority.issue_cert("127.0.0.1")))
    environ = {**trust, "https_proxy": f"https://{front.netloc}", "no_proxy": "none.example"}
    ladder = make_ladder(secure().url, environ=environ)
    assert ladder.finding("tls").outcome is Outcome.SKIPPED
    assert ladder.finding("http").outcome is Outcome.PASSED
    # The certificate is still verified with the request itself.
    wrong = make_ladder(secure("other.example").url, environ=environ)
    assert wrong.finding("tls").outcome is Outcome.SKIPPED
    assert (wrong.finding("http").outcome, wrong.finding("http").layer) == (Outcome.FAILED, "tls")
