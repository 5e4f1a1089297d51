"""The page of a fleet: one self-contained HTML file from a judged fleet."""

from __future__ import annotations

from pytest_thermal.reporting.fleet_page.writer import write_fleet_page

__all__ = ["write_fleet_page"]
