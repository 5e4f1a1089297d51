"""How long this process itself stood still: what took long then is not the gateway's doing."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

BEAT_SECONDS = 0.02
LEAST_SECONDS = 0.05
"""A thread that comes so much later than it was due was held up; less than that is any machine's jitter."""


class Standstill:
    """Beats in a thread of its own while the context lasts, and adds up by how much its beats came late.

    It sees what holds up all of the process: Ctrl-Z, a machine that was suspended, processors that others keep busy.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        """Known once the context is left."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="thermal-standstill", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._over.wait(BEAT_SECONDS):
            last = self._note(last)
        self._note(last)

    def _note(self, last: float) -> float:
        now = time.monotonic()
        late_seconds = now - last - BEAT_SECONDS
        if late_seconds >= LEAST_SECONDS:
            self.seconds += late_seconds
        return now
