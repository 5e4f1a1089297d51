"""HTTP, key, models: is it the gateway, does it take our key, and does it list our models?"""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Access


@pytest.mark.critical
def test_http(access: Access) -> None:
    """The gateway itself answers in HTTP: no proxy's page, no 5xx, no silence."""
    access.require("http")


@pytest.mark.critical
def test_key(access: Access) -> None:
    """The gateway takes this bench's key, and would not answer without it."""
    access.require("key")


@pytest.mark.critical
def test_models(access: Access) -> None:
    """`GET /v1/models` answers 200 with a list of models."""
    access.require("models")


@pytest.mark.critical
@pytest.mark.parametrize("route", ["default", "fallback"])
def test_models_route(access: Access, route: str) -> None:
    """The models of `model_route` are listed."""
    access.require(f"models_route_{route}")
