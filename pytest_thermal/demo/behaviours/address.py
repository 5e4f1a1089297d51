"""Faults of the way in: the address, the port, the certificate."""

from __future__ import annotations

from pytest_thermal.demo.wire import CertificateKind

from .base import Behaviour


class Unresolvable(Behaviour):
    """RFC 6761 keeps `.invalid` free: no resolver knows a name below it."""

    host = "gateway.invalid"


class Refused(Behaviour):
    """A socket that is bound and does not listen: the port stays ours and refuses."""

    listening = "refuses"


class SilentConnection(Behaviour):
    """The queue of connections to accept is full, so that the kernel drops more as firewalls do."""

    listening = "full"


class PlainForHttps(Behaviour):
    """The address says https, the port speaks http."""

    scheme = "https"


class Tls(Behaviour):
    """TLS with a certificate made on the spot."""

    scheme = "https"
    certificate: CertificateKind | None = "good"


class TlsExpired(Tls):
    """Valid until yesterday."""

    certificate = "expired"


class TlsWrongHost(Tls):
    """Issued to another host."""

    certificate = "wrong-host"


class TlsUnknownIssuer(Tls):
    """Issued by an authority that nobody was told of."""

    certificate = "unknown-issuer"


class PathTooDeep(Behaviour):
    """The address repeats the version."""

    url_path = "/v1/v1"


class PathTooShort(Behaviour):
    """The API lies one level deeper than the address says."""

    served_under = "/api/v1"
