"""What of the processors' time the run's own loads had: a busy machine may be busy with something else."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_thermal.load import Loads, LoadUse
from pytest_thermal.load.cpu_quota import quota_cores

LONGEST_SECONDS, SHORTEST_SECONDS = 30.0, 2.0
"""Of a stretch that is accounted for."""
STRETCHES = 100
"""In the time under load, unless they would be longer or shorter than that."""

Book = Callable[[Mapping[str, object]], None]


@dataclass(kw_only=True)
class _Open:
    """A stretch that goes on."""

    begun: Mapping[int, LoadUse]
    """By the load's guard."""
    looks: int = 0
    stopped: int = 0


class CpuAccount:
    """Books, stretch by stretch, the CPU time of all loads while one of them is to keep cores busy.

    Each stretch becomes an event: ``seconds`` it lasted, ``cpu_seconds`` that the loads computed in it, the ``cores``
    that they were to keep busy, the share of looks at which a process of theirs ``stopped``, and the ``quota_cores``
    of the control group where it has a quota. Any thread may call; nothing here waits.
    """

    def __init__(
        self,
        loads: Loads,
        book: Book,
        *,
        loaded_seconds: float,
        cores: Callable[[], int] = lambda: len(os.sched_getaffinity(0)),
        quota: Callable[[], float | None] = quota_cores,
    ) -> None:
        self._loads = loads
        self._book = book
        self._stretch_seconds = min(max(loaded_seconds / STRETCHES, SHORTEST_SECONDS), LONGEST_SECONDS)
        self._cores = cores
        self._quota = quota
        self._open: _Open | None = None
        self._seen: dict[int, LoadUse] = {}
        self._guard = threading.Lock()

    def look(self) -> float | None:
        """Take note. Where a stretch ended now: the share of their cores' time that the loads had in it."""
        with self._guard:
            return self._look(at_once=False)

    def end_stretch(self) -> None:
        """What comes now is another phase, or no load any more."""
        with self._guard:
            self._look(at_once=True)
            self._open = None

    def _look(self, *, at_once: bool) -> float | None:
        running = self._loads.running
        used = {load.guard_id: use for load in running if (use := load.used) is not None}
        burners = [load for load in running if load.work.kind == "cpu" and load.work.workers]
        wanted = sum(load.work.workers or 0 for load in burners)
        main = next((used[load.guard_id] for load in burners if load.guard_id in used), None)
        if main is None:
            self._open = None
            return None
        if self._open is None:
            self._open = _Open(begun=used)
        stretch = self._open
        news = [load for load in burners if used.get(load.guard_id) != self._seen.get(load.guard_id)]
        self._seen = used
        if news:
            stretch.looks += 1
            stretch.stopped += any(used[load.guard_id].stopped for load in news if load.guard_id in used)
        begun = next((stretch.begun[load.guard_id] for load in burners if load.guard_id in stretch.begun), main)
        seconds = main.at_seconds - begun.at_seconds
        if seconds < (SHORTEST_SECONDS if at_once else self._stretch_seconds):
            return None
        cores = min(wanted, self._cores())
        rate = sum(_cores_used(stretch.begun.get(guard), use) for guard, use in used.items())
        quota = self._quota()
        self._book(
            {
                "seconds": round(seconds, 2),
                "cpu_seconds": round(rate * seconds, 2),
                "cores": cores,
                "stopped": round(stretch.stopped / stretch.looks, 3) if stretch.looks else 0.0,
                **({"quota_cores": round(quota, 2)} if quota is not None and quota < cores else {}),
            }
        )
        self._open = _Open(begun=used)
        return rate / cores


def _cores_used(begun: LoadUse | None, now: LoadUse) -> float:
    """Cores' worth of time between two looks; 0 of a load that came up meanwhile, whose start is not known."""
    if begun is None or now.at_seconds <= begun.at_seconds:
        return 0.0
    rate = (now.cpu_seconds - begun.cpu_seconds) / (now.at_seconds - begun.at_seconds)
    return rate if math.isfinite(rate) and rate > 0 else 0.0
