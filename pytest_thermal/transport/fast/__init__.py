"""HTTP/1.1 for loads: one connection for each request in flight, arrivals stamped before any task runs.

What httpx costs for a request is what a load of a thousand of them a second has in all. Needs `httptools`, and uses
`uvloop` where it is installed; `missing` says what is not there.
"""

from __future__ import annotations

import importlib.util

from pytest_thermal.transport.route import Route


def missing() -> str:
    """Why this cannot be used here; empty if it can."""
    return "" if importlib.util.find_spec("httptools") else "httptools is not installed"


def cannot_take(route: Route) -> str:
    """Why this way cannot be gone; empty if it can."""
    proxy = route.proxy
    if proxy is None or proxy.scheme == "http" or (proxy.scheme == "https" and not route.uses_tls):
        return ""
    return f"TLS within the TLS of {proxy.shown}" if proxy.scheme == "https" else f"SOCKS, for {proxy.shown}"
