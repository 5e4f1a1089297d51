from __future__ import annotations

import pytest

from pytest_thermal.plugin.thermal_checks.extras import require_thermal_extra


def test_what_is_not_installed_is_told_with_the_way_to_get_it() -> None:
    with pytest.raises(
        pytest.UsageError, match=r"needs scipy, which is not installed\n.*\ntry: pip install 'pytest-the"
    ):
        require_thermal_extra(lambda name: name != "scipy")
    with pytest.raises(pytest.UsageError, match="needs numpy and scipy, which are not installed"):
        require_thermal_extra(lambda _: False)


def test_what_is_installed_is_used() -> None:
    require_thermal_extra(lambda _: True)
