"""Which limit refused a request, from refusals as gateways word them (made up here)."""

from __future__ import annotations

import json

import httpx
import pytest

from pytest_thermal.access.limits import limit_met
from pytest_thermal.transport import Exchange


def refusal(body: object, status: int = 429, **headers: str) -> Exchange:
    told = httpx.Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return Exchange(
        method="POST", url="", status=status, reason="Too Many Requests", headers=told, body=json.dumps(body).encode()
    )


@pytest.mark.parametrize(
    "exchange, kind",
    [
        (refusal({"error": {"message": "limit reached: tokens per min (TPM): 1000", "type": "tokens"}}), "tokens"),
        (refusal({"error": {"message": "over 600 requests per minute"}}), "requests"),
        (
            refusal({"detail": "too fast"}, x_ratelimit_remaining_tokens="0", x_ratelimit_remaining_requests="7"),
            "tokens",
        ),
        (refusal({"error": {"message": "max parallel request limit"}}), "parallel"),
        (refusal({"error": {"message": "current rpm: 5, rpm limit: 5, current tpm: 1, tpm limit: 9"}}), "requests"),
        (refusal({"error": {"message": "you exceeded your current quota"}}), "money"),
        (refusal({"error": {"message": "slow down, rate limit"}}), "rate"),
        (refusal({}), "untold"),
        (refusal({"error": {"message": "rate limit of 10 QPS"}}, 503), "requests"),
        (refusal({"error": {"message": "engine crashed"}}, 503), ""),
        (refusal({"error": {"message": "tokens per minute"}}, 400), ""),
    ],
)
def test_the_limit_that_was_met(exchange: Exchange, kind: str) -> None:
    assert limit_met(exchange) == kind
