"""One page that tells a reviewer who was not at the bench what a run found: verdict, curves, figures, evidence.

A pure function of a recording and what was concluded of it (``page_html``), and what reads and writes files around it.
"""

from __future__ import annotations

from pytest_thermal.reporting.run_page.document import page_html
from pytest_thermal.reporting.run_page.subject import Subject
from pytest_thermal.reporting.run_page.writer import judged_subject, subject_of, write_page

__all__ = ["Subject", "judged_subject", "page_html", "subject_of", "write_page"]
