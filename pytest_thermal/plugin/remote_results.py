"""What nodes that pytest-xdist reached over ssh have recorded: fetched when each has ended, piece by piece.

A worker's disk is not the controller's. When a worker has ended, the controller asks it, over the connection that is
there already, for its run directory and its Allure results. They come as one compressed stream of bounded pieces, each
asked for, so that neither side holds more than one of them; nothing is deleted over there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from pytest_thermal.model.said import say

PIECE_BYTES = 512 * 1024
_PATIENCE_SECONDS = 120.0
"""For the next piece: a slow disk and a slow line."""
_FREE_SECONDS = 60.0
"""Until a worker's process is done with its tests, and can be asked for something else."""
_SENDER = "from pytest_thermal.plugin.remote_results import send\nsend(channel)\n"
_RUN, _ALLURE = "run", "allure"


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What came from a node."""

    run: Path | None
    """Where its run directory lies now."""
    allure_files: int
    sent_bytes: int
    seconds: float
    was_here: bool = False
    """Whether the run was here already: both see one disk."""


# ----------------------------------------------------------------------------------------------------------- the node


def on_offer(run: Path | None, allure: Path | None, *, allure_before: Sequence[str] = ()) -> dict[str, Any]:
    """What a worker tells that it has: plain data. Of Allure's folder only what this session wrote."""
    names = names_in(allure) if allure is not None else ()
    return {
        "run": None if run is None else str(run.resolve()),
        "run_mark": "" if run is None else _mark(run),
        "allure": None if allure is None else str(allure.resolve()),
        "allure_names": sorted(set(names) - set(allure_before)),
    }


def send(channel: Any) -> None:
    """On the node, called by the controller over execnet: send what the order on the channel names."""
    order = channel.receive(_PATIENCE_SECONDS)
    out = cast("IO[bytes]", _Pieces(channel))
    with tarfile.open(fileobj=out, mode="w|gz", bufsize=PIECE_BYTES) as archive:
        for name, path in _files(order):
            with contextlib.suppress(FileNotFoundError):  # a file that another process was replacing
                archive.add(path, arcname=name, recursive=False)
    channel.send(b"")


