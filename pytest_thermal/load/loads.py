"""Several loads at once: started in order, stopped in reverse."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pytest_thermal.load.running import LoadEnded, LoadStatus, RunningLoad, start
from pytest_thermal.load.work import Work, WorkKind

if TYPE_CHECKING:
    from typing_extensions import Self


class Loads:
    """What loads the bench right now. Leaving the context stops all of it. Any thread may stop it."""

    def __init__(self, *, log_folder: Path | None = None, starter: Callable[..., RunningLoad] = start) -> None:
        self._log_folder = log_folder
        self._start = starter
        self._running: list[RunningLoad] = []
        self._changing = threading.Lock()
        self._phase = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> tuple[RunningLoad, ...]:
        """What was started and not stopped, also where it ended by itself."""
        return tuple(self._running)

    def start(self, works: Iterable[Work]) -> tuple[RunningLoad, ...]:
        """Start works in order.

        Raises:
            LoadError: One cannot be started; those started before it by this call are stopped again.
        """
        started: list[RunningLoad] = []
        try:
            for work in works:
                started.append(self.add(work))  # noqa: PERF401 - what was started before a failure is needed
        except BaseException:
            self._stop(started)
            raise
        return tuple(started)

    def add(self, work: Work) -> RunningLoad:
        """Start one more.

        Raises:
            LoadError: It cannot be started.
        """
        log = None
        if self._log_folder is not None:
            log = self._log_folder / f"load_{re.sub(r'[^a-z0-9]+', '-', work.tool.lower()).strip('-')}.log"
        load = self._start(work, log=log, phase=self._phase)
        with self._changing:
            self._running.append(load)
        return load

    def phase(self, name: str) -> None:
        """Requests that start from now on belong to this phase, also those of loads that are started later."""
        self._phase = name
        for load in self.running:
            load.phase(name)

    def statuses(self) -> tuple[tuple[Work, LoadStatus], ...]:
        """What each is doing."""
        return tuple((load.work, load.status()) for load in self.running)

    def lost(self) -> tuple[tuple[Work, LoadEnded], ...]:
        """Those that ended though nobody stopped them, with how."""
        return tuple((load.work, load.ended) for load in self.running if load.ended is not None)

    def stop(self, kinds: Collection[WorkKind] | None = None) -> tuple[tuple[Work, LoadEnded], ...]:
        """Take loads off, those of some kinds or all, within 2 s together; says how each ended. Never raises."""
        return self._stop([load for load in self.running if kinds is None or load.work.kind in kinds])

    def _stop(self, chosen: list[RunningLoad]) -> tuple[tuple[Work, LoadEnded], ...]:
        with self._changing:
            self._running = [load for load in self._running if load not in chosen]
        for load in reversed(chosen):
            load.ask_to_stop()  # so that they end side by side, within the time of one
        return tuple((load.work, load.stop()) for load in reversed(chosen))
