"""What lies where in a run directory, and how its files are written so that a reader never sees half of one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_thermal.recording.errors import RunDirectoryError

FORMAT = 1
"""The format of run directories written here. A reader refuses a higher one."""

RUN = "run.json"
SEAL = "seal"
"""In ``run.json``: its own checksum."""
SAMPLES = "samples"
MISSING = "missing.jsonl"
REQUESTS = "requests.csv"
EVENTS = "events.jsonl"
SUMMARY = "summary.json"
REPORT = "report.html"
"""A view of the run and no part of it: made from the rest at any time, and so not sealed with it."""
SETTINGS = ("settings.json", "config.toml")

REQUEST_COLUMNS = (
    "start", "ttft", "latency", "status", "error", "prompt_tokens", "completion_tokens", "phase", "domain", "limit",
)  # fmt: skip
"""``start`` in unix seconds, ``ttft`` and ``latency`` in seconds; empty where there is none. ``domain`` is whose
gateway was asked, ``limit`` the limit that refused it (`access.limits`). Older runs lack these two."""

OWN = "recorder."
"""Columns of this prefix say how the sampling itself went; they are no sensors of the bench."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(text: str) -> str:
    """A text as a file's name: letters, digits, dots, dashes and underscores, not hidden and not empty."""
    return _UNSAFE.sub("_", text).strip("._") or "unnamed"


def run_name(start_seconds: float, host: str | None = None) -> str:
    """``20261130T093529Z_host``: the start in UTC and the machine's name."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(start_seconds))
    return f"{stamp}_{safe_name(socket.gethostname() if host is None else host)}"


def sample_file(source: str, segment: int) -> str:
    """The name of a source's segment within ``samples/``, counted from 1."""
    return f"{safe_name(source)}.csv" if segment == 1 else f"{safe_name(source)}.{segment}.csv"


def json_line(data: Mapping[str, Any]) -> bytes:
    """One line of a ``.jsonl`` file."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"


def json_text(data: Mapping[str, Any]) -> bytes:
    """A whole ``.json`` file."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8", "replace") + b"\n"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that every reader sees the old content or the new one, also after a power cut.

    Raises:
        OSError: It could not be written; the old content is still there.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def contents(folder: Path) -> Iterator[Path]:
    """Every file of a run but ``run.json``, its page, and what is being written, sorted."""
    yield from (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path not in (folder / RUN, folder / REPORT) and not path.name.endswith(".tmp")
    )


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """Checksums of all files of a run but ``run.json``, by their path within it."""
    return {path.relative_to(folder).as_posix(): sha256(path) for path in contents(folder)}


def sealed(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What ``run.json`` says once nothing writes to the run any more: with the checksums of all files, and its own."""
    told: dict[str, Any] = {name: value for name, value in facts.items() if name != SEAL}
    told["sha256"] = checksums(folder)
    return {**told, SEAL: own_checksum(told)}


def own_checksum(facts: Mapping[str, Any]) -> str:
    """The checksum of what ``run.json`` says but for that checksum itself, however it is laid out."""
    told = json.loads(json_text({name: value for name, value in facts.items() if name != SEAL}))
    text = json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def samples_checksum(facts: Mapping[str, Any]) -> str:
    """One checksum for all samples of a sealed run: two runs that share it are one; empty where it has none."""
    sums = facts.get("sha256")
    told = (
        [f"{name} {text}" for name, text in sums.items() if str(name).startswith(f"{SAMPLES}/")]
        if isinstance(sums, Mapping)
        else []
    )
    return hashlib.sha256("\n".join(sorted(told)).encode()).hexdigest() if told else ""


def read_run_json(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says.

    Raises:
        RunDirectoryError: The folder is no run, the file is damaged, or of a format that is not known here.
    """
    path = folder / RUN
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _no_run(folder) from error
    except OSError as error:
        raise RunDirectoryError(
            f"{path}: cannot be read: {error.strerror}", remedy="run as the user who recorded it, or copy it"
        ) from error
    try:
        data: dict[str, Any] = json.loads(text)
        number = int(data["format"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        what = f"no {error} in it" if isinstance(error, KeyError) else str(error) if text.strip(b"\0 \r\n") else "empty"
        raise RunDirectoryError(
            f"{path}: damaged: {what}",
            likely="the disk was full or lost power, or the file was edited by hand",
            remedy=f"restore {RUN} from a backup; the samples can still be judged one by one: --replay "
            f"{folder / SAMPLES / '<source>.csv'}",
        ) from error
    if number > FORMAT:
        raise RunDirectoryError(
            f"{path}: format {number}, and this version reads up to {FORMAT}",
            likely=f"it was recorded by a newer version ({data.get('versions', {}).get('pytest-thermal', 'unknown')})",
            remedy="pip install --upgrade pytest-thermal",
        )
    return data


def unwritable(place: Path, error: OSError) -> RunDirectoryError:
    """What to tell of a run directory, or an archive, that cannot be written."""
    likely = {
        errno.EACCES: "the folder belongs to another user",
        errno.EPERM: "the folder belongs to another user",
        errno.EROFS: "it lies on a file system that is mounted read-only",
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "your quota on that disk is used up",
        errno.ENOTDIR: "a file stands where a folder is needed",
        errno.EEXIST: "a file stands where a folder is needed",
    }.get(error.errno or 0, "the disk or its mount has a fault")
    return RunDirectoryError(
        f"{error.filename or place}: cannot be written: {error.strerror or error}",
        likely=likely,
        remedy="--runs DIR with a folder of your own and room on its disk",
    )


def _no_run(folder: Path) -> RunDirectoryError:
    if not folder.exists():
        return RunDirectoryError(f"{folder}: there is nothing of that name", remedy="check the spelling")
    if not folder.is_dir():
        return RunDirectoryError(f"{folder}: this is a file, not a run directory")
    runs = sorted(path.parent.name for path in folder.glob(f"*/{RUN}"))
    if runs:
        return RunDirectoryError(
            f"{folder}: no {RUN} in it",
            likely=f"this is an archive that holds {len(runs)} run{'' if len(runs) == 1 else 's'}, not a run",
            remedy=f"name one of them: {folder / runs[-1]}",
        )
    return RunDirectoryError(
        f"{folder}: no {RUN} in it", likely="this is no run directory", remedy="name the folder that a run wrote"
    )
