"""A run as one table, for a notebook or a data base: ``python -m pytest_thermal.reporting.export RUN --to FILE``.

``FILE`` ends in ``.csv`` (also ``.csv.gz``) or ``.parquet``; the requests of the load, where the run has any, go into
``FILE`` with ``.requests`` before its ending. RUN may also be a log from elsewhere, as with ``--replay``.

The table is tidy: one row a reading, with its phase, device, sensor and unit; an empty value is a missing reading, and
``missing`` says why. With ``--wide`` it has one row a time and one column a sensor instead.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.findings.run_facts import is_simulated
from pytest_thermal.model.series import Series
from pytest_thermal.model.told_error import ToldError
from pytest_thermal.recording import Recording, RecordingError, open_recording

Column = NDArray[Any]
Table = Mapping[str, Column]
"""Columns by name, all of one length: float64 with NaN where there is nothing, integers, booleans, or text."""

WHOLE = frozenset({"prompt_tokens", "completion_tokens"})


class ExportError(ToldError):
    """A run cannot be exported."""


def samples(recording: Recording) -> Iterator[Table]:
    """Tidy: one row a reading, a part for each sensor.

    ``time_seconds`` (unix time; from 0 on where a log has no date), ``time_utc`` (empty in that case), ``phase`` (empty
    between phases), ``device``, ``sensor``, ``unit``, ``value``, ``missing``, ``simulated``, ``run``.
    """
    for series in recording.series.values():
        size = len(series)
        yield {
            "time_seconds": series.time_seconds,
            "time_utc": _utc(series.time_seconds, known=recording.absolute_time),
            "phase": _phases(recording, series.time_seconds),
            "device": np.full(size, series.sensor.device),
            "sensor": np.full(size, series.sensor.id),
            "unit": np.full(size, str(series.sensor.unit)),
            "value": series.values,
            "missing": _missing(recording, series),
            **_of_run(recording, size),
        }


def wide(recording: Recording) -> Iterator[Table]:
    """One row a time, one column a sensor, named as its id. Sources that tick at other times have rows of their own."""
    times = np.unique(np.concatenate([series.time_seconds for series in recording.series.values()] or [np.empty(0)]))
    columns: dict[str, Column] = {
        "time_seconds": times,
        "time_utc": _utc(times, known=recording.absolute_time),
        "phase": _phases(recording, times),
    }
    for series in recording.series.values():
        column = np.full(times.size, np.nan)
        column[np.searchsorted(times, series.time_seconds)] = series.values
        columns[series.sensor.id] = column
    yield {**columns, **_of_run(recording, times.size)}


def requests(recording: Recording) -> Iterator[Table]:
    """The load's requests: one row each, in the order in which they ended; times in seconds."""
    found = recording.requests
    if found is None or not len(found):
        return
    yield {
        "start_seconds": found.start_seconds,
        "start_utc": _utc(found.start_seconds, known=recording.absolute_time),
        "phase": np.array(list(found.phase), dtype=str),
        "ttft_seconds": found.ttft_seconds,
        "latency_seconds": found.latency_seconds,
        "status": found.status,
        "error": np.array(list(found.error), dtype=str),
        "prompt_tokens": found.prompt_tokens,
        "completion_tokens": found.completion_tokens,
        "domain": np.array(list(found.domain), dtype=str),
        "limit": np.array(list(found.limit), dtype=str),
        **_of_run(recording, len(found)),
    }


@dataclass
class Exported:
    """What was written: files, with their rows."""

    rows: dict[Path, int] = field(default_factory=dict)


