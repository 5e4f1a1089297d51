"""What a package exports is what a user gets, whichever of its modules was imported before."""

from __future__ import annotations

import importlib
import pkgutil
import types

import pytest

import pytest_thermal

PACKAGES = sorted(
    found.name for found in pkgutil.walk_packages(pytest_thermal.__path__, "pytest_thermal.") if found.ispkg
)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_exported_name_is_hidden_by_a_module_of_that_name(name: str) -> None:
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "__main__":
            importlib.import_module(f"{name}.{module.name}")
    exported = {export: getattr(package, export) for export in getattr(package, "__all__", ())}
    assert [export for export, found in exported.items() if isinstance(found, types.ModuleType)] == []
