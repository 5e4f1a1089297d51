"""Nodes that enter each phase together, by nothing but a folder that all of them see.

Presence counts, never a time: each node leaves empty files whose names say where it stands, so clocks that differ
change nothing, and a disk that is full of data still takes them. Times are told only as differences of what the disk
itself stamped, and only where it does.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_thermal.experiment.errors import ExperimentBrokenError
from pytest_thermal.model.said import joined, say
from pytest_thermal.recording.layout import safe_name, unwritable

WAIT_SECONDS = 120.0
"""How long the others are waited for, unless told otherwise."""
LOOK_SECONDS = 0.2
_QUIET_SECONDS = 1.0
"""Of waiting before a person is told of it: most waits are shorter."""
_STARTS_SECONDS = 30.0
"""After a phase began, for the others' word that they began it too."""
_SLACK_SECONDS = 3.0
"""By which a file may seem older or newer than the disk's own time: what a slow server makes of it."""
_HERE, _IN, _GONE = "here", "in", "gone"


@dataclass(frozen=True, kw_only=True)
class DiskClock:
    """This machine's clock against the one of the shared disk."""

    offset_seconds: float
    """System clock minus the disk's."""
    within_seconds: float
    """How far off that may be: it took so long to ask."""


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """How a phase was entered."""

    phase: str
    waited_seconds: float
    here: tuple[str, ...]
    missing: tuple[str, ...]
    """Nodes that were waited for in vain, now or before; those never heard of are counted in words."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Nodes that said that they do not go on, and why."""
    trouble: str = ""
    """Why the others could not be seen; empty where they could."""
    went_on: bool = False
    """Whether others had begun without this node."""

    @property
    def text(self) -> str:
        """In words, as a warning; empty where all of them are here."""
        parts = []
        if self.missing:
            names = joined(", ", self.missing)
            parts.append(say("without {names}, waited for {seconds:.0f} s", names=names, seconds=self.waited_seconds))
        for node, why in self.left.items():
            parts.append(say("without {node}, which has left: {why}", node=node, why=why or say("it did not say why")))
        if self.went_on:
            parts.append(say("after others, which had waited long enough"))
        if self.trouble:
            parts.append(say("the shared folder could not be used: {trouble}", trouble=self.trouble))
        return say("{phase} is entered {how}", phase=self.phase, how=joined("; ", parts)) if parts else ""


@dataclass(frozen=True, kw_only=True)
class Starts:
    """When each node began a phase, in seconds after the first of them."""

    seconds: Mapping[str, float]
    differ_seconds: float | None
    """The last minus the first; None where the disk does not tell."""
    why_not: str = ""


