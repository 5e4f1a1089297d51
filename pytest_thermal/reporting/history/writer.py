"""From an archive to its history page in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.recording.layout import REPORT, write_atomically
from pytest_thermal.reporting.history.archive import Archive, RunEntry
from pytest_thermal.reporting.history.document import history_html

FILE = "history.html"


def history_file(archive: Path) -> Path:
    """Where an archive's page belongs: ``reports/history.html`` beside ``reports/runs``; of any other, within it."""
    return (archive.parent if archive.name == "runs" and archive.parent.name == "reports" else archive) / FILE


def write_history(
    archive: Archive, path: Path, *, redact: Callable[[str], str] = str, told: Catalogue = IN_ENGLISH
) -> Path:
    """Write the page; where it was written. Each run is linked to its own page, as seen from there.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = history_html(archive, link=_links_from(path), redact=redact, told=told)
    write_atomically(path, text.encode("utf-8", "replace"))
    return path


def _links_from(page: Path) -> Callable[[RunEntry], str | None]:
    def link(run: RunEntry) -> str | None:
        if not run.has_report:
            return None
        # Both real: a way up out of a link leads to where the link lies, not to where it points.
        return quote(os.path.relpath((run.path / REPORT).resolve(), page.parent.resolve()))

    return link
