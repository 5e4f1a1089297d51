"""Retries with back-off: what is worth another try, and how long to wait before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import httpx
import tenacity

from pytest_thermal.transport.dates import http_date

RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""Answers that another try may change. 401, 403 and 404 are not among them: they stay wrong, and hammering a
gateway with a bad key gets it banned."""

RETRIED_ERRORS = (
    httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError,
)  # fmt: skip
"""Failures in which no answer began. A read timeout is not among them: the first request may still be at work,
and a second one doubles the load just when the gateway is slow."""


@dataclass(frozen=True, kw_only=True)
class RetryRule:
    """How often and how patiently to try: ``max_attempts`` tries in all, back-off doubling from ``backoff_seconds``.

    A ``Retry-After`` (seconds or date) or ``retry-after-ms`` is waited for as asked, up to ``patience_seconds``;
    a longer one ends the tries at once, since an earlier try would be refused and an endless wait looks like a hang.
    """

    max_attempts: int = 3
    backoff_seconds: float = 0.5
    patience_seconds: float = 120.0

    def worth_retrying(self, response: httpx.Response) -> bool:
        """Whether ``response`` may turn out better next time, within our patience."""
        if response.status_code not in RETRIED_STATUSES:
            return False
        asked = retry_after_seconds(response.headers)
        return asked is None or asked <= self.patience_seconds

    def wait_seconds(self, state: tenacity.RetryCallState) -> float:
        """Seconds to wait after the try in ``state``: what the gateway asked for, else exponential back-off."""
        outcome = state.outcome
        if outcome is not None and not outcome.failed:
            asked = retry_after_seconds(outcome.result().headers)
            if asked is not None:
                return asked
        backoff = tenacity.wait_exponential(multiplier=self.backoff_seconds, max=self.patience_seconds)
        return float(backoff(state))

    def policy(self) -> dict[str, Any]:
        """The same for `tenacity.Retrying` and `tenacity.AsyncRetrying`."""
        return {
            "stop": tenacity.stop_after_attempt(max(1, self.max_attempts)),
            "wait": self.wait_seconds,
            "retry": tenacity.retry_if_exception_type(RETRIED_ERRORS) | tenacity.retry_if_result(self.worth_retrying),
            "retry_error_callback": _last_outcome,
        }


class RetryingTransport(httpx.BaseTransport):
    """An httpx transport that tries again by a `RetryRule`; tells of it in ``response.extensions["attempts"]``."""

    def __init__(
        self, inner: httpx.BaseTransport, rule: RetryRule, *, sleep: Callable[[float], None] | None = None
    ) -> None:
        self._inner = inner
        self._policy = rule.policy() | ({"sleep": sleep} if sleep else {})

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send, and send again while it is worth it; the last answer or error is the caller's."""

        def close(state: tenacity.RetryCallState) -> None:
            if state.outcome is not None and not state.outcome.failed:
                state.outcome.result().close()

        request.read()  # a body from an iterator could be sent only once
        retrying = tenacity.Retrying(before_sleep=close, **self._policy)
        response: httpx.Response = retrying(self._inner.handle_request, request)
        response.extensions["attempts"] = retrying.statistics.get("attempt_number", 1)
        return response

    def close(self) -> None:
        """Close the transport underneath."""
        self._inner.close()


class AsyncRetryingTransport(httpx.AsyncBaseTransport):
    """`RetryingTransport` for `httpx.AsyncClient`."""

    def __init__(self, inner: httpx.AsyncBaseTransport, rule: RetryRule, *, sleep: Any = None) -> None:
        self._inner = inner
        self._policy = rule.policy() | ({"sleep": sleep} if sleep else {})

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send, and send again while it is worth it; the last answer or error is the caller's."""

        async def close(state: tenacity.RetryCallState) -> None:
            if state.outcome is not None and not state.outcome.failed:
                await state.outcome.result().aclose()

        await request.aread()  # a body from an iterator could be sent only once
        retrying = tenacity.AsyncRetrying(before_sleep=close, **self._policy)
        response: httpx.Response = await retrying(self._inner.handle_async_request, request)
        response.extensions["attempts"] = retrying.statistics.get("attempt_number", 1)
        return response

    async def aclose(self) -> None:
        """Close the transport underneath."""
        await self._inner.aclose()


def retry_after_seconds(headers: httpx.Headers, *, now: datetime | None = None) -> float | None:
    """Seconds that the answer asks us to wait: ``retry-after-ms``, else ``Retry-After`` (RFC 9110 §10.2.3).

    None where there is neither, or where it cannot be read. A date in the past is 0.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
    except ValueError:
        pass
    text = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        when = http_date(text)
    if when is None:
        return None
    return max(0.0, (when - (now or datetime.now(timezone.utc))).total_seconds())


def _last_outcome(state: tenacity.RetryCallState) -> Any:
    return state.outcome.result() if state.outcome is not None else None
