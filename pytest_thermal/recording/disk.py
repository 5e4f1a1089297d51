"""Forcing what was written onto the disk, so that a power cut costs no more than what came since."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from pytest_thermal.recording.layout import contents


class DiskSync:
    """Of one run directory: all of its files, whoever writes them, those that grew or are new since the last time.

    ``run.json`` is left out: it is synced whenever it is replaced.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._synced: dict[Path, tuple[int, int, int]] = {}
        self._synced_itself = False

    def sync(self) -> None:
        """Sync what is new. Waits for the disk, and says nothing of what it cannot: whoever writes has that trouble."""
        fresh: set[Path] = set()
        try:
            paths = list(contents(self._folder))
        except OSError:
            return
        for path in paths:
            with contextlib.suppress(OSError):
                # Before it is synced: what is written meanwhile is new the next time.
                status = path.stat()
                mark = status.st_ino, status.st_size, status.st_mtime_ns
                before = self._synced.get(path)
                if before == mark:
                    continue
                _synced(path, os.fdatasync)
                self._synced[path] = mark
                if before is None or before[0] != mark[0]:
                    fresh.add(path.parent)
        if not self._synced_itself:
            self._synced_itself = True
            fresh |= {self._folder, self._folder.parent}
        for folder in sorted(fresh):
            with contextlib.suppress(OSError):
                _synced(folder, os.fsync)


def _synced(path: Path, how: Callable[[int], None]) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        how(descriptor)
    finally:
        os.close(descriptor)
