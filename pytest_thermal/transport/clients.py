"""httpx clients for a gateway: its address, key, timeouts, retries, trust and proxy in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from pydantic import SecretStr

from pytest_thermal.transport.auth import KeyAuth
from pytest_thermal.transport.retry import AsyncRetryingTransport, RetryingTransport, RetryRule
from pytest_thermal.transport.route import Route, route_to
from pytest_thermal.transport.tls import tls_context

# httpx's own limits (100 connections, 20 kept) silently cap what is sent at once.
NO_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)


def client(
    *,
    base_url: str,
    key: SecretStr | None,
    connect_seconds: float,
    read_seconds: float,
    environ: Mapping[str, str],
    retry: RetryRule | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Client:
    """A client for the gateway at ``base_url``; ``retry=None`` sends each request once, as a probe must.

    Raises ImportError where the environment names a SOCKS proxy and `socksio` is not installed.
    """
    transport: httpx.BaseTransport = httpx.HTTPTransport(**_connection(route_to(base_url, environ), environ))
    if retry is not None:
        transport = RetryingTransport(transport, retry)
    return httpx.Client(
        transport=transport, **_settings(base_url, key, connect_seconds, read_seconds, headers)
    )


def async_client(
    *,
    base_url: str,
    key: SecretStr | None,
    connect_seconds: float,
    read_seconds: float,
    environ: Mapping[str, str],
    retry: RetryRule | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.AsyncClient:
    """`client`, for `async with`."""
    transport: httpx.AsyncBaseTransport = httpx.AsyncHTTPTransport(
        **_connection(route_to(base_url, environ), environ)
    )
    if retry is not None:
        transport = AsyncRetryingTransport(transport, retry)
    return httpx.AsyncClient(
        transport=transport, **_settings(base_url, key, connect_seconds, read_seconds, headers)
    )


def _connection(route: Route, environ: Mapping[str, str]) -> dict[str, Any]:
    secure = route.uses_tls or (route.proxy is not None and route.proxy.scheme == "https")
    return {
        "verify": tls_context(environ) if secure else False,
        "limits": NO_LIMITS,
        "proxy": httpx.Proxy(route.proxy.url) if route.proxy else None,
    }


def _settings(
    base_url: str,
    key: SecretStr | None,
    connect_seconds: float,
    read_seconds: float,
    headers: Mapping[str, str] | None,
) -> dict[str, Any]:
    return {
        "base_url": base_url,
        "auth": KeyAuth(key) if key is not None else None,
        "timeout": httpx.Timeout(read_seconds, connect=connect_seconds),
        "headers": {"User-Agent": "pytest-thermal", **(headers or {})},
        "follow_redirects": False,
        # Proxy and trust were settled above; a .netrc must not replace the bench's key.
        "trust_env": False,
    }
