"""Name, connection, TLS: before any HTTP is spoken."""

from __future__ import annotations

import errno
import socket
import ssl
import time
from datetime import datetime, timezone

from pytest_thermal.access.faults import proxy_refused
from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.probes.certificate import (
    Certificate,
    ProxyRefusedError,
    fetch_certificate,
    tunnelled,
)
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.transport import tls_context
from pytest_thermal.transport.exchange import read_fault
from pytest_thermal.transport.route import is_address

SLOW_NAME_SECONDS = 2.0
LIFETIME_DAYS = 21
"""Certificates are commonly renewed 30 days before their end: one with fewer than 21 left was not renewed."""


def name(gateway: Gateway) -> Verdict:
    """The host name of the gateway (or of the proxy on the way) resolves."""
    host, port = gateway.route.hop
    what = _hop_words(gateway)
    if is_address(host):
        return skipped(f"{what} is given as an address ({host}): no name to resolve")
    begin = time.perf_counter()
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        return _unresolved(gateway, host, error)
    addresses = sorted({str(entry[4][0]) for entry in found})
    took = time.perf_counter() - begin
    slow = f"resolving {host} took {took:.1f} s: a name server on this machine's list is dead"
    return passed(
        f"{host} is {', '.join(addresses[:4])}",
        addresses=", ".join(addresses),
        resolve_ms=round(took * 1000, 1),
        warnings=(slow,) if took >= SLOW_NAME_SECONDS else (),
    )


def connection(gateway: Gateway) -> Verdict:
    """A TCP connection is accepted, at each address until one works."""
    host, port = gateway.route.hop
    begin = time.perf_counter()
    errors: list[tuple[str, OSError]] = []
    try:
        candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise CannotMeasure(f"{host} resolved before and does not now: {error}") from error
    for family, kind, protocol, _, address in dict.fromkeys(candidates):
        with socket.socket(family, kind, protocol) as sock:
            sock.settimeout(gateway.connect_seconds)
            try:
                sock.connect(address)
            except OSError as error:
                errors.append((str(address[0]), error))
                continue
            warnings = tuple(
                f"{tried} does not accept connections ({_reason(error)}), {address[0]} does" for tried, error in errors
            )
            return passed(
                f"{_hop_words(gateway)} accepts at {address[0]} port {port}",
                connect_ms=round((time.perf_counter() - begin) * 1000, 1),
                warnings=warnings,
            )
    return _unconnected(gateway, errors)


def tls(gateway: Gateway) -> Verdict:
    """The certificate is valid today, for this host, and from an issuer this machine trusts."""
    if not gateway.route.uses_tls:
        return skipped(
            f"the address of the gateway is {gateway.route.origin}: no TLS is spoken, and the key travels in clear"
        )
    host = gateway.route.host
    proxy = gateway.route.proxy
    if proxy is not None and proxy.scheme != "http":
        return skipped(
            f"a tunnel through {proxy.shown} is not looked into; the certificate is still verified with each request"
        )
    begin = time.perf_counter()
    try:
        context = tls_context(gateway.environ)
    except OSError as error:
        raise CannotMeasure(
            f"the certificates named by $SSL_CERT_FILE or $SSL_CERT_DIR cannot be read: {error}",
            likely="a path that is wrong or not readable for this user",
            advice="correct or unset the variable",
        ) from error
    try:
        with tunnelled(gateway) as sock, context.wrap_socket(sock, server_hostname=host) as secure:
            certificate = Certificate.of(secure)
            version = secure.version()
    except ProxyRefusedError as error:
        found = proxy_refused(error.answer, gateway.route)
        return failed(found.seen, layer=found.layer, likely=found.likely, advice=found.advice)
    except ssl.SSLError as error:
        return _handshake_failed(gateway, error)
    except OSError as error:
        return _handshake_cut(gateway, error)
    return passed(
        f"{version}, certificate for {certificate.names_text} valid until {certificate.until:%Y-%m-%d}",
        tls_version=version,
        issuer=certificate.issuer,
        days_left=round(certificate.days_left, 1),
        handshake_ms=round((time.perf_counter() - begin) * 1000, 1),
    )


