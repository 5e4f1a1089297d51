"""What must not hold up sampling or writing rows: forcing files onto the disk, and replacing ``run.json``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from pytest_thermal.recording.disk import DiskSync
from pytest_thermal.recording.layout import write_atomically


class Keeper:
    """A thread that syncs what was written every so often. A disk that hangs hangs only this thread."""

    def __init__(self, path: Path, *, sync_seconds: float) -> None:
        self.trouble = ""
        """Why the last try failed, in words; empty when it did not."""
        self._path = path
        self._sync_seconds = sync_seconds
        self._disk = DiskSync(path.parent)
        self._content: bytes | None = None  # also set from other threads
        self._last_words: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._keep, name="thermal-keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def replace(self, content: bytes) -> None:
        """Have ``run.json`` replaced soon; of several contents only the last is written."""
        with self._changed:
            self._content = content
            self._changed.notify()

    def finish(self, last_words: Callable[[], None], *, timeout_seconds: float) -> bool:
        """Write and sync what there is, call ``last_words`` there, and end; whether that was done in time."""
        with self._changed:
            self._last_words = last_words
            self._changed.notify()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _keep(self) -> None:
        while True:
            with self._changed:
                if self._content is None and self._last_words is None:
                    self._changed.wait(self._sync_seconds)
                content, self._content = self._content, None
                last_words = self._last_words
            self._disk.sync()
            if content is not None and not self._replace(content):
                with self._changed:
                    if self._content is None:
                        self._content = content
                    if last_words is None:
                        self._changed.wait(1.0)
            if last_words is not None:
                last_words()
                self._disk.sync()
                return

    def _replace(self, content: bytes) -> bool:
        try:
            write_atomically(self._path, content)
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return False
        self.trouble = ""
        return True