def export(recording: Recording, target: Path, *, as_wide: bool = False) -> Exported:
    """Write the tables of a run.

    Raises:
        ExportError: The ending is not known, pyarrow is missing, there is nothing to write, or it cannot be written.
    """
    write = _writer(target)
    if recording.path.is_dir() and target.resolve().is_relative_to(recording.path.resolve()):
        raise ExportError(
            f"{target}: lies in the run directory, which would then no longer be as it was when the run ended",
            remedy="--to FILE beside it",
        )
    if not any(len(series) for series in recording.series.values()):
        raise ExportError(
            f"{recording.path}: no reading in it",
            likely="the run ended before its first sample",
            remedy="pytest --sensors says what can be measured here",
        )
    done = Exported()
    for path, parts in (
        (target, wide(recording) if as_wide else samples(recording)),
        (_beside(target), requests(recording)),
    ):
        first = next(parts, None)
        if first is None:
            continue
        try:
            done.rows[path] = write(path, _chain(first, parts))
        except OSError as error:
            raise ExportError(
                f"{path}: cannot be written: {error.strerror or error}",
                likely="there is no such folder, it belongs to another user, or its disk is full",
                remedy="--to FILE in a folder of your own",
            ) from error
    return done


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pytest_thermal.reporting.export", description="A run as a table of samples, and its requests."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory, or a log from elsewhere")
    parser.add_argument("--to", type=Path, metavar="FILE", required=True, help="FILE.csv, FILE.csv.gz or FILE.parquet")
    parser.add_argument("--wide", action="store_true", help="one column a sensor instead of one row a reading")
    given = parser.parse_args(arguments)
    try:
        recording = open_recording(given.run)
        done = export(recording, given.to, as_wide=given.wide)
    except (RecordingError, ExportError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for note in recording.notes:
        sys.stderr.write(f"note: {note}\n")
    for path, rows in done.rows.items():
        sys.stdout.write(f"{path}: {rows:,} rows\n")
    return 0


# ---------------------------------------------------------------------------------------------------------------------


def _of_run(recording: Recording, size: int) -> dict[str, Column]:
    return {
        "simulated": np.full(size, is_simulated(recording.facts)),
        "run": np.full(size, recording.path.resolve().name),
    }


def _utc(seconds: NDArray[np.float64], *, known: bool) -> Column:
    """ISO 8601 with milliseconds."""
    if not known:
        return np.full(seconds.size, "")
    stamps = np.datetime_as_string((np.round(seconds * 1000)).astype("datetime64[ms]"), unit="ms")
    return np.char.add(stamps, "Z")


def _phases(recording: Recording, times: NDArray[np.float64]) -> Column:
    names = np.full(times.size, "", dtype="U16")
    for phase in recording.phases:
        names[(times >= phase.start_seconds) & (times < phase.end_seconds)] = phase.name
    return names


def _missing(recording: Recording, series: Series) -> Column:
    """Why each value that is not there is missing; ``unknown`` where nothing says so."""
    absent = np.flatnonzero(~series.present)
    reasons = [""] * len(series)
    for index in absent:
        why = recording.why_missing(series.sensor.id, float(series.time_seconds[index]))
        reasons[index] = str(why.reason) if why is not None else "unknown"
    return np.array(reasons, dtype=str)


def _chain(first: Table, more: Iterator[Table]) -> Iterator[Table]:
    yield first
    yield from more


def _beside(target: Path) -> Path:
    ending = "".join(target.suffixes[-2:]) if target.name.lower().endswith(".csv.gz") else target.suffix
    return target.with_name(f"{target.name.removesuffix(ending)}.requests{ending}")


def _writer(target: Path) -> Callable[[Path, Iterator[Table]], int]:
    name = target.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return _write_csv
    if name.endswith((".parquet", ".pq")):
        try:
            importlib.import_module("pyarrow.parquet")
        except ModuleNotFoundError as error:
            raise ExportError(
                f"{target}: writing Parquet needs pyarrow, which is not installed",
                remedy="pip install 'pytest-thermal[parquet]', or --to FILE.csv",
            ) from error
        return _write_parquet
    raise ExportError(
        f"{target}: {target.suffix or 'no ending'} is no format that is known here",
        remedy="--to FILE.csv, FILE.csv.gz or FILE.parquet",
    )


def _write_csv(path: Path, parts: Iterator[Table]) -> int:
    rows = 0
    with _text(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, part in enumerate(parts):
            if number == 0:
                writer.writerow(part)
            cells = [_cells(name, column) for name, column in part.items()]
            writer.writerows(zip(*cells, strict=True))
            rows += len(cells[0])
    return rows


def _text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "wt", encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


def _cells(name: str, column: Column) -> list[Any]:
    if column.dtype.kind != "f":
        return list(column.tolist())
    shown: Callable[[float], Any] = int if name in WHOLE else float
    return [shown(value) if value == value else "" for value in column.tolist()]  # noqa: PLR0124 - NaN is missing


def _write_parquet(path: Path, parts: Iterator[Table]) -> int:
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    rows, writer = 0, None
    try:
        for part in parts:
            table = pa.table({name: _array(pa, name, column) for name, column in part.items()})
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _array(pa: Any, name: str, column: Column) -> Any:
    """As pyarrow has it: NaN is null, tokens are whole, text that repeats is a dictionary."""
    if name in ("time_utc", "start_utc"):
        text = [cell.removesuffix("Z") or None for cell in column.tolist()]
        return pa.array(np.array(text, dtype="datetime64[ms]"), type=pa.timestamp("ms", tz="UTC"))
    if name in WHOLE:
        return pa.array(column, from_pandas=True).cast(pa.int64())
    if column.dtype.kind == "f":
        return pa.array(column, from_pandas=True)
    if column.dtype.kind == "U":
        return pa.array(column.tolist(), type=pa.string()).dictionary_encode()
    return pa.array(column)


if __name__ == "__main__":
    sys.exit(main())
