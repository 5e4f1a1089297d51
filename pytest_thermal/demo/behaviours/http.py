"""Faults of HTTP itself: they answer every request, or none."""
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Callable

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.wire import Answer, empty_answer, html_answer, http_date, login_page

from .base import Behaviour


class EveryRequest(Behaviour):
    """One answer to whatever is asked."""

    def __init__(self, answer: Callable[[], Answer]) -> None:
        self._answer = answer

    async def on_request(self, call: Call) -> Answer | None:
        """The one answer."""
        return self._answer()


class Silence(Behaviour):
    """Reads every request and never answers."""

    async def on_request(self, call: Call) -> Answer | None:
        """No answer."""
        return await call.hang()


class NotHttp(Behaviour):
    """Greets as sshd does, and hangs up on whoever speaks HTTP."""

    banner = b"SSH-2.0-OpenSSH_9.2\r\n"


class CutConnection(Behaviour):
    """Reads every request and closes the connection."""

    async def on_request(self, call: Call) -> Answer | None:
        """No answer, and no connection."""
        return await call.cut()


class Redirect(Behaviour):
    """Sends whoever comes to a login page of the same origin."""

    async def on_request(self, call: Call) -> Answer | None:
        """302, and the page that it leads to."""
        if call.path == "/login":
            return login_page()
        return empty_answer(302, location=f"/login?next={call.path}")


def bad_gateway() -> Answer:
    """What nginx says when nothing listens behind it."""
    return html_answer("502 Bad Gateway", status=502)


def unavailable() -> Answer:
    """Maintenance, with the end of it as a date."""
    return html_answer("503 Service Temporarily Unavailable", status=503, retry_after=http_date(120))


def gateway_timeout() -> Answer:
    """What nginx says when what is behind it does not answer."""
    return html_answer("504 Gateway Time-out", status=504)


def empty() -> Answer:
    """Success, and nothing in it."""
    return empty_answer(204)