def tls_lifetime(gateway: Gateway) -> Verdict:
    """The certificate does not end within the next weeks."""
    certificate = fetch_certificate(gateway)
    if certificate is None:
        raise CannotMeasure(f"the certificate of {gateway.route.host} could not be read again")
    left = f"{certificate.days_left:.0f} days left, until {certificate.until:%Y-%m-%d}"
    if certificate.days_left >= LIFETIME_DAYS:
        return passed(left)
    return failed(
        f"{left}, fewer than {LIFETIME_DAYS}",
        likely="its renewal did not run",
        advice="renew it now: from that day on every request fails",
    )


# --- words ---------------------------------------------------------------------------------------------------


def _hop_words(gateway: Gateway) -> str:
    proxy = gateway.route.proxy
    return f"the proxy {proxy.shown}" if proxy else "the gateway"


def _unresolved(gateway: Gateway, host: str, error: OSError | UnicodeError) -> Verdict:
    proxy = gateway.route.proxy
    code = error.errno if isinstance(error, socket.gaierror) else None
    where = proxy.shown if proxy else f"base_url {gateway.domain.base_url}"
    again = {socket.EAI_AGAIN: True}.get(code or 0, False)
    if isinstance(error, UnicodeError):
        likely, advice = f"{host!r} is no valid host name", f"correct {where}"
    elif again:
        likely = "no name server of this machine answers"
        advice = f"cat /etc/resolv.conf; getent hosts {host}; is the VPN or the management network up?"
    else:
        likely = "a spelling mistake, or a name that only another network's servers know"
        advice = f"getent hosts {host}; check {where}; is the VPN or the internal name server missing here?"
    return failed(
        f"{_hop_words(gateway)} host {host!r} does not resolve ({getattr(error, 'strerror', None) or error})",
        likely=likely,
        advice=advice,
        host=host,
    )


def _unconnected(gateway: Gateway, errors: list[tuple[str, OSError]]) -> Verdict:
    host, port = gateway.route.hop
    who = _hop_words(gateway)
    address, error = errors[-1]
    if all(isinstance(e, TimeoutError) or e.errno == errno.ETIMEDOUT for _, e in errors):
        likely = "a firewall drops the packets, or the host is off"
        advice = f"ping {address}; nc -vz -w 5 {address} {port} from here and from the gateway's own network"
    elif any(e.errno == errno.ECONNREFUSED for _, e in errors):
        likely = "the host is up, but nothing listens on that port: the gateway is not running, or the port is wrong"
        where = "the proxy's address" if gateway.route.proxy else "base_url"
        advice = f"ss -ltnp | grep {port} on {host}; check the port in {where}"
    elif any(e.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EINVAL) for _, e in errors):
        likely = "this machine has no route to that network, or the host is down"
        advice = f"ip route get {address}; is the VPN or the management network up?"
    elif any(e.errno in (errno.EACCES, errno.EPERM) for _, e in errors):
        likely = "a rule on this machine or on the way forbids it"
        advice = f"nft list ruleset; ip route get {address}"
    else:
        likely = "the network between refused it"
        advice = f"nc -vz -w 5 {address} {port}"
    tried = "; ".join(f"{where} port {port}: {_reason(why)}" for where, why in errors[:4])
    limit = f" within {gateway.connect_seconds:g} s" if isinstance(error, TimeoutError) else ""
    return failed(f"{who} did not accept{limit}: {tried}", likely=likely, advice=advice, host=host, port=port)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError) or error.errno == errno.ETIMEDOUT:
        return "no answer (timed out)"
    return (error.strerror or str(error)).lower()


_EXPIRED, _NOT_YET, _SELF_SIGNED, _SELF_SIGNED_CHAIN, _NO_ISSUER, _NO_LEAF_ISSUER = 10, 9, 18, 19, 20, 21
_WRONG_HOST, _WRONG_ADDRESS = 62, 64
"""X509_V_ERR_… codes of OpenSSL's x509_vfy.h."""


