"""From a run directory, or a log from elsewhere, to its page in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_thermal.findings import Judgement, limits_for, stretch, time_scale_of
from pytest_thermal.findings.run_facts import is_simulated, recorded_thresholds
from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.recording import Recording
from pytest_thermal.recording.layout import REPORT, RUN, sha256, write_atomically
from pytest_thermal.reporting.run_page.document import page_html
from pytest_thermal.reporting.run_page.subject import Subject
from pytest_thermal.reporting.run_page.words import Words


def subject_of(recording: Recording, *, told: Catalogue = IN_ENGLISH) -> Subject:
    """A recording as it was read, with its own summary; judged now by its own limits where it has none."""
    summary = recording.summary
    if summary is not None and isinstance(summary.get("findings"), list):
        scale = time_scale_of(summary)
        return Subject(
            recording=stretch(recording, scale),
            summary=summary,
            words=Words(told=told),
            fingerprint=_fingerprint(recording),
        )
    monitor, origin = recorded_thresholds(recording.facts)
    judgement = Judgement(
        recording,
        limits_for(monitor, origin=origin),
        time_scale=time_scale_of(recording.facts),
        simulated=is_simulated(recording.facts),
    )
    return judged_subject(judgement.recording, judgement.summary(), judged_now=True, told=told)


def judged_subject(
    recording: Recording, summary: Mapping[str, Any], *, judged_now: bool = False, told: Catalogue = IN_ENGLISH
) -> Subject:
    """A recording in the time of a real loop (``Judgement.recording``) and what was just concluded of it."""
    return Subject(
        recording=recording,
        summary=summary,
        words=Words(told=told),
        fingerprint=_fingerprint(recording),
        judged_now=judged_now,
    )


def write_page(subject: Subject, path: Path | None = None, *, redact: Callable[[str], str] = str) -> Path:
    """Write the page to ``path``, else into the run directory as ``report.html``; where it was written.

    It is a view and no part of the run: ``run.json`` holds no checksum of it, and it can be made anew at any time.

    Raises:
        OSError: It cannot be written.
    """
    target = path or subject.recording.path / REPORT
    write_atomically(target, page_html(subject, redact=redact).encode("utf-8", "replace"))
    return target


def _fingerprint(recording: Recording) -> str:
    run = recording.path / RUN
    return sha256(run) if recording.facts and run.is_file() else ""
