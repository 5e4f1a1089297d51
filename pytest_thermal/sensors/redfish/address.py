"""Where a Redfish service is, from what the bench file says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from pytest_thermal.model.said import say

_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")


@dataclass(frozen=True, kw_only=True)
class Address:
    """Scheme, host and port of one service."""

    scheme: str
    host: str
    port: int | None

    @property
    def url(self) -> str:
        """``https://10.0.0.20:8443``, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")

    @property
    def is_open(self) -> bool:
        """Whether whoever listens in between could read the password."""
        return self.scheme == "http" and not _LOOPBACK.fullmatch(self.host)

    def path_of(self, link: str) -> str | None:
        """The path, with its query, that a link of this service means; None where it leads elsewhere."""
        try:
            parts = urlsplit(link.strip())
            port = parts.port
        except ValueError:
            return None
        query = f"?{parts.query}" if parts.query else ""
        if not parts.netloc and not parts.scheme:
            return parts.path + query if parts.path.startswith("/") else None
        usual = {"https": 443, "http": 80}
        same = (parts.scheme, parts.hostname) == (self.scheme, self.host.casefold())
        ports = (port or usual.get(parts.scheme), self.port or usual.get(self.scheme))
        return (parts.path or "/") + query if same and ports[0] == ports[1] else None


def address(text: str) -> Address | str:
    """The service at ``10.0.0.20``, ``bmc-7.lab:8443``, ``https://…``; or what is wrong with it, in words."""
    whole = text.strip() if "://" in text else f"https://{text.strip()}"
    try:
        parts = urlsplit(whole)
        port = parts.port
    except ValueError as error:
        return say("redfish_host {text!r} is no address: {error}", text=text, error=error)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return say("redfish_host {text!r} is no address: a name or number, with :port where it is not 443", text=text)
    if parts.username or parts.password:
        return say(
            "redfish_host has a user or password in it: redfish_user is for the one, $REDFISH_PASSWORD for the other"
        )
    if parts.path.strip("/") not in ("", "redfish", "redfish/v1") or parts.query:
        return say("redfish_host {text!r} has a path: it is the host's address alone", text=text)
    return Address(scheme=parts.scheme, host=parts.hostname.casefold(), port=port)
