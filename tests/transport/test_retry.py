"""Retries: what is tried again, how long is waited, and what the caller gets in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
import respx
from pydantic import SecretStr

from pytest_thermal.transport import RetryRule, client, retry_after_seconds
from pytest_thermal.transport.retry import AsyncRetryingTransport, RetryingTransport

URL = "http://gateway.test/v1/models"
NOW = datetime(2026, 11, 30, 7, 0, 0, tzinfo=timezone.utc)


class Bed:
    """The retrying transport over scripted answers, sync or async; nothing sleeps, the pauses are noted."""

    def __init__(self, answers: Sequence[httpx.Response | Exception], rule: RetryRule, *, use_async: bool) -> None:
        self._answers: Iterator[httpx.Response | Exception] = iter(answers)
        self._rule = rule
        self._use_async = use_async
        self.pauses: list[float] = []
        self.bodies: list[bytes] = []

    def send(self, method: str = "GET", **settings: Any) -> httpx.Response:
        return asyncio.run(self._asend(method, **settings)) if self._use_async else self._send(method, **settings)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.content)
        found = next(self._answers)
        if isinstance(found, Exception):
            raise found
        return found

    def _send(self, method: str, **settings: Any) -> httpx.Response:
        def handle(request: httpx.Request) -> httpx.Response:
            request.read()
            return self._answer(request)

        transport = RetryingTransport(httpx.MockTransport(handle), self._rule, sleep=self.pauses.append)
        with httpx.Client(transport=transport) as made:
            return made.request(method, URL, **settings)

    async def _asend(self, method: str, **settings: Any) -> httpx.Response:
        async def handle(request: httpx.Request) -> httpx.Response:
            await request.aread()
            return self._answer(request)

        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        transport = AsyncRetryingTransport(httpx.MockTransport(handle), self._rule, sleep=sleep)
        async with httpx.AsyncClient(transport=transport) as made:
            return await made.request(method, URL, **settings)


RULE = RetryRule(max_attempts=4, backoff_seconds=0.5, patience_seconds=60)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def use_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def refusal(status: int = 429, **headers: str) -> httpx.Response:
    return httpx.Response(status, headers={name.replace("_", "-"): value for name, value in headers.items()})


GOOD = 200


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(status: int, use_async: bool) -> None:
    bed = Bed([refusal(status), httpx.Response(GOOD)], RULE, use_async=use_async)
    answer = bed.send()
    assert answer.status_code == GOOD
    assert answer.extensions["attempts"] == 2
    assert bed.pauses == [0.5]


@pytest.mark.parametrize("status", [200, 204, 301, 400, 401, 402, 403, 404, 405, 413, 422, 501])
def test_what_stays_as_it_is_is_not_repeated(status: int, use_async: bool) -> None:
    bed = Bed([refusal(status)], RULE, use_async=use_async)
    answer = bed.send()
    assert answer.status_code == status
    assert answer.extensions["attempts"] == 1
    assert bed.pauses == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_of_the_key_is_not_repeated_whatever_it_says_of_waiting(status: int, use_async: bool) -> None:
    bed = Bed([refusal(status, retry_after="1")], RULE, use_async=use_async)
    assert bed.send().status_code == status
    assert bed.pauses == []


def test_the_pause_doubles(use_async: bool) -> None:
    bed = Bed([refusal(503)] * 3 + [httpx.Response(GOOD)], RULE, use_async=use_async)
    assert bed.send().status_code == GOOD
    assert bed.pauses == [0.5, 1.0, 2.0]


def test_the_pause_does_not_outgrow_the_patience(use_async: bool) -> None:
    rule = RetryRule(max_attempts=5, backoff_seconds=4, patience_seconds=10)
    bed = Bed([refusal(503)] * 5, rule, use_async=use_async)
    bed.send()
    assert bed.pauses == [4, 8, 10, 10]


@pytest.mark.parametrize("tries", [1, 0, -3])
def test_one_try_is_one_try(tries: int, use_async: bool) -> None:
    bed = Bed([refusal(503)], RetryRule(max_attempts=tries), use_async=use_async)
    assert bed.send().status_code == 503
    assert bed.pauses == []


def test_the_last_answer_is_the_callers(use_async: bool) -> None:
    answers: list[httpx.Response | Exception] = [refusal(500), refusal(502), refusal(503), refusal(429)]
    bed = Bed(answers, RULE, use_async=use_async)
    answer = bed.send()
    assert answer.status_code == 429
    assert answer.extensions["attempts"] == 4
    assert len(bed.pauses) == 3


def test_the_answers_in_between_are_closed(use_async: bool) -> None:
    sooner = refusal(503)
    Bed([sooner, httpx.Response(GOOD)], RULE, use_async=use_async).send()
    assert sooner.is_closed


@pytest.mark.parametrize("headers", [{"retry_after": "7"}, {"retry_after": "7.0"}, {"retry_after_ms": "7000"}])
def test_the_gateways_own_time_is_waited_for(headers: dict[str, str], use_async: bool) -> None:
    bed = Bed([refusal(429, **headers), httpx.Response(GOOD)], RULE, use_async=use_async)
    assert bed.send().status_code == GOOD
    assert bed.pauses == [7.0]


def test_a_date_is_waited_for(use_async: bool) -> None:
    when = datetime.now(timezone.utc) + timedelta(hours=1)
    rule = RetryRule(max_attempts=4, backoff_seconds=0.5, patience_seconds=3600)
    bed = Bed(
        [refusal(429, retry_after=format_datetime(when, usegmt=True)), httpx.Response(GOOD)], rule, use_async=use_async
    )
    assert bed.send().status_code == GOOD
    (pause,) = bed.pauses
    assert 0.5 < pause <= 3600


def test_a_date_in_the_past_is_now(use_async: bool) -> None:
    bed = Bed(
        [refusal(503, retry_after="Mon, 30 Nov 2020 07:14:48 GMT"), httpx.Response(GOOD)], RULE, use_async=use_async
    )
    assert bed.send().status_code == GOOD
    assert bed.pauses == [0.0]


@pytest.mark.parametrize("asked", ["61", "86400", "Mon, 30 Nov 2099 07:14:48 GMT", "inf", "1e300"])
def test_longer_than_our_patience_is_returned_at_once(asked: str, use_async: bool) -> None:
    bed = Bed([refusal(429, retry_after=asked)], RULE, use_async=use_async)
    answer = bed.send()
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == asked
    assert bed.pauses == []


@pytest.mark.parametrize("asked", ["soon", "", "Mon, 99 Nov 2026", "-"])
def test_a_time_that_cannot_be_read_is_no_time(asked: str, use_async: bool) -> None:
    bed = Bed([refusal(429, retry_after=asked), httpx.Response(GOOD)], RULE, use_async=use_async)
    assert bed.send().status_code == GOOD
    assert bed.pauses == [0.5]


@pytest.mark.parametrize(
    "error", [httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError]
)
def test_what_never_reached_an_answer_is_tried_again(error: type[Exception], use_async: bool) -> None:
    bed = Bed([error("no"), error("no"), httpx.Response(GOOD)], RULE, use_async=use_async)
    answer = bed.send()
    assert answer.status_code == GOOD
    assert answer.extensions["attempts"] == 3
    assert bed.pauses == [0.5, 1.0]


@pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ProxyError, httpx.LocalProtocolError])
def test_what_may_still_be_at_work_or_is_our_own_fault_is_not(error: type[Exception], use_async: bool) -> None:
    bed = Bed([error("no")], RULE, use_async=use_async)
    with pytest.raises(error):
        bed.send()
    assert bed.pauses == []


def test_the_last_error_is_the_callers_as_it_was(use_async: bool) -> None:
    errors: list[httpx.Response | Exception] = [httpx.ConnectError(str(number)) for number in range(4)]
    with pytest.raises(httpx.ConnectError, match="3"):
        Bed(errors, RULE, use_async=use_async).send()


def test_the_body_is_sent_again_whole(use_async: bool) -> None:
    bed = Bed([refusal(503), httpx.ReadError("cut"), httpx.Response(GOOD)], RULE, use_async=use_async)
    bed.send("POST", json={"model": "a"})
    assert bed.bodies == [b'{"model":"a"}'] * 3


def test_a_body_from_an_iterator_is_sent_again_whole(use_async: bool) -> None:
    def parts() -> Iterator[bytes]:
        yield from (b"one", b"two")

    async def async_parts() -> AsyncIterator[bytes]:
        for part in parts():
            yield part

    bed = Bed([refusal(503), refusal(503), httpx.Response(GOOD)], RULE, use_async=use_async)
    assert bed.send("POST", content=async_parts() if use_async else parts()).status_code == GOOD
    assert bed.bodies == [b"onetwo"] * 3


# --- reading the header --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 12 "}, 12.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after-ms": "1412", "retry-after": "2"}, 1.412),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "Mon, 30 Nov 2026 07:00:30 GMT"}, 30.0),
        ({"retry-after": "Monday, 30-Nov-26 07:00:30 GMT"}, 30.0),  # the older form that RFC 9110 still wants read
        ({"retry-after": "Mon, 30 Nov 2026 15:00:30 +0800"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 07:00:30"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 06:59:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 9999999999907:14:48 GMT"}, None),
        ({"retry-after": "in a minute"}, None),
    ],
)
def test_how_long_the_answer_asks_us_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(httpx.Headers(headers), now=NOW) == seconds


# --- through the client that users get -----------------------------------------------------------------------


SETTINGS: dict[str, Any] = {
    "base_url": "http://gateway.test/v1",
    "key": SecretStr("sk-test-0123456789"),
    "connect_seconds": 1.0,
    "read_seconds": 1.0,
    "environ": {},
    "retry": RetryRule(max_attempts=3, backoff_seconds=0.0),
}


@respx.mock
def test_the_client_retries_with_its_key() -> None:
    route = respx.get(URL).mock(
        side_effect=[httpx.Response(503), httpx.ConnectError, httpx.Response(GOOD, json={"data": []})]
    )
    with client(**SETTINGS) as made:
        answer = made.get("/models")
    assert answer.json() == {"data": []}
    assert answer.extensions["attempts"] == 3
    assert {call.request.headers["authorization"] for call in route.calls} == {"Bearer sk-test-0123456789"}


@respx.mock
@pytest.mark.parametrize("status", [401, 403, 404])
def test_the_client_asks_once_where_the_key_or_the_path_is_wrong(status: int) -> None:
    route = respx.get(URL).mock(return_value=httpx.Response(status))
    with client(**SETTINGS) as made:
        assert made.get("/models").status_code == status
    assert route.call_count == 1


@respx.mock
def test_without_a_rule_the_first_answer_stands() -> None:
    route = respx.get(URL).mock(return_value=httpx.Response(503))
    with client(**{**SETTINGS, "retry": None}) as made:
        assert made.get("/models").status_code == 503
    assert route.call_count == 1