def _handshake_failed(gateway: Gateway, error: ssl.SSLError) -> Verdict:
    host = gateway.route.host
    now = f"this machine's clock says {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None
    certificate = fetch_certificate(gateway) if code is not None else None
    named = f"the certificate of {host}"
    if code == _EXPIRED:
        ended = f"on {certificate.until:%Y-%m-%d %H:%M} UTC" if certificate else "already"
        return failed(
            f"{named} expired {ended}",
            likely=f"it was not renewed; or the clock is wrong ({now})",
            advice="renew it on the gateway, then reload its web server; date -u to check the clock",
        )
    if code == _NOT_YET:
        return failed(
            f"{named} is not valid yet" + (f" (from {certificate.since:%Y-%m-%d %H:%M} UTC)" if certificate else ""),
            likely=f"the clock of this machine is behind: {now}",
            advice="date -u; chronyc tracking; set the clock",
        )
    if code in (_WRONG_HOST, _WRONG_ADDRESS):
        names = certificate.names_text if certificate else "other names"
        return failed(
            f"{named} is for {names}, not for {host}",
            likely="the certificate does not cover the name or IP address in base_url, or another server answers",
            advice="put one of the certificate's names into base_url, or have it issued again with this one",
        )
    if code in (_SELF_SIGNED, _SELF_SIGNED_CHAIN, _NO_ISSUER, _NO_LEAF_ISSUER):
        issuer = certificate.issuer if certificate else "an unknown issuer"
        ended = f", and it expired on {certificate.until:%Y-%m-%d}" if certificate and certificate.days_left < 0 else ""
        return failed(
            f"{named} comes from {issuer}, which this machine does not trust{ended}",
            likely="the site's own issuer is not installed here, an intermediate certificate is missing on the"
            " server, or something between opens the TLS",
            advice="export SSL_CERT_FILE=/path/to/site-ca.pem, or install it with update-ca-certificates",
        )
    return _protocol_failed(gateway, error)


_NOT_TLS = (
    "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE",
)  # fmt: skip


def _protocol_failed(gateway: Gateway, error: ssl.SSLError) -> Verdict:
    reason = error.reason or str(error)
    if reason in _NOT_TLS:
        return failed(
            f"port {gateway.route.port} of {gateway.route.host} does not speak TLS ({reason})",
            likely="it is plain HTTP",
            advice=f"http:// instead of https:// in base_url {gateway.domain.base_url}, or the TLS port",
        )
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        likely, advice = "the gateway only speaks a TLS older than 1.2", "allow TLS 1.2 or 1.3 on the gateway"
    elif "UNRECOGNIZED_NAME" in reason or "HANDSHAKE_FAILURE" in reason:
        likely = "the server has no certificate for this name, or no cipher in common"
        advice = f"openssl s_client -connect {gateway.route.host}:{gateway.route.port} -servername {gateway.route.host}"
    elif "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason:
        likely, advice = "the gateway demands a client certificate", "ask for an entry that takes the key alone"
    else:
        likely = "the server and this machine found no common way to speak TLS"
        advice = f"openssl s_client -connect {gateway.route.host}:{gateway.route.port}"
    return failed(f"the handshake with {gateway.route.origin} failed: {reason}", likely=likely, advice=advice)


def _handshake_cut(gateway: Gateway, error: OSError) -> Verdict:
    if isinstance(error, TimeoutError):
        return failed(
            f"no handshake with {gateway.route.origin} within {gateway.connect_seconds:g} s: connected, then silence",
            likely="the port accepts but does not speak TLS, or a firewall looks into the connection and holds it",
            advice=f"openssl s_client -connect {gateway.route.host}:{gateway.route.port}; try http:// in base_url",
        )
    _, text = read_fault(error, began=False)
    return failed(
        f"the connection to {gateway.route.origin} was closed during the handshake ({text})",
        likely="the port speaks no TLS, a firewall refuses this name, or the balancer has no backend",
        advice=f"openssl s_client -connect {gateway.route.host}:{gateway.route.port}; try http:// in base_url",
    )
