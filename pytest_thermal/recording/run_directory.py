"""A run directory in the hands of whoever runs the experiment: made before the recorder starts, completed after it."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_thermal.recording.append_file import AppendFile
from pytest_thermal.recording.clock import RunClock
from pytest_thermal.recording.disk import DiskSync
from pytest_thermal.recording.errors import RunDirectoryError
from pytest_thermal.recording.host import accelerators, drivers, host_facts, versions
from pytest_thermal.recording.layout import (
    EVENTS,
    FORMAT,
    REQUEST_COLUMNS,
    REQUESTS,
    RUN,
    SAMPLES,
    SUMMARY,
    json_line,
    json_text,
    read_run_json,
    run_name,
    sealed,
    unwritable,
    write_atomically,
)
from pytest_thermal.recording.run_state import CUT_OFF, PREPARED, RECORDING, is_recording

_MOST_NAMESAKES = 1000


@dataclass(frozen=True, kw_only=True)
class RequestRow:
    """One request of the load, as it stands in ``requests.csv``."""

    start_seconds: float
    """Unix time by the run's clock."""
    ttft_seconds: float | None = None
    """Until the first token; None where there was none."""
    latency_seconds: float | None = None
    """Until the end of the answer, or until it failed."""
    status: int | None = None
    """The HTTP status; None where there was no answer."""
    error: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    phase: str = ""
    domain: str = ""
    limit: str = ""
    """The limit that refused it; empty for none."""


class RequestsFile:
    """Writes ``requests.csv``: whole lines, each with one ``write()``. For one process."""

    def __init__(self, run: Path) -> None:
        path = run / REQUESTS
        is_new = not path.exists()
        self._file = AppendFile(path)
        if is_new:
            self._file.append(",".join(REQUEST_COLUMNS).encode() + b"\n")

    @property
    def trouble(self) -> str:
        """Why rows are waiting in memory, in words; empty while none is."""
        return self._file.trouble

    def append(self, *rows: RequestRow) -> None:
        """Add rows. Never raises for what a disk does."""
        self._file.append("".join(map(_request_line, rows)).encode("utf-8", "replace"))

    def close(self) -> None:
        """Write what waits, and close."""
        self._file.close()


def create_run(
    archive: Path,
    *,
    facts: Mapping[str, Any],
    settings: Mapping[str, bytes] | None = None,
    clock: RunClock | None = None,
    node: str | None = None,
    clock_offsets: Mapping[str, Any] | None = None,
) -> Path:
    """Make ``<archive>/<UTC start>_<host>`` with ``run.json`` and the bench files as used.

    ``facts`` go into ``run.json`` beside the host's and the versions: ``bench`` and whatever else makes runs
    comparable; ``node`` is what the machine is called instead of its host's name, also in the folder's name.
    ``clock_offsets`` are this machine's clock against others, by theirs.
    Neither they nor ``settings`` may hold a key (``Redactor.data``, ``copied_settings``).

    Raises:
        RunDirectoryError: It cannot be made or written there.
    """
    clock = clock or RunClock.start()
    host = host_facts(node=node)
    try:
        run = _made(archive, run_name(clock.unix_seconds, host["name"]))
        (run / SAMPLES).mkdir()
        content = {
            "format": FORMAT,
            "name": run.name,
            "state": PREPARED,
            "start_seconds": round(clock.unix_seconds, 3),
            "end_seconds": None,
            "clock": {
                "unix_seconds": clock.unix_seconds,
                "monotonic_seconds": clock.monotonic_seconds,
                "boot_id": host["boot_id"],
                "steps": [],
                **({"offsets": dict(clock_offsets)} if clock_offsets else {}),
            },
            "host": host,
            "versions": versions(),
            "drivers": drivers(),
            "accelerators": accelerators(),
            **facts,
            "sources": {},
            "sensors": [],
            "phases": [],
        }
        write_atomically(run / RUN, json_text(content))
        for file, text in (settings or {}).items():
            write_atomically(run / file, text)
    except OSError as error:
        raise unwritable(archive, error) from error
    return run


