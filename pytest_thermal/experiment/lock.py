"""One machine is loaded by one run at a time: a lock that all users and processes of the machine share."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import stat
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pytest_thermal.bench.expand import ExpansionError, expand
from pytest_thermal.experiment.errors import BenchBusyError, ExperimentBrokenError
from pytest_thermal.model.said import say

if TYPE_CHECKING:
    from typing_extensions import Self

VARIABLE = "PYTEST_THERMAL_LOCK_DIR"
"""Overrides where the lock lies: for containers that each own a part of a machine."""
_PLACES = ("/run/lock", "/var/lock", "/tmp")  # noqa: S108 - shared by all users is what a lock must be
_FILE = "pytest-thermal.lock"


def lock_folder(environ: Mapping[str, str]) -> Path:
    """A folder that every user of the machine can write to.

    In what the variable says, `${THERMAL_NODE}` and the like are filled in, so that several virtual nodes of one
    machine can have a lock each by one setting for all; such a folder is made.

    Raises:
        ExperimentBrokenError: A variable in it is not set, or it cannot be made.
    """
    if environ.get(VARIABLE):
        return _named(environ[VARIABLE], environ)
    # By what the folder is and not by who asks: root may write everywhere, and would lock where nobody else looks.
    return next((Path(place) for place in _PLACES if _is_for_all(Path(place))), Path(_PLACES[-1]))


def _named(text: str, environ: Mapping[str, str]) -> Path:
    try:
        found = expand(text, environ)
        folder = Path(found.text)
        if found.names and not folder.is_dir():
            folder.mkdir(exist_ok=True)
            folder.chmod(0o1777)
    except ExpansionError as error:
        raise ExperimentBrokenError(f"${VARIABLE}: {error.seen}", likely=error.likely, remedy=error.remedy) from None
    except OSError as error:
        raise ExperimentBrokenError(
            say("{path}: cannot be made: {strerror}", path=text, strerror=error.strerror),
            likely=say("the folder that ${variable} names it in is not there, or not writable", variable=VARIABLE),
            remedy=say("make it, for all users of this machine"),
        ) from error
    return folder


def _is_for_all(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and mode & 0o1777 == 0o1777


class BenchLock:
    """Held by the run that loads this machine. The kernel releases it when the process ends, however it ends."""

    def __init__(self, folder: Path, *, what: str) -> None:
        self._path = folder / _FILE
        self._what = what
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take it.

        Raises:
            BenchBusyError: Another run holds it; the message names it.
            ExperimentBrokenError: There is no place for a lock that others would see.
        """
        try:
            descriptor = self._opened()
        except FileNotFoundError:
            raise ExperimentBrokenError(
                say("{parent}: there is no such folder for the lock", parent=self._path.parent),
                likely=say("${variable} names one that was not made", variable=VARIABLE),
                remedy=say("make it, for all users of this machine, or unset ${variable}", variable=VARIABLE),
            ) from None
        except OSError as error:
            raise ExperimentBrokenError(
                say("{path}: cannot be opened: {strerror}", path=self._path, strerror=error.strerror),
                likely=say("another user made it with other permissions, or the folder is not writable"),
                remedy=say(
                    "remove that file while no thermal run goes on, or set ${variable} to a folder of all users",
                    variable=VARIABLE,
                ),
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise BenchBusyError(
                say("this machine is being loaded by {holder}", holder=holder),
                likely=say("another thermal run, of another user or another xdist worker, is under way"),
                remedy=say("wait until it has ended, or end it; one machine is loaded by one run at a time"),
            ) from None
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(_self(self._what)).encode(), 0)

    def _opened(self) -> int:
        """The lock's file. Whoever comes first makes it, for all.

        What is there is opened without O_CREAT, which the kernel may refuse for another user's file in a sticky
        folder (fs.protected_regular).
        """
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(FileNotFoundError):
            return os.open(self._path, flags)
        try:
            descriptor = os.open(self._path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return os.open(self._path, flags)  # another run was faster
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o666)
        return descriptor

    def release(self) -> None:
        """Give it back; does nothing where it is not held."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _self(what: str) -> dict[str, object]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime())
    return {"pid": os.getpid(), "user": user, "since": started, "what": what, "program": Path(sys.argv[0]).name}


def _holder(descriptor: int) -> str:
    try:
        told = json.loads(os.pread(descriptor, 4096, 0))
        if told["pid"] == os.getpid():
            return say("this very session ({what}, since {since})", what=told["what"], since=told["since"])
        return say(
            "process {pid} of {user} since {since} ({what})",
            pid=told["pid"],
            user=told["user"],
            since=told["since"],
            what=told["what"],
        )
    except (ValueError, KeyError, TypeError, OSError):
        return say("another process")
