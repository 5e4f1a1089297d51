"""The one HTTP seam: every request to a gateway leaves through here."""

from __future__ import annotations

from pytest_thermal.transport.auth import KeyAuth, unsendable
from pytest_thermal.transport.clients import async_client, client
from pytest_thermal.transport.exchange import Exchange, Fault, exchange
from pytest_thermal.transport.retry import RetryRule, retry_after_seconds
from pytest_thermal.transport.route import Proxy, Route, route_to
from pytest_thermal.transport.sse import StreamEvent, StreamExchange, stream_exchange
from pytest_thermal.transport.tls import tls_context

__all__ = [
    "Exchange",
    "Fault",
    "KeyAuth",
    "Proxy",
    "RetryRule",
    "Route",
    "StreamEvent",
    "StreamExchange",
    "async_client",
    "client",
    "exchange",
    "retry_after_seconds",
    "route_to",
    "stream_exchange",
    "tls_context",
    "unsendable",
]
