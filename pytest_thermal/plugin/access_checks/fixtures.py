"""Fixtures about the way in: domains, clients, access checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.plugin.active_bench import active_bench

if TYPE_CHECKING:
    import httpx

    from pytest_thermal.bench import Bench, Domain
    from pytest_thermal.plugin.access_checks.session import Access


@pytest.fixture(scope="session")
def domain(request: pytest.FixtureRequest, bench: Bench) -> Domain:
    """The scale-up domain under test; a test that uses it runs once for each domain of the bench."""
    wanted = getattr(request, "param", bench.domains[0].name)
    return next(domain for domain in bench.domains if domain.name == wanted)


@pytest.fixture
def access(request: pytest.FixtureRequest, domain: Domain) -> Access:
    """The access checks of a domain: `access.require("chat")` ends the test as that check ended."""
    from pytest_thermal.plugin.access_checks.session import Access, access_session

    return Access(access_session(request.config), request.node, domain.name)


@pytest.fixture(scope="session")
def api(pytestconfig: pytest.Config, bench: Bench, domain: Domain) -> Iterator[httpx.Client]:
    """An `httpx.Client` for the gateway: address, key, timeouts, and retries that never repeat a 401, 403 or 404."""
    from pytest_thermal.transport import client

    with client(**_settings(pytestconfig, bench, domain)) as made:
        made.event_hooks = {"request": [_versioned_once(domain.base_url)]}
        yield made


@pytest.fixture
def async_api(pytestconfig: pytest.Config, bench: Bench, domain: Domain) -> httpx.AsyncClient:
    """An `httpx.AsyncClient` for the gateway, as `api`; use it in `async with async_api:` or as it is."""
    from pytest_thermal.transport import async_client

    made = async_client(**_settings(pytestconfig, bench, domain), keep_alive=False)
    correct = _versioned_once(domain.base_url)

    async def correct_later(request: httpx.Request) -> None:
        correct(request)

    made.event_hooks = {"request": [correct_later]}
    # Nothing to close afterwards: each connection ends with its answer, in the event loop of the test.
    return made


def _versioned_once(base_url: str) -> Callable[[httpx.Request], None]:
    """`/v1/models` and `/models` mean the same to whoever writes a test: the version is in the base address already."""
    version = base_url.rsplit("/", 1)[-1]
    doubled = f"/{version}/{version}/"

    def correct(request: httpx.Request) -> None:
        if doubled in request.url.path:
            request.url = request.url.copy_with(path=request.url.path.replace(doubled, f"/{version}/", 1))

    return correct


def _settings(config: pytest.Config, bench: Bench, domain: Domain) -> dict[str, Any]:
    from pytest_thermal.transport import RetryRule

    return {
        "base_url": domain.base_url,
        "key": domain.key,
        "connect_seconds": bench.timeouts.connect_seconds,
        "read_seconds": bench.timeouts.read_seconds,
        "environ": active_bench(config).environ,
        "retry": RetryRule(
            max_attempts=bench.retry.max_attempts,
            backoff_seconds=bench.retry.backoff_seconds,
            patience_seconds=bench.timeouts.read_seconds,
        ),
    }
