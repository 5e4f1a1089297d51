"""httpx clients for a gateway: its address, key, timeouts, retries, trust and proxy in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

import httpx
from pydantic import SecretStr

from pytest_thermal.transport import fast
from pytest_thermal.transport.auth import KeyAuth
from pytest_thermal.transport.deadline import DeadlineTransport
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

    Raises ImportError where the environment names a SOCKS proxy and `socksio` is not installed, ValueError where it
    names a proxy that is no address, and OSError where it names certificates that cannot be read.
    """
    route = route_to(base_url, environ)
    transport: httpx.BaseTransport = DeadlineTransport(**_connection(route, environ))
    if retry is not None:
        transport = RetryingTransport(transport, retry)
    return httpx.Client(
        transport=transport,
        mounts=_mounts(route),
        **_settings(base_url, key, connect_seconds, read_seconds, headers),
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
    keep_alive: bool = True,
) -> httpx.AsyncClient:
    """`client`, for `async with`.

    With ``keep_alive=False`` a connection is closed with its answer, so that none outlives the event loop it
    belongs to when the client is used without `async with`.
    """
    route = route_to(base_url, environ)
    transport = _async_transport(route, environ, keep_alive=keep_alive)
    if retry is not None:
        transport = AsyncRetryingTransport(transport, retry)
    return httpx.AsyncClient(
        transport=transport,
        mounts=_mounts(route),
        **_settings(base_url, key, connect_seconds, read_seconds, headers),
    )


def _async_transport(route: Route, environ: Mapping[str, str], *, keep_alive: bool) -> httpx.AsyncBaseTransport:
    connection = _connection(route, environ)
    if not keep_alive:
        connection["limits"] = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    stock = httpx.AsyncHTTPTransport(**connection)
    if fast.missing() or fast.cannot_take(route):
        return stock
    from pytest_thermal.transport.fast.httpx_transport import FastTransport  # noqa: PLC0415 - an extra

    return _ByLibrary(FastTransport(environ, keep_alive=keep_alive), stock)


class _ByLibrary(httpx.AsyncBaseTransport):
    """The load's own connections where asyncio runs the test; stock httpx, which knows trio, where it does not."""

    def __init__(self, ours: httpx.AsyncBaseTransport, stock: httpx.AsyncBaseTransport) -> None:
        self._ours = ours
        self._stock = stock

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._here().handle_async_request(request)

    async def aclose(self) -> None:
        await self._here().aclose()

    def _here(self) -> httpx.AsyncBaseTransport:
        try:
            return self._stock if asyncio.current_task() is None else self._ours
        except RuntimeError:
            return self._stock


class _NoTls(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Refuses: trust is costly to load and not loaded for plain http, and TLS without it would be open to anyone."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._refuse(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._refuse(request)

    def _refuse(self, request: httpx.Request) -> NoReturn:
        raise httpx.UnsupportedProtocol(
            f"this client is for {self._route.origin}, and the request goes to {request.url.scheme}://"
            f"{request.url.host}: set base_url to https if that is the gateway",
            request=request,
        )


def _mounts(route: Route) -> dict[str, _NoTls]:
    return {} if route.uses_tls else {"https://": _NoTls(route)}


def _connection(route: Route, environ: Mapping[str, str]) -> dict[str, Any]:
    proxy = route.proxy
    proxy_uses_tls = proxy is not None and proxy.scheme == "https"
    trust = tls_context(environ) if route.uses_tls or proxy_uses_tls else None
    return {
        "verify": trust or False,
        "limits": NO_LIMITS,
        "proxy": httpx.Proxy(proxy.url, ssl_context=trust if proxy_uses_tls else None) if proxy else None,
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
        "auth": KeyAuth(key, base_url=base_url) if key is not None else None,
        "timeout": httpx.Timeout(read_seconds, connect=connect_seconds),
        "headers": {"User-Agent": "pytest-thermal", **(headers or {})},
        "follow_redirects": False,
        # Proxy and trust were settled above; a .netrc must not replace the bench's key.
        "trust_env": False,
    }
