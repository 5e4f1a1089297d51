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
from pytest_thermal.access.standstill import Standstill
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.model.said import joined, say
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
        return skipped(say("{what} is given as an address ({host}): no name to resolve", what=what, host=host))
    begin = time.perf_counter()
    try:
        with Standstill() as still:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        return _unresolved(gateway, host, error)
    addresses = sorted({str(entry[4][0]) for entry in found})
    took = time.perf_counter() - begin
    slow = say("resolving {host} took {took:.1f} s: a name server on this machine's list is dead", host=host, took=took)
    return passed(
        say("{host} is {names}", host=host, names=joined(", ", addresses[:4])),
        addresses=joined(", ", addresses),
        resolve_ms=round(took * 1000, 1),
        warnings=(slow,) if took - still.seconds >= SLOW_NAME_SECONDS else (),
    )


def connection(gateway: Gateway) -> Verdict:
    """A TCP connection is accepted, at each address until one works."""
    host, port = gateway.route.hop
    begin = time.perf_counter()
    errors: list[tuple[str, OSError]] = []
    try:
        candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise CannotMeasure(say("{host} resolved before and does not now: {error}", host=host, error=error)) from error
    for family, kind, protocol, _, address in dict.fromkeys(candidates):
        with socket.socket(family, kind, protocol) as sock:
            sock.settimeout(gateway.connect_seconds)
            try:
                sock.connect(address)
            except OSError as error:
                errors.append((str(address[0]), error))
                continue
            warnings = tuple(
                say(
                    "{tried} does not accept connections ({reason}), {address} does",
                    tried=tried,
                    reason=_reason(error),
                    address=address[0],
                )
                for tried, error in errors
            )
            return passed(
                say(
                    "{hop_words} accepts at {address} port {port}",
                    hop_words=_hop_words(gateway),
                    address=address[0],
                    port=port,
                ),
                connect_ms=round((time.perf_counter() - begin) * 1000, 1),
                warnings=warnings,
            )
    return _unconnected(gateway, errors)


def tls(gateway: Gateway) -> Verdict:
    """The certificate is valid today, for this host, and from an issuer this machine trusts."""
    if not gateway.route.uses_tls:
        return skipped(
            say(
                "the address of the gateway is {route_origin}: no TLS is spoken, and the key travels in clear",
                route_origin=gateway.route.origin,
            )
        )
    host = gateway.route.host
    proxy = gateway.route.proxy
    if proxy is not None and proxy.scheme != "http":
        return skipped(
            say(
                "a tunnel through {proxy} is not looked into; the certificate is still verified with each request",
                proxy=proxy.shown,
            )
        )
    begin = time.perf_counter()
    try:
        context = tls_context(gateway.environ)
    except OSError as error:
        raise CannotMeasure(
            say("the certificates named by $SSL_CERT_FILE or $SSL_CERT_DIR cannot be read: {error}", error=error),
            likely=say("a path that is wrong or not readable for this user"),
            advice=say("correct or unset the variable"),
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
        say(
            "{version}, certificate for {names_text} valid until {until}",
            version=version,
            names_text=certificate.names_text,
            until=f"{certificate.until:%Y-%m-%d}",
        ),
        tls_version=version,
        issuer=certificate.issuer,
        days_left=round(certificate.days_left, 1),
        handshake_ms=round((time.perf_counter() - begin) * 1000, 1),
    )


def tls_lifetime(gateway: Gateway) -> Verdict:
    """The certificate does not end within the next weeks."""
    certificate = fetch_certificate(gateway)
    if certificate is None:
        raise CannotMeasure(say("the certificate of {host} could not be read again", host=gateway.route.host))
    left = say(
        "{days_left:.0f} days left, until {until}",
        days_left=certificate.days_left,
        until=f"{certificate.until:%Y-%m-%d}",
    )
    if certificate.days_left >= LIFETIME_DAYS:
        return passed(left)
    return failed(
        say("{left}, fewer than {lifetime_days}", left=left, lifetime_days=LIFETIME_DAYS),
        likely=say("its renewal did not run"),
        advice=say("renew it now: from that day on every request fails"),
    )


# --- words ---------------------------------------------------------------------------------------------------


def _hop_words(gateway: Gateway) -> str:
    proxy = gateway.route.proxy
    return say("the proxy {proxy}", proxy=proxy.shown) if proxy else say("the gateway")


