"""``python -m pytest_thermal.reporting.run_page RUN [--out FILE]``: the page of a run directory, or of a log."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_thermal.bench import Redactor
from pytest_thermal.model.catalogue import LANGUAGES, catalogue, language_of_locale
from pytest_thermal.recording import RecordingError, open_recording
from pytest_thermal.reporting.run_page.writer import subject_of, write_page


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and say where; 1 where it could not be, with why."""
    parser = argparse.ArgumentParser(
        prog="python -m pytest_thermal.reporting.run_page",
        description="Write the page of a run: verdict, curves, figures with limits, sampling, requests; one HTML file.",
    )
    parser.add_argument("run", type=Path, help="a run directory, or a CSV from elsewhere")
    parser.add_argument("--out", type=Path, help="where to write it; default: report.html in the run directory")
    parser.add_argument(
        "--lang", choices=LANGUAGES, default=language_of_locale(os.environ), help="default: the locale's, else en"
    )
    given = parser.parse_args(arguments)
    if given.out is None and not given.run.is_dir() and given.run.name != "run.json":
        print(f"{given.run}: a log is no folder to write into\ntry: --out report.html", file=sys.stderr)
        return 1
    try:
        page = write_page(
            subject_of(open_recording(given.run), told=catalogue(given.lang)), given.out, redact=Redactor().text
        )
    except RecordingError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"{error.filename}: cannot be written: {error.strerror}\ntry: --out with a place of your own",
            file=sys.stderr,
        )
        return 1
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        print(
            f"{given.run}: damaged: {type(error).__name__}: {error}\n"
            "likely: run.json or summary.json was edited by hand, or is of another program\n"
            "try: restore it from a backup; without summary.json the run is judged anew",
            file=sys.stderr,
        )
        return 1
    print(f"report: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
