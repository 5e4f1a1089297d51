"""A bench, its gateway and the ladder of its checks, made in code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

sys.path.insert(0, str(Path(__file__).parents[2]))

from pytest_thermal.access import Gateway, Ladder, Ledger, Plan, burst, gateway
from pytest_thermal.access.probes import network
from pytest_thermal.bench import (
    Bench,
    Domain,
    HealthCheck,
    Inference,
    ModelRoute,
    RateLimit,
    Scheduler,
    Stress,
    Timeouts,
)
from tests.support.clock import Standing
from tests.support.patience import PATIENCE_SECONDS
from tests.transport.wire import Wire

if TYPE_CHECKING:
    from typing_extensions import Self

KEY = "sk-bench-7f3a9c1e5b2d8a6f4c0e9b7d5a3f1c8e"


def make_bench(
    url: str,
    *,
    key: str | None = KEY,
    default: str | None = "demo-chat",
    fallback: str | None = "demo-chat-mini",
    connect_seconds: float = PATIENCE_SECONDS,
    read_seconds: float = PATIENCE_SECONDS,
    timeout_ms: int = 60_000,
    batch_size: int = 16,
    concurrent_requests: int = 8,
    requests_per_minute: int | None = 6000,
    tokens_per_minute: int | None = 2_000_000,
    max_tokens: int = 256,
    interval_seconds: float = 30.0,
    endpoint: str = "/v1/models",
) -> Bench:
    return Bench(
        name="bench",
        domains=(
            Domain(
                name="east",
                base_url=url,
                key=SecretStr(key) if key is not None else None,
                key_origin="$BENCH_API_KEY" if key is not None else "none",
                route=ModelRoute(default=default, fallback=fallback),
            ),
        ),
        timeouts=Timeouts(connect_seconds=connect_seconds, read_seconds=read_seconds),
        scheduler=Scheduler(timeout_ms=timeout_ms, batch_size=batch_size),
        rate_limit=RateLimit(requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute),
        stress=Stress(concurrent_requests=concurrent_requests),
        inference=Inference(max_tokens=max_tokens),
        health_check=HealthCheck(enabled=True, interval_seconds=interval_seconds, endpoint=endpoint),
    )


class Unmoved:
    """In place of a `Standstill`: this machine never stands still."""

    seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Standing:
    """The clock of bursts stands still: how long this machine takes for one is not what these tests are about."""
    standing = Standing()
    monkeypatch.setattr(burst, "time", standing)
    for module in (burst, gateway, network):
        monkeypatch.setattr(module, "Standstill", Unmoved)
    return standing


@pytest.fixture
def make_ladder() -> Iterator[Callable[..., Ladder]]:
    """Makes the ladder of a bench that uses the gateway at a URL; the bench's settings are `make_bench`'s."""
    with ExitStack() as cleanup:

        def make(
            url: str,
            *,
            environ: Mapping[str, str] | None = None,
            plan: Plan | None = None,
            budget_tokens: int = 100,
            **settings: Any,
        ) -> Ladder:
            bench = make_bench(url, **settings)
            made = Gateway(
                bench, bench.domains[0], plan=plan or Plan(), ledger=Ledger(budget_tokens), environ=environ or {}
            )
            cleanup.callback(made.close)
            return Ladder(made)

        yield make


@pytest.fixture
def wire() -> Iterator[Callable[..., Wire]]:
    """Starts servers that say exact bytes; stopped with the test."""
    with ExitStack() as cleanup:
        yield lambda script, **settings: cleanup.enter_context(Wire(script, **settings))
