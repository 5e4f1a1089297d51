"""How a request gets to the gateway: straight, or through a proxy that the environment names."""

from __future__ import annotations

import ipaddress
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pytest_thermal.model.said import say

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

    Follows curl: the lower-case spelling wins, also when it is set to nothing, and ``$HTTP_PROXY`` in capitals counts
    too. Unlike curl, loopback is not sent through a proxy unless ``no_proxy`` is set and leaves it out: then the site
    said so. Raises ValueError, without quoting it, where a variable holds no usable address.
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
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    name = next((name for name in names if name in environ), None)
    value = environ[name].strip() if name else ""
    return _read_proxy(name, value) if name and value else None


def _read_proxy(name: str, value: str) -> Proxy:
    if "://" not in value:
        value = f"http://{value}"
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    else:
        if host and parts.scheme not in DEFAULT_PORTS:
            raise ValueError(
                say(
                    "${name} names a proxy of a kind that is not known: {scheme}://{host}",
                    name=name,
                    scheme=parts.scheme,
                    host=host,
                )
            )
    if not host:
        # The value is not shown: there may be a password in it.
        raise ValueError(say("${name} is no address of a proxy (expected: http://host:port)", name=name))
    return Proxy(url=value, variable=name, scheme=parts.scheme, host=host, port=port or DEFAULT_PORTS[parts.scheme])


def _bypassed(host: str, port: int, environ: Mapping[str, str]) -> bool:
    no_proxy = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    entries = [entry.removeprefix("*.") for entry in re.split(r"[\s,]+", no_proxy) if entry]
    if not no_proxy and (host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)):
        return True
    # The standard library's matcher (suffixes, ports); networks such as 10.0.0.0/8 are curl's addition.
    matches = urllib.request.proxy_bypass_environment  # type: ignore[attr-defined]
    if "*" in entries or matches(f"{_bracketed(host)}:{port}", {"no": ",".join(entries)}):
        return True
    if is_address(host):
        for entry in entries:
            try:
                if ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False):
                    return True
            except ValueError:
                continue
    return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
