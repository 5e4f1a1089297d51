"""Reading a server's certificate, also one that does not verify, with the standard library alone."""

from __future__ import annotations

import base64
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote, urlsplit

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.model.said import say
from pytest_thermal.transport import Proxy

LONGEST_HEAD_BYTES = 16384
_PARTIAL_CHAIN = 0x80000
_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_… of OpenSSL's x509_vfy.h."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Names, issuer and dates of a certificate; dates in UTC."""

    names: tuple[str, ...]
    issuer: str
    since: datetime
    until: datetime

    @property
    def days_left(self) -> float:
        """Days from now until it ends; negative when it has."""
        return (self.until - datetime.now(timezone.utc)).total_seconds() / 86400

    @property
    def names_text(self) -> str:
        """The names it is for, the first few of them."""
        shown = ", ".join(self.names[:3]) or say("no name")
        return shown + (say(" and {count} more", count=len(self.names) - 3) if len(self.names) > 3 else "")

    @classmethod
    def of(cls, secure: ssl.SSLSocket) -> Certificate:
        """The verified peer certificate of an open TLS connection."""
        found: dict[str, Any] = secure.getpeercert() or {}
        alternatives = tuple(value for _, value in found.get("subjectAltName", ()))
        subject = {name: value for part in found.get("subject", ()) for name, value in part}
        issuer = {name: value for part in found.get("issuer", ()) for name, value in part}
        return cls(
            names=alternatives or ((subject["commonName"],) if "commonName" in subject else ()),
            issuer=issuer.get("organizationName") or issuer.get("commonName") or say("an issuer without a name"),
            since=_date(found.get("notBefore", "Jan  1 00:00:00 1970 GMT")),
            until=_date(found.get("notAfter", "Jan  1 00:00:00 1970 GMT")),
        )


@contextmanager
def tunnelled(gateway: Gateway) -> Iterator[socket.socket]:
    """A TCP connection to the gateway, through the proxy's CONNECT where one is in the way. Raises OSError."""
    with socket.create_connection(gateway.route.hop, timeout=gateway.connect_seconds) as sock:
        if gateway.route.proxy is not None:
            _connect_through(sock, gateway, gateway.route.proxy)
        yield sock


def fetch_certificate(gateway: Gateway) -> Certificate | None:
    """The certificate that the gateway shows, whether or not it verifies; None when it cannot be had.

    The standard library decodes only certificates that verified. So the certificate is fetched raw first, then
    trusted as its own anchor, its dates and host name unchecked, in a second handshake.
    """
    try:
        raw = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        raw.check_hostname = False
        raw.verify_mode = ssl.CERT_NONE
        with tunnelled(gateway) as sock, raw.wrap_socket(sock, server_hostname=gateway.route.host) as secure:
            shown = secure.getpeercert(binary_form=True)
        if not shown:
            return None
        decoding = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        decoding.check_hostname = False
        decoding.load_verify_locations(cadata=shown)
        decoding.verify_flags |= ssl.VerifyFlags(_PARTIAL_CHAIN | _NO_CHECK_TIME)
        with tunnelled(gateway) as sock, decoding.wrap_socket(sock, server_hostname=gateway.route.host) as secure:
            return Certificate.of(secure)
    except (OSError, ValueError):
        return None


def _connect_through(sock: socket.socket, gateway: Gateway, proxy: Proxy) -> None:
    host = f"[{gateway.route.host}]" if ":" in gateway.route.host else gateway.route.host
    target = f"{host}:{gateway.route.port}"
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    parts = urlsplit(proxy.url)
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        head += f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n"
    sock.sendall((head + "\r\n").encode())
    give_up = time.monotonic() + gateway.connect_seconds
    answer = b""
    # A byte at a time: what follows the head belongs to the tunnel.
    while not answer.endswith(b"\r\n\r\n") and len(answer) < LONGEST_HEAD_BYTES and time.monotonic() < give_up:
        byte = sock.recv(1)
        if not byte:
            break
        answer += byte
    line = answer.split(b"\r\n", 1)[0].decode("latin-1")
    if not re.match(r"HTTP/1\.\d 2\d\d", line):
        raise ProxyRefusedError(line or "nothing")


class ProxyRefusedError(OSError):
    """The proxy on the way did not open a tunnel; ``answer`` is its status line."""

    def __init__(self, answer: str) -> None:
        super().__init__(say("the proxy answered CONNECT with {answer!r}", answer=answer))
        self.answer = answer


def _date(text: str) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), tz=timezone.utc)
