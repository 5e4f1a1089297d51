"""``python -m pytest_thermal.reporting.history RUNS [--out FILE]``: how an archive's benches change from run to run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_thermal.bench import Redactor
from pytest_thermal.model.catalogue import LANGUAGES, catalogue, language_of_locale
from pytest_thermal.reporting.history.archive import read_archive
from pytest_thermal.reporting.history.writer import history_file, write_history


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and say where, and what was left out; 1 where it could not be, with why."""
    parser = argparse.ArgumentParser(
        prog="python -m pytest_thermal.reporting.history",
        description="Write the history of an archive: rise and °C/W of each sensor over all runs; one HTML file.",
    )
    parser.add_argument("runs", type=Path, help="a folder of run directories: reports/runs")
    parser.add_argument("--out", type=Path, help="where to write it; default: history.html with the runs")
    parser.add_argument(
        "--lang", choices=LANGUAGES, default=language_of_locale(os.environ), help="default: the locale's, else en"
    )
    given = parser.parse_args(arguments)
    folder: Path = given.runs
    if not folder.is_dir():
        what = "this is a file, and no folder of run directories" if folder.exists() else "there is no such folder"
        print(f"{folder}: {what}\ntry: the folder that --runs names, reports/runs by default", file=sys.stderr)
        return 1
    if (folder / "run.json").is_file():
        print(f"{folder}: this is one run\ntry: the folder that holds it: {folder.resolve().parent}", file=sys.stderr)
        return 1
    try:
        archive = read_archive(folder)
        page = write_history(
            archive, given.out or history_file(folder), redact=Redactor().text, told=catalogue(given.lang)
        )
    except OSError as error:
        likely = "it belongs to another user, is read-only, or its disk is full"
        print(
            f"{error.filename}: {error.strerror}\nlikely: {likely}\ntry: --out with a place of your own",
            file=sys.stderr,
        )
        return 1
    for one in archive.left_out:
        print(f"left out: {one.name}: {one.why}", file=sys.stderr)
    count = len(archive.runs)
    print(f"history of {count} run{'' if count == 1 else 's'}: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
