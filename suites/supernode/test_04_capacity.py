"""Concurrency, quota, scheduler: do many at once get what one alone gets?"""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Access


@pytest.mark.critical
def test_concurrency(access: Access) -> None:
    """16 requests, 8 at a time, are all answered (`--probe-requests`, `--probe-workers`)."""
    access.require("concurrency")


@pytest.mark.critical
def test_concurrency_answers(access: Access) -> None:
    """Each answer is its own request's."""
    access.require("concurrency_answers")


@pytest.mark.critical
def test_concurrency_usage(access: Access) -> None:
    """The token counts of all answers add up."""
    access.require("concurrency_usage")


@pytest.mark.critical
def test_quota(access: Access) -> None:
    """One batch and this bench's concurrency fit the key's tokens and requests per minute (computed)."""
    access.require("quota")


def test_quota_tried(access: Access) -> None:
    """With `--probe-quota`: this bench's concurrency meets no limit for a while (tried)."""
    access.require("quota_tried")


@pytest.mark.critical
def test_scheduler(access: Access) -> None:
    """One alone, 8 and 16 in parallel are answered within `timeout_ms`."""
    access.require("scheduler")


@pytest.mark.critical
def test_scheduler_parallel(access: Access) -> None:
    """Parallel requests are served together, not one after another behind a single slot."""
    access.require("scheduler_parallel")
