"""How a request gets to the gateway: straight, or through a proxy that the environment names."""

from __future__ import annotations

import ipaddress
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A proxy and the variable that names it. ``url`` may hold a password: show ``shown`` instead."""

    url: str
    variable: str
    scheme: str
    host: str
    port: int

    @property
    def shown(self) -> str:
        """Address without credentials, with the variable it came from."""
        return f"{self.scheme}://{_bracketed(self.host)}:{self.port} (from ${self.variable})"

    def __repr__(self) -> str:
        return f"Proxy({self.shown})"


@dataclass(frozen=True, kw_only=True)
class Route:
    """Where the first connection goes, and what is asked for at its end."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None = None

    @property
    def origin(self) -> str:
        """``scheme://host:port`` of the gateway."""
        return f"{self.scheme}://{_bracketed(self.host)}:{self.port}"

    @property
    def hop(self) -> tuple[str, int]:
        """Host and port that the first TCP connection goes to: the proxy's, else the gateway's."""
        return (self.proxy.host, self.proxy.port) if self.proxy else (self.host, self.port)

    @property
    def uses_tls(self) -> bool:
        """Whether the gateway itself is spoken to over TLS."""
        return self.scheme == "https"


def route_to(url: str, environ: Mapping[str, str]) -> Route:
    """The route to ``url`` under ``environ``'s ``http_proxy``, ``https_proxy``, ``all_proxy`` and ``no_proxy``.

    Follows curl: the lower-case spelling wins, ``$HTTP_PROXY`` in capitals counts too, and loopback is never
    sent through a proxy unless ``no_proxy`` is set and leaves it out… in which case the site said so.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    scheme = parts.scheme or "http"
    port = parts.port or DEFAULT_PORTS.get(scheme, 80)
    return Route(scheme=scheme, host=host, port=port, proxy=_proxy_for(scheme, host, port, environ))


def is_address(host: str) -> bool:
    """Whether ``host`` is an IP address, so that no name needs to be resolved."""
    try:
        ipaddress.ip_address(host.split("%", 1)[0])
    except ValueError:
        return False
    return True


def _proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    if _bypassed(host, port, environ):
        return None
    for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"):
        value = environ.get(name, "").strip()
        if not value:
            continue
        if "://" not in value:
            value = f"http://{value}"
        parts = urlsplit(value)
        if not parts.hostname:
            continue
        return Proxy(
            url=value,
            variable=name,
            scheme=parts.scheme,
            host=parts.hostname,
            port=parts.port or DEFAULT_PORTS.get(parts.scheme, 8080),
        )
    return None


def _bypassed(host: str, port: int, environ: Mapping[str, str]) -> bool:
    no_proxy = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if not no_proxy and (host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)):
        return True
    # The standard library's matcher (suffixes, "*", ports); networks such as 10.0.0.0/8 are curl's addition.
    if urllib.request.proxy_bypass_environment(f"{_bracketed(host)}:{port}", {"no": no_proxy}):  # type: ignore[attr-defined]
        return True
    if is_address(host):
        for entry in no_proxy.split(","):
            try:
                if ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip(), strict=False):
                    return True
            except ValueError:
                continue
    return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
