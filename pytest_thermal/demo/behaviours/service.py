"""Faults of the scheduler, and of a gateway's health over time."""

from __future__ import annotations

from dataclasses import replace

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.wire import Answer, html_answer

from .base import Behaviour, Settings


class OneSlot(Behaviour):
    """One request after the other."""

    def settings(self, settings: Settings) -> Settings:
        """A single slot."""
        return replace(settings, slots=1, service_seconds=0.25)


class Slow(Behaviour):
    """Slow, however little there is to do."""

    def settings(self, settings: Settings) -> Settings:
        """One and a half seconds to the first token."""
        return replace(settings, service_seconds=1.5)


class Overload(Behaviour):
    """Slower with the square of the requests in hand."""

    def first_token_seconds(self, call: Call, seconds: float) -> float:
        """The healthy time for a lone request."""
        return seconds * call.parallel**2


class Flapping(Behaviour):
    """Unwell for a while: of the requests for models, four fail from the gateway's fifth request on."""

    def __init__(self) -> None:
        self._failures_left = 4

    async def on_request(self, call: Call) -> Answer | None:
        """503 while it lasts."""
        asks_for_models = call.method == "GET" and call.path.endswith("/models")
        if not asks_for_models or call.number < 5 or not self._failures_left:
            return None
        self._failures_left -= 1
        return html_answer("503 Service Temporarily Unavailable", status=503)


class Dies(Behaviour):
    """Gone after six requests."""

    lifetime_requests = 6
