"""Puts the suites and the bench templates into the wheel, and keeps them out of editable installs."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = {
    "suites": "pytest_thermal/suites",
    "fixtures/benches": "pytest_thermal/benches",
}


class ShippedFolders(BuildHookInterface[Any]):
    """Adds the top-level folders that a user of the wheel needs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Forces the folders into a standard wheel; a missing one fails the build.

        An editable install sees them in the checkout. There a forced copy would go stale, shadow the real
        folder for ``--pyargs`` and switch off assertion rewriting in it.
        """
        if version == "standard":
            build_data["force_include"].update(SHIPPED)
