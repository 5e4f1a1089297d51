"""Recorders under test: started with fakes, watched from outside, ended with the test."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from pytest_thermal.model.series import FloatArray
from pytest_thermal.recording import Recording, RunningRecorder, SourceOrder, create_run, start_recorder
from tests.support.patience import until

ROOT = Path(__file__).resolve().parents[2]


def recorder_of(
    archive: Path, *orders: SourceOrder, period_seconds: float = 0.1, startup_seconds: float = 90.0, **more: float
) -> RunningRecorder:
    """A recorder of those sources; stopped by whoever starts it."""
    return start_recorder(
        create_run(archive, facts={"bench": {"name": "test"}}),
        sources=orders,
        period_seconds=period_seconds,
        startup_seconds=startup_seconds,
        import_paths=[str(ROOT)],
        **more,  # type: ignore[arg-type]  # all further settings are numbers
    )


def rows(run: Path, name: str) -> list[str]:
    """Whole lines of a sample file but its header."""
    path = run / "samples" / name
    return path.read_text(encoding="utf-8").split("\n")[1:-1] if path.exists() else []


def slots(recording: Recording, source: str) -> FloatArray:
    """Which slots of the grid the rows of a source stand in, counted from its first."""
    timing = recording.timing[source]
    due = timing.time_seconds - np.nan_to_num(timing.lateness_ms) / 1000
    found: FloatArray = np.round((due - due[0]) / timing.period_seconds)
    return found


def children(process_id: int) -> list[int]:
    """Processes that this process started and that are there still."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]
    return []


def alive(process_id: int) -> bool:
    """Whether it runs, rather than being gone or a corpse that nobody has collected."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def soon_gone(processes: Collection[int]) -> list[int]:
    """Those of them that do not go: one that was killed needs a moment of the processor to end."""
    with contextlib.suppress(AssertionError):
        until(lambda: not any(alive(process) for process in processes))
    return [process for process in processes if alive(process)]


def answers(run: Path, name: str) -> Sequence[str]:
    """The first sensor's cells, but for slots in which it gave none."""
    return [cell for row in rows(run, name) if (cell := row.split(",")[1])]