class Together:
    """This node among the others of one run.

    All files are touched by a thread of its own: a disk that hangs hangs it alone, and whoever waits goes on at the
    deadline.
    """

    def __init__(
        self, folder: Path, *, node: str, count: int, names: Sequence[str] = (), wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.folder = folder
        self.node = safe_name(node)
        self.names = tuple(safe_name(name) for name in names)
        """Of all nodes, this one too; empty where only their number is known."""
        self.count = max(count, len(self.names))
        self.wait_seconds = wait_seconds
        self.clock: DiskClock | None = None
        self._board = _Board(folder, self.node)
        self._given_up: dict[str, None] = {}

    def begin(self) -> None:
        """Be there. Measures the clock against the disk's.

        Raises:
            ExperimentBrokenError: The folder holds this node's traces of another run.
            RunDirectoryError: It cannot be made or written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            seen = _seen(self.folder)
            asked = [_ask_disk(self.folder, self.node) for _ in range(3)]
        except OSError as error:
            raise unwritable(self.folder, error) from error
        self.clock = min(asked, key=lambda told: told.within_seconds)
        if any(mark.node == self.node for mark in seen):
            raise ExperimentBrokenError(
                say("{folder}: {node} was here before", folder=self.folder, node=self.node),
                likely=say("the folder is of an earlier run, or another node goes by the same name"),
                remedy=say(
                    "a new folder for each run (--together DIR), and $THERMAL_NODE where two machines share a name"
                ),
            )
        self._board.start()

    def meet(
        self, phase: str, *, pause: Callable[[float], None], tell: Callable[[str], None] = lambda _: None
    ) -> Meeting:
        """Say that this node is ready for a phase, and wait for the others; never longer than the deadline.

        Args:
            phase: What is about to begin.
            pause: Waits for so many seconds, and raises where there is nothing left to wait for.
            tell: Called once with words for a person, where it takes longer.
        """
        began_seconds = time.monotonic()
        self._board.put(f"{phase}.{self.node}.{_HERE}")
        self._board.look_often(self.wait_seconds + _QUIET_SECONDS)
        told = went_on = False
        others_began: float | None = None
        while True:
            seen = self._board.seen(phase)
            waited_seconds = time.monotonic() - began_seconds
            awaited, unknown = self._awaited(seen)
            complete = self.node in seen[_HERE] and not awaited and unknown <= 0
            if set(seen[_IN]) - {self.node} and others_began is None:
                others_began = waited_seconds
            # A folder is not read at one moment: only what is still so at another look is so.
            went_on = not complete and others_began is not None and waited_seconds - others_began > 2 * LOOK_SECONDS
            if complete or went_on or waited_seconds >= self.wait_seconds:
                break
            if not told and waited_seconds > _QUIET_SECONDS:
                told = True
                tell(
                    say(
                        "waiting for {who} to enter {phase}, at most {seconds:g} s",
                        who=_spoken(awaited, unknown),
                        phase=phase,
                        seconds=self.wait_seconds,
                    )
                )
            pause(min(LOOK_SECONDS, max(self.wait_seconds - waited_seconds, 0.01)))
        self._given_up |= dict.fromkeys(awaited)
        for name in seen[_HERE]:
            self._given_up.pop(name, None)
        gone = self._board.gone()
        lost = [name for name in self._given_up if name not in gone]
        return Meeting(
            phase=phase,
            waited_seconds=round(time.monotonic() - began_seconds, 3),
            here=tuple(sorted({*seen[_HERE], self.node})),
            missing=(*sorted(lost), *([_number(unknown)] if unknown > 0 else [])),
            left={name: why for name, why in sorted(gone.items()) if name not in seen[_HERE]},
            trouble=self._board.trouble,
            went_on=went_on,
        )

    def entered(self, phase: str) -> None:
        """Say that the phase has begun here."""
        self._board.put(f"{phase}.{self.node}.{_IN}")
        self._board.look_often(_STARTS_SECONDS)

    def starts(self, phase: str) -> Starts:
        """When the nodes began it, as far as is known by now. Waits for nothing."""
        times = self._board.seen(phase)[_IN]
        if self._board.foreign_times:
            return Starts(seconds={}, differ_seconds=None, why_not=self._board.foreign_times)
        if len(times) < 2:
            return Starts(seconds={}, differ_seconds=None, why_not="no other node's start is known")
        first = min(times.values())
        seconds = {name: round(at - first, 3) for name, at in sorted(times.items())}
        return Starts(seconds=seconds, differ_seconds=max(seconds.values()))

    def leave(self, because: str = "") -> None:
        """End. With a reason, which the others are told instead of waiting for this node. Waits for no disk."""
        if because:
            self._board.put(f"{self.node}.{_GONE}", because)
        self._board.stop()

    def _awaited(self, seen: Mapping[str, Mapping[str, float]]) -> tuple[tuple[str, ...], int]:
        """Who is still waited for: by name, and how many whose names are not known."""
        done = {*seen[_HERE], *self._board.gone(), *self._given_up}
        known = {*self.names, *self._board.nodes(), self.node}
        return tuple(sorted(known - done - {self.node})), self.count - len(known)


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Mark:
    """One file of the folder."""

    phase: str
    """Empty where it is about none."""
    node: str
    what: str
    written_seconds: float
    """By the disk's clock, where that is what stamps files."""


class _Board(threading.Thread):
    """Writes this node's marks and reads all of them, in a thread that may hang with the disk."""

    def __init__(self, folder: Path, node: str) -> None:
        super().__init__(name="thermal-together", daemon=True)
        self.trouble = ""
        self.foreign_times = ""
        """Why the times of marks are not the disk's; empty while they are, as far as is seen."""
        self._folder = folder
        self._node = node
        self._guard = threading.Condition()
        self._to_write: dict[str, str] = {}
        self._marks: dict[tuple[str, str, str], float] = {}
        self._reasons: dict[str, str] = {}
        self._often_until_seconds = 0.0
        self._ended = False
        self._last_look: float | None = None

    def put(self, name: str, text: str = "") -> None:
        """Have a mark written soon."""
        with self._guard:
            self._to_write[name] = text
            self._guard.notify()

    def look_often(self, seconds: float) -> None:
        """For so long; else only when there is something to write."""
        with self._guard:
            self._often_until_seconds = time.monotonic() + seconds
            self._guard.notify()

    def seen(self, phase: str) -> dict[str, dict[str, float]]:
        """Nodes that are ready for a phase, and that began it, with the time of their marks."""
        with self._guard:
            return {
                what: {node: at for (of, node, kind), at in self._marks.items() if (of, kind) == (phase, what)}
                for what in (_HERE, _IN)
            }

    def gone(self) -> dict[str, str]:
        """Nodes that do not go on, and why."""
        with self._guard:
            return {
                node: self._reasons.get(node, "")
                for _, node, what in self._marks
                if what == _GONE and node != self._node
            }

    def nodes(self) -> set[str]:
        """All nodes that were ever seen."""
        with self._guard:
            return {node for _, node, _ in self._marks}

    def stop(self) -> None:
        """Write what waits, and end; a disk that hangs is not waited for."""
        with self._guard:
            self._ended = True
            self._guard.notify()
        if self.is_alive():
            self.join(1.0)

    def run(self) -> None:
        """Look, whenever it is time."""
        while True:
            with self._guard:
                ended, writes = self._ended, dict(self._to_write)
            try:
                self._look(writes)
                self.trouble = ""
            except OSError as error:
                self.trouble = error.strerror or str(error)
            if ended:
                return
            with self._guard:
                if not self._ended:
                    often = time.monotonic() < self._often_until_seconds or bool(self._to_write)
                    self._guard.wait(LOOK_SECONDS if often else None)

    def _look(self, writes: Mapping[str, str]) -> None:
        for name, text in writes.items():
            _write_mark(self._folder / name, text)
            with self._guard:
                self._to_write.pop(name, None)
        # A folder that was changed from here is read anew from the server, not from this machine's memory of it.
        now_seconds = _touch(self._folder, self._node)
        before_seconds, self._last_look = self._last_look, now_seconds
        found = {(mark.phase, mark.node, mark.what): mark.written_seconds for mark in _seen(self._folder)}
        reasons = {node: _reason(self._folder / f"{node}.{_GONE}") for _, node, what in found if what == _GONE}
        with self._guard:
            fresh = {key: at for key, at in found.items() if key not in self._marks and key[1] != self._node}
            self._marks, self._reasons = found, reasons
        if before_seconds is None:
            return
        for (_, node, _), at in fresh.items():
            # It came since the last look, so its time lies between the two, if one clock stamps them all.
            if not before_seconds - _SLACK_SECONDS <= at <= now_seconds + _SLACK_SECONDS:
                off = at - now_seconds
                self.foreign_times = f"files of {node} bear its own time, {off:+.0f} s from the disk's as seen here"


def _seen(folder: Path) -> list[_Mark]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            parts = entry.name.split(".")
            what = parts[-1]
            if entry.name.startswith(".") or what not in (_HERE, _IN, _GONE):
                continue
            # A node's name may have dots in it, a phase's has none.
            phase, node = ("", parts[:-1]) if what == _GONE else (parts[0], parts[1:-1])
            with contextlib.suppress(FileNotFoundError):
                at = entry.stat().st_mtime
                found.append(_Mark(phase=phase, node=".".join(node), what=what, written_seconds=at))
    return found


def _write_mark(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        with contextlib.suppress(OSError):  # a full disk takes the name, and that is what counts
            os.write(descriptor, text.encode("utf-8", "replace"))
    finally:
        os.close(descriptor)


def _touch(folder: Path, node: str) -> float:
    """The disk's time now: that of a file made for the purpose."""
    path = folder / f".{node}.now"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def _ask_disk(folder: Path, node: str) -> DiskClock:
    before_seconds = time.time()
    disk_seconds = _touch(folder, node)
    after_seconds = time.time()
    return DiskClock(
        offset_seconds=round((before_seconds + after_seconds) / 2 - disk_seconds, 3),
        within_seconds=round((after_seconds - before_seconds) / 2 + 0.01, 3),  # file systems stamp by the tick
    )


def _reason(path: Path) -> str:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return lines[0][:200] if lines else ""


def _number(count: int) -> str:
    return say("1 node never heard of") if count == 1 else say("{count} nodes never heard of", count=count)


def _spoken(names: Sequence[str], unknown: int) -> str:
    return joined(", ", [*names, *([_number(unknown)] if unknown > 0 else [])]) or say("the shared folder")
