"""Health: did the gateway stay up while all this was asked of it?"""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Access


@pytest.mark.critical
def test_http_health(access: Access) -> None:
    """The gateway stayed healthy while the suite ran (`health_check`)."""
    access.require_health()
