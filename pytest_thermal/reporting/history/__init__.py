"""How a bench changes from run to run: every run of an archive on one page, from the runs' own summaries.

``read_archive`` is the cheap reader: it reads ``run.json`` and ``summary.json`` of each run and no sample.
"""

from __future__ import annotations

from pytest_thermal.reporting.history.archive import Archive, LeftOut, RunEntry, read_archive
from pytest_thermal.reporting.history.document import history_html
from pytest_thermal.reporting.history.writer import history_file, write_history

__all__ = ["Archive", "LeftOut", "RunEntry", "history_file", "history_html", "read_archive", "write_history"]
