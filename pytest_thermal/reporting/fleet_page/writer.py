"""From a judged fleet to its page in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_thermal.findings.fleet.judgement import FleetJudgement
from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.recording.layout import write_atomically
from pytest_thermal.reporting.fleet_page.document import fleet_html


def write_fleet_page(
    fleet: FleetJudgement, path: Path, *, redact: Callable[[str], str] = str, told: Catalogue = IN_ENGLISH
) -> Path:
    """Write the page; links to nodes' own pages are relative to where it lies.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, fleet_html(fleet, folder=path.parent, redact=redact, told=told).encode("utf-8", "replace"))
    return path