def run_clock(run: Path) -> RunClock:
    """The clock of a run of this boot; of another boot, one that starts now, since the old one cannot be carried on.

    Raises:
        RunDirectoryError: The folder is no run.
    """
    told = read_run_json(run).get("clock", {})
    try:
        if told["boot_id"] is not None and told["boot_id"] == host_facts()["boot_id"]:
            return RunClock(
                unix_seconds=float(told["unix_seconds"]), monotonic_seconds=float(told["monotonic_seconds"])
            )
    except (KeyError, TypeError, ValueError):
        pass
    return RunClock.start()


def write_summary(run: Path, summary: Mapping[str, Any]) -> None:
    """Write ``summary.json`` and seal the run anew.

    Raises:
        RunDirectoryError: It cannot be written, or the folder is no run.
    """
    try:
        write_atomically(run / SUMMARY, json_text(summary))
    except OSError as error:
        raise unwritable(run, error) from error
    seal(run)


def seal(run: Path) -> None:
    """Note the checksums of all files in ``run.json``, once nothing writes to the run any more.

    A run whose recorder died without a word is noted as cut off, at the last time that its files were written.

    Raises:
        RunDirectoryError: The folder is no run, goes on being recorded, or cannot be written.
    """
    facts = read_run_json(run)
    if is_recording(run):
        raise RunDirectoryError(f"{run}: is still being recorded", remedy="stop the recorder first")
    try:
        if facts.get("state") == RECORDING:
            end_seconds = _last_written(run, facts)
            facts.update(state=CUT_OFF, end_seconds=end_seconds, ended_because="the recorder died")
            for phase in facts.get("phases", []):
                if phase["end_seconds"] is None:
                    phase["end_seconds"] = max(end_seconds, phase["start_seconds"])
        DiskSync(run).sync()  # before anything says that it is all there
        write_atomically(run / RUN, json_text(sealed(run, facts)))
    except OSError as error:
        raise unwritable(run, error) from error


def add_event(run: Path, kind: str, *, time_seconds: float, **detail: object) -> None:
    """Add a line to ``events.jsonl`` of a run that no recorder writes to any more."""
    file = AppendFile(run / EVENTS)
    file.append(json_line({"time": round(time_seconds, 3), "kind": kind, **detail}))
    file.close()


def _made(archive: Path, name: str) -> Path:
    archive.mkdir(parents=True, exist_ok=True)
    for number in range(1, _MOST_NAMESAKES):
        run = archive / (name if number == 1 else f"{name}_{number}")
        with contextlib.suppress(FileExistsError):
            run.mkdir()
            return run
    raise FileExistsError(errno.EEXIST, "there are too many runs of this second", str(archive / name))


def _last_written(run: Path, facts: Mapping[str, Any]) -> float:
    """Unix time, by the run's clock, of the last sample: from the rows, since copies have other file times."""
    last_seconds = float(facts["start_seconds"])
    for path in (run / SAMPLES).glob("*.csv"):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 65536))
            for line in file.read().split(b"\n")[:-1]:
                with contextlib.suppress(ValueError):
                    last_seconds = max(last_seconds, float(line.partition(b",")[0]))
    return last_seconds


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _request_line(row: RequestRow) -> str:
    # By hand: `csv` takes as long for a row as the request took to send.
    status = "" if row.status is None else row.status
    prompt = "" if row.prompt_tokens is None else row.prompt_tokens
    completion = "" if row.completion_tokens is None else row.completion_tokens
    error = _cell(" ".join(row.error.split())) if row.error else ""
    return (
        f"{row.start_seconds:.6f},{_seconds(row.ttft_seconds)},{_seconds(row.latency_seconds)},{status},{error},"
        f"{prompt},{completion},{_cell(row.phase)},{_cell(row.domain)},{_cell(row.limit)}\n"
    )


_TO_QUOTE = re.compile(r'[,"\r\n]')


def _cell(text: str) -> str:
    """A cell of a CSV, quoted where it has to be."""
    if _TO_QUOTE.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text