def _unresolved(gateway: Gateway, host: str, error: OSError | UnicodeError) -> Verdict:
    proxy = gateway.route.proxy
    code = error.errno if isinstance(error, socket.gaierror) else None
    where = proxy.shown if proxy else say("base_url {base_url}", base_url=gateway.domain.base_url)
    again = {socket.EAI_AGAIN: True}.get(code or 0, False)
    if isinstance(error, UnicodeError):
        likely, advice = say("{host!r} is no valid host name", host=host), say("correct {where}", where=where)
    elif again:
        likely = say("no name server of this machine answers")
        advice = say("cat /etc/resolv.conf; getent hosts {host}; is the VPN or the management network up?", host=host)
    else:
        likely = say("a spelling mistake, or a name that only another network's servers know")
        advice = say(
            "getent hosts {host}; check {where}; is the VPN or the internal name server missing here?",
            host=host,
            where=where,
        )
    return failed(
        say(
            "{hop_words} host {host!r} does not resolve ({getattr})",
            hop_words=_hop_words(gateway),
            host=host,
            getattr=getattr(error, "strerror", None) or error,
        ),
        likely=likely,
        advice=advice,
        host=host,
    )


def _unconnected(gateway: Gateway, errors: list[tuple[str, OSError]]) -> Verdict:
    host, port = gateway.route.hop
    who = _hop_words(gateway)
    address, error = errors[-1]
    if all(isinstance(e, TimeoutError) or e.errno == errno.ETIMEDOUT for _, e in errors):
        likely = say("a firewall drops the packets, or the host is off")
        advice = say(
            "ping {address}; nc -vz -w 5 {address} {port} from here and from the gateway's own network",
            address=address,
            port=port,
        )
    elif any(e.errno == errno.ECONNREFUSED for _, e in errors):
        likely = say(
            "the host is up, but nothing listens on that port: the gateway is not running, or the port is wrong"
        )
        where = say("the proxy's address") if gateway.route.proxy else "base_url"
        advice = say("ss -ltnp | grep {port} on {host}; check the port in {where}", port=port, host=host, where=where)
    elif any(e.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EINVAL) for _, e in errors):
        likely = say("this machine has no route to that network, or the host is down")
        advice = say("ip route get {address}; is the VPN or the management network up?", address=address)
    elif any(e.errno in (errno.EACCES, errno.EPERM) for _, e in errors):
        likely = say("a rule on this machine or on the way forbids it")
        advice = say("nft list ruleset; ip route get {address}", address=address)
    else:
        likely = say("the network between refused it")
        advice = say("nc -vz -w 5 {address} {port}", address=address, port=port)
    tried = joined(
        "; ",
        (
            say("{where} port {port}: {reason}", where=where, port=port, reason=_reason(why))
            for where, why in errors[:4]
        ),
    )
    limit = (
        say(" within {connect_seconds:g} s", connect_seconds=gateway.connect_seconds)
        if isinstance(error, TimeoutError)
        else ""
    )
    return failed(
        say("{who} did not accept{limit}: {tried}", who=who, limit=limit, tried=tried),
        likely=likely,
        advice=advice,
        host=host,
        port=port,
    )


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError) or error.errno == errno.ETIMEDOUT:
        return say("no answer (timed out)")
    return (error.strerror or str(error)).lower()


_EXPIRED, _NOT_YET, _SELF_SIGNED, _SELF_SIGNED_CHAIN, _NO_ISSUER, _NO_LEAF_ISSUER = 10, 9, 18, 19, 20, 21
_WRONG_HOST, _WRONG_ADDRESS = 62, 64
"""X509_V_ERR_… codes of OpenSSL's x509_vfy.h."""


