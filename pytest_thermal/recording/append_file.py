"""A file that grows by whole lines, each with one ``write()``, whatever the disk does."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from pathlib import Path

PENDING_LIMIT_BYTES = 4 * 1024 * 1024


class AppendFile:
    """Appends lines. What cannot be written now (full disk, quota, I/O error) waits in memory, in order.

    A line is one ``write()``, so a reader, or a kill at any moment, finds whole lines. A line that went in halfway
    because the disk filled up is taken out again. Nothing here syncs: see ``DiskSync``.
    """

    def __init__(self, path: Path, *, limit_bytes: int = PENDING_LIMIT_BYTES) -> None:
        self.path = path
        self.trouble = ""
        """Why lines are waiting, in words; empty while none is."""
        self.lost = 0
        """Lines given up because too much was waiting."""
        self._limit_bytes = limit_bytes
        self._descriptor: int | None = None
        self._size = 0
        self._separate = False
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0

    @property
    def waiting(self) -> int:
        """Lines that wait to be written."""
        return len(self._waiting)

    def append(self, lines: bytes) -> None:
        """Add one line, or several that belong together, each with its end. Never raises for what a disk does."""
        self._waiting.append(lines)
        self._waiting_bytes += len(lines)
        self.flush()
        while self._waiting_bytes > self._limit_bytes and len(self._waiting) > 1:
            self._waiting_bytes -= len(self._waiting[0])
            self.lost += self._waiting.popleft().count(b"\n")

    def flush(self) -> None:
        """Try again to write what waits."""
        while self._waiting:
            try:
                self._write(self._waiting[0])
            except OSError as error:
                self.trouble = error.strerror or str(error)
                return
            self._waiting_bytes -= len(self._waiting.popleft())
        self.trouble = ""

    def close(self) -> None:
        """Write what still can be, and close."""
        self.flush()
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def vanished(self) -> bool:
        """Whether somebody deleted the file: what is written to it now is lost."""
        if self._descriptor is None:
            return False
        try:
            return os.fstat(self._descriptor).st_nlink == 0
        except OSError:
            return False

    def _write(self, lines: bytes) -> None:
        descriptor = self._opened()
        # After a line that could not be taken out again, the next one must not continue it.
        data = b"\n" + lines if self._separate else lines
        written = os.write(descriptor, data)
        if written == len(data):
            self._separate = False
            self._size += written
            return
        try:
            os.ftruncate(descriptor, self._size)
        except OSError:
            self._separate = True
            self._size += written
        raise OSError("only part of a line fitted: the disk, or the limit for this file, is full")

    def _opened(self) -> int:
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o644)
            self._size = os.fstat(self._descriptor).st_size
            # Whoever wrote here before may have been killed on a disk that tears lines.
            self._separate = self._size > 0 and os.pread(self._descriptor, 1, self._size - 1) != b"\n"
        return self._descriptor
