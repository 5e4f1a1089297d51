"""The archive as a fixture hands it out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_thermal.recording import Recording


class Runs:
    """The run directories below a folder, the oldest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[Path]:
        yield from sorted(path.parent for path in self.folder.glob("*/run.json"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def open(self, name: str) -> Recording:
        """Read one of them.

        Raises:
            RecordingError: There is no such run, or it cannot be read.
        """
        from pytest_thermal.recording import read_run

        return read_run(self.folder / name)
