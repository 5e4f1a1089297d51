"""Faults that only requests at the same time bring out, and the quotas of a minute."""
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.chat import ChatRequest, Completion
from pytest_thermal.demo.limits import Refusal
from pytest_thermal.demo.wire import Answer, empty_answer, error_answer, html_answer, http_date, text_answer

from .base import Behaviour, Settings

if TYPE_CHECKING:
    import asyncio

_OVERLAP_SECONDS = 0.15
"""Shortest service under these faults, so that requests sent together overlap on a slow machine too."""
_PARTNER_SECONDS = 0.2


class Overlapping(Behaviour):
    """Serves slowly enough for requests to meet."""

    def settings(self, settings: Settings) -> Settings:
        """A first token that takes its time."""
        return replace(settings, service_seconds=max(settings.service_seconds, _OVERLAP_SECONDS))


class ParallelLimit(Overlapping):
    """So many requests at a time; `answer` is what the next one gets, made from the healthy answer."""

    def __init__(self, limit: int, answer: Callable[[Answer], Answer]) -> None:
        self._limit = limit
        self._answer = answer

    def settings(self, settings: Settings) -> Settings:
        """The limit."""
        return replace(super().settings(settings), parallel_limit=self._limit)

    async def on_limit(self, call: Call, refusal: Refusal, answer: Answer) -> Answer:
        """That answer."""
        return self._answer(answer)


class BurstDrop(Overlapping):
    """Connections beyond four are reset."""

    def settings(self, settings: Settings) -> Settings:
        """The limit."""
        return replace(super().settings(settings), parallel_limit=4)

    async def on_limit(self, call: Call, refusal: Refusal, answer: Answer) -> Answer:
        """No answer, and a reset."""
        return await call.cut(reset=True)


class Burst500(Overlapping):
    """Every fifth of the requests that come while others are in hand fails."""

    def __init__(self) -> None:
        self._met = 0

    async def on_chat(self, call: Call, chat: ChatRequest) -> Answer | None:
        """500 for the fifth."""
        if call.parallel < 2:
            return None
        self._met += 1
        if self._met % 5:
            return None
        return error_answer(500, "The server had an error processing your request.", type="server_error")


class Swapped(Overlapping):
    """Two requests at the same time get each other's answer."""

    def __init__(self) -> None:
        self._waiting: tuple[Completion, asyncio.Future[Completion]] | None = None

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """The partner's words and usage under this request's id."""
        import asyncio  # noqa: PLC0415 - importing the demo stays cheap

        if self._waiting is not None:
            partner, promised = self._waiting
            self._waiting = None
            if not promised.done():
                promised.set_result(completion)
                return _exchanged(completion, partner)
        if call.parallel < 2:
            return completion
        mine: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiting = (completion, mine)
        try:
            return _exchanged(completion, await asyncio.wait_for(mine, _PARTNER_SECONDS))
        except asyncio.TimeoutError:
            return completion
        finally:
            self._withdraw(mine)

    def _withdraw(self, promised: asyncio.Future[Completion]) -> None:
        if self._waiting is not None and self._waiting[1] is promised:
            self._waiting = None


class Duplicated(Overlapping):
    """A cache that looks at the model and the limit and not at the question."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, int | None, bool], Completion] = {}

    async def on_completion(self, call: Call, completion: Completion) -> Completion:
        """The first answer of its kind, again and again."""
        limit, stream = (call.chat.max_tokens, call.chat.stream) if call.chat else (None, False)
        return self._cache.setdefault((completion.model, limit, stream), completion)


class Quota(Behaviour):
    """Three requests a minute; `answer` is what the fourth gets."""

    def __init__(self, answer: Callable[[Refusal, Answer], Answer]) -> None:
        self._answer = answer

    def settings(self, settings: Settings) -> Settings:
        """The limit."""
        return replace(settings, requests_per_minute=3)

    async def on_limit(self, call: Call, refusal: Refusal, answer: Answer) -> Answer:
        """That answer."""
        return self._answer(refusal, answer)


class QuotaLow(Behaviour):
    """Announces a quota with every answer, and does not insist on it."""

    def headers(self) -> Mapping[str, str]:
        """The announcement."""
        return {"x-ratelimit-limit-requests": "3", "x-ratelimit-limit-tokens": "100"}


def _exchanged(own: Completion, partner: Completion) -> Completion:
    return replace(partner, id=own.id, created=own.created, model=own.model)


# How a limit on requests at a time is told.


def without_retry_after(answer: Answer) -> Answer:
    """The healthy 429, less the hint when to come again."""
    headers = {name: value for name, value in answer.headers.items() if name != "retry-after"}
    return replace(answer, headers=headers)


def burst_html(answer: Answer) -> Answer:  # noqa: ARG001 - a page of the proxy's own
    """429 as a page."""
    return html_answer("429 Too Many Requests", status=429)


def burst_timeout(answer: Answer) -> Answer:  # noqa: ARG001 - nothing is left of it
    """408 with nothing in it."""
    return empty_answer(408)


def burst_overload(answer: Answer) -> Answer:  # noqa: ARG001 - the proxy's own words
    """503 from a circuit breaker."""
    text = "upstream connect error or disconnect/reset before headers. reset reason: overflow"
    return text_answer(text, status=503, x_envoy_overloaded="true")


# How a quota is told.


def quota_plain(refusal: Refusal, answer: Answer) -> Answer:  # noqa: ARG001 - as a healthy gateway tells it
    """The healthy 429."""
    return answer


def quota_date(refusal: Refusal, answer: Answer) -> Answer:
    """The hint when to come again is a date."""
    date = http_date(refusal.retry_after_seconds or 0)
    return replace(answer, headers={**answer.headers, "retry-after": date})


def quota_bare(refusal: Refusal, answer: Answer) -> Answer:  # noqa: ARG001 - the proxy's own words
    """Plain text, and no hint."""
    return text_answer("local_rate_limited", status=429)
