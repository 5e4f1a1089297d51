"""From a judged fleet to its page in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_thermal.findings.fleet.judgement import FleetJudgement


def write_fleet_page(fleet: FleetJudgement, path: Path, *, redact: Callable[[str], str] = str) -> Path:
    return path