def _handshake_failed(gateway: Gateway, error: ssl.SSLError) -> Verdict:
    host = gateway.route.host
    now = say("this machine's clock says {now} UTC", now=f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M}")
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None
    certificate = fetch_certificate(gateway) if code is not None else None
    named = say("the certificate of {host}", host=host)
    if code == _EXPIRED:
        ended = say("on {until} UTC", until=f"{certificate.until:%Y-%m-%d %H:%M}") if certificate else "already"
        return failed(
            say("{named} expired {ended}", named=named, ended=ended),
            likely=say("it was not renewed; or the clock is wrong ({now})", now=now),
            advice=say("renew it on the gateway, then reload its web server; date -u to check the clock"),
        )
    if code == _NOT_YET:
        return failed(
            say("{named} is not valid yet", named=named)
            + (say(" (from {since} UTC)", since=f"{certificate.since:%Y-%m-%d %H:%M}") if certificate else ""),
            likely=say("the clock of this machine is behind: {now}", now=now),
            advice=say("date -u; chronyc tracking; set the clock"),
        )
    if code in (_WRONG_HOST, _WRONG_ADDRESS):
        names = certificate.names_text if certificate else say("other names")
        return failed(
            say("{named} is for {names}, not for {host}", named=named, names=names, host=host),
            likely=say("the certificate does not cover the name or IP address in base_url, or another server answers"),
            advice=say("put one of the certificate's names into base_url, or have it issued again with this one"),
        )
    if code in (_SELF_SIGNED, _SELF_SIGNED_CHAIN, _NO_ISSUER, _NO_LEAF_ISSUER):
        issuer = certificate.issuer if certificate else say("an unknown issuer")
        ended = (
            say(", and it expired on {until}", until=f"{certificate.until:%Y-%m-%d}")
            if certificate and certificate.days_left < 0
            else ""
        )
        return failed(
            say(
                "{named} comes from {issuer}, which this machine does not trust{ended}",
                named=named,
                issuer=issuer,
                ended=ended,
            ),
            likely=say(
                "the site's own issuer is not installed here, an intermediate certificate is missing on "
                "the server, or something between opens the TLS"
            ),
            advice=say("export SSL_CERT_FILE=/path/to/site-ca.pem, or install it with update-ca-certificates"),
        )
    return _protocol_failed(gateway, error)


_NOT_TLS = (
    "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE",
)  # fmt: skip


def _protocol_failed(gateway: Gateway, error: ssl.SSLError) -> Verdict:
    reason = error.reason or str(error)
    if reason in _NOT_TLS:
        return failed(
            say(
                "port {port} of {host} does not speak TLS ({reason})",
                port=gateway.route.port,
                host=gateway.route.host,
                reason=reason,
            ),
            likely=say("it is plain HTTP"),
            advice=say(
                "http:// instead of https:// in base_url {base_url}, or the TLS port", base_url=gateway.domain.base_url
            ),
        )
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        likely, advice = say("the gateway only speaks a TLS older than 1.2"), say("allow TLS 1.2 or 1.3 on the gateway")
    elif "UNRECOGNIZED_NAME" in reason or "HANDSHAKE_FAILURE" in reason:
        likely = say("the server has no certificate for this name, or no cipher in common")
        advice = say(
            "openssl s_client -connect {host}:{port} -servername {host}",
            host=gateway.route.host,
            port=gateway.route.port,
        )
    elif "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason:
        likely, advice = (
            say("the gateway demands a client certificate"),
            say("ask for an entry that takes the key alone"),
        )
    else:
        likely = say("the server and this machine found no common way to speak TLS")
        advice = say("openssl s_client -connect {host}:{port}", host=gateway.route.host, port=gateway.route.port)
    return failed(
        say("the handshake with {route_origin} failed: {reason}", route_origin=gateway.route.origin, reason=reason),
        likely=likely,
        advice=advice,
    )


def _handshake_cut(gateway: Gateway, error: OSError) -> Verdict:
    if isinstance(error, TimeoutError):
        return failed(
            say(
                "no handshake with {route_origin} within {connect_seconds:g} s: connected, then silence",
                route_origin=gateway.route.origin,
                connect_seconds=gateway.connect_seconds,
            ),
            likely=say("the port accepts but does not speak TLS, or a firewall looks into the connection and holds it"),
            advice=say(
                "openssl s_client -connect {host}:{port}; try http:// in base_url",
                host=gateway.route.host,
                port=gateway.route.port,
            ),
        )
    _, text = read_fault(error, began=False)
    return failed(
        say(
            "the connection to {route_origin} was closed during the handshake ({text})",
            route_origin=gateway.route.origin,
            text=text,
        ),
        likely=say("the port speaks no TLS, a firewall refuses this name, or the balancer has no backend"),
        advice=say(
            "openssl s_client -connect {host}:{port}; try http:// in base_url",
            host=gateway.route.host,
            port=gateway.route.port,
        ),
    )