def _files(order: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    if order["run"] is not None:
        run = Path(order["run"])
        for path in sorted(run.rglob("*")):
            if path.is_file() and not path.name.endswith(".tmp"):
                yield f"{_RUN}/{path.relative_to(run).as_posix()}", path
    for name in order["allure_names"]:
        yield f"{_ALLURE}/{name}", Path(order["allure"]) / name


class _Pieces:
    """A file that is written to the channel, a piece at a time, each once the last was taken."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def write(self, data: bytes) -> int:
        for start in range(0, len(data), PIECE_BYTES):
            self._channel.send(bytes(data[start : start + PIECE_BYTES]))
            self._channel.receive(_PATIENCE_SECONDS)
        return len(data)


# ----------------------------------------------------------------------------------------------------- the controller


def fetch(gateway: Any, offer: Mapping[str, Any], *, archive: Path, allure: Path | None) -> Fetched:
    """Bring what a worker offered; what is here already is left as it is.

    Raises:
        OSError: It could not be written here, or the connection is gone; nothing half of a run is left.
        tarfile.TarError: What came is damaged.
        ValueError: What came would lie elsewhere than where it belongs.
    """
    began_seconds = time.monotonic()
    here = _already(archive, offer)
    order = {**offer, "run": None} if here is not None else dict(offer)
    if allure is None:
        order["allure_names"] = []
    if order["run"] is None and not order["allure_names"]:
        return Fetched(run=here, allure_files=0, sent_bytes=0, seconds=0.0, was_here=here is not None)
    archive.mkdir(parents=True, exist_ok=True)
    incoming = Path(tempfile.mkdtemp(prefix=".fetching-", dir=archive))
    try:
        stream = _Incoming(_asked(gateway, order))
        files = _unpack(stream, incoming, allure)
        run = here
        if order["run"] is not None:
            run = _free_name(archive, PurePosixPath(order["run"]).name)
            (incoming / _RUN).rename(run)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
    return Fetched(
        run=run,
        allure_files=files,
        sent_bytes=stream.bytes,
        seconds=time.monotonic() - began_seconds,
        was_here=here is not None,
    )


def lost_result(folder: Path, node: str, message: str) -> None:
    """An Allure result for a node of which nothing came back: what was not measured must be seen to be missing."""
    now_milliseconds = int(time.time() * 1000)
    identity = hashlib.sha256(f"pytest-thermal lost node {node}".encode()).hexdigest()[:32]
    result = {
        "uuid": str(uuid.uuid4()),
        "historyId": identity,
        "testCaseId": identity,
        "name": f"node {node} was lost",
        "fullName": f"pytest_thermal.nodes#{node}",
        "status": "broken",
        "stage": "finished",
        "statusDetails": {"message": message},
        "start": now_milliseconds,
        "stop": now_milliseconds,
        "parameters": [{"name": "node", "value": node}],
        "labels": [{"name": "node", "value": node}, {"name": "epic", "value": "Nodes"}],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{result['uuid']}-result.json").write_text(json.dumps(result), encoding="utf-8")


def _asked(gateway: Any, order: Mapping[str, Any]) -> _First:
    """A channel on which the node begins to send. Its one thread may still be taking its session down."""
    deadline = time.monotonic() + _FREE_SECONDS
    while True:
        channel = gateway.remote_exec(_SENDER)
        channel.send(dict(order))
        first = _First(channel)
        try:
            first.look()
        except _RefusedError as error:
            if "deadlock" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return first


class _RefusedError(OSError):
    """The other side ended with an exception."""


class _First:
    """A channel whose first piece has come: that it was willing to send."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._first: list[bytes] = []

    def look(self) -> None:
        self._first.append(self.receive())

    def receive(self) -> bytes:
        if self._first:
            return self._first.pop()
        try:
            return cast("bytes", self._channel.receive(_PATIENCE_SECONDS))
        except self._channel.RemoteError as error:
            lines = str(error).strip().splitlines() or [say("no reason given")]
            raise _RefusedError(lines[-1]) from None
        except EOFError:
            raise OSError(say("the connection is gone")) from None

    def taken(self) -> None:
        self._channel.send(True)


class _Incoming:
    """The stream as a file to read from, once, to its end."""

    def __init__(self, channel: _First) -> None:
        self.bytes = 0
        self._channel = channel
        self._buffer = bytearray()
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        while not self._ended and (size < 0 or len(self._buffer) < size):
            self._more()
        size = len(self._buffer) if size < 0 else size
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    def drain(self) -> None:
        """To the end of it."""
        while not self._ended:
            self._more()

    def _more(self) -> None:
        piece = self._channel.receive()
        if not piece:
            self._ended = True
            return
        self.bytes += len(piece)
        self._buffer += piece
        self._channel.taken()


def _unpack(stream: _Incoming, incoming: Path, allure: Path | None) -> int:
    files = 0
    (incoming / _RUN).mkdir()
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|gz") as archive:
        for member in archive:
            parts = PurePosixPath(member.name).parts
            content = archive.extractfile(member) if member.isfile() else None
            if content is None or len(parts) < 2 or ".." in parts or parts[0] not in (_RUN, _ALLURE):
                raise ValueError(f"{member.name!r} is none of what was asked for")
            if parts[0] == _RUN:
                target = incoming.joinpath(*parts)
            elif allure is not None and len(parts) == 2:
                target = allure / parts[1]
                files += 1
            else:
                raise ValueError(f"{member.name!r} is none of what was asked for")
            target.parent.mkdir(parents=True, exist_ok=True)
            if parts[0] == _ALLURE and target.exists():
                continue
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)
            os.utime(target, (member.mtime, member.mtime))
    stream.drain()
    return files


def _already(archive: Path, offer: Mapping[str, Any]) -> Path | None:
    """The run, where this machine sees the node's disk."""
    if offer["run"] is None:
        return None
    run = archive / PurePosixPath(offer["run"]).name
    return run if offer["run_mark"] and _mark(run) == offer["run_mark"] else None


def _free_name(archive: Path, name: str) -> Path:
    run, number = archive / name, 1
    while run.exists():
        number += 1
        run = archive / f"{name}_{number}"
    return run


def _mark(run: Path) -> str:
    try:
        return hashlib.sha256((run / "run.json").read_bytes()).hexdigest()
    except OSError:
        return ""


def names_in(folder: Path) -> tuple[str, ...]:
    """Files that lie there."""
    try:
        return tuple(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return ()
