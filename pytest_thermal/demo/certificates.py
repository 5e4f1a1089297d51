"""Certificates made on the spot, for https that is right or wrong in one respect."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass

from .errors import DemoError
from .wire import CertificateKind


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What the server shows, and the authority (PEM) that a client must trust; `None` if that is a secret."""

    context: ssl.SSLContext
    authority: bytes | None


def make_certificate(kind: CertificateKind, *, fault: str, host: str) -> Certificate:
    """A certificate for `host`, or one that is wrong in the way of its kind.

    Raises:
        DemoError: trustme is not installed, or too old to set the dates of a certificate.
    """
    try:
        import trustme  # noqa: PLC0415 - an optional package
    except ImportError:
        raise _needs_trustme(fault, "it is not installed") from None
    now = dt.datetime.now(dt.timezone.utc)
    begin = now - dt.timedelta(days=90)
    end = now + dt.timedelta(days=-1 if kind == "expired" else 90)
    authority = trustme.CA(organization_name="pytest-thermal demo (simulated)")
    try:
        certificate = authority.issue_cert(
            "other.example" if kind == "wrong-host" else host, not_before=begin, not_after=end
        )
    except TypeError:
        raise _needs_trustme(fault, "the installed one is older") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return Certificate(context=context, authority=None if kind == "unknown-issuer" else authority.cert_pem.bytes())


def _needs_trustme(fault: str, seen: str) -> DemoError:
    return DemoError(
        f"demo fault {fault!r} needs trustme 1.2 or newer, to make a certificate: {seen}\n"
        "try: pip install 'trustme>=1.2'"
    )
