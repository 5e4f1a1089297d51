"""What a person sees while a thermal run goes on: one live line in a terminal, else plain lines now and then.

Standard error as it was before pytest captured it; an xdist worker, which has no terminal, leaves its lines in a file
that the controller shows.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model.said import joined, say
from pytest_thermal.plugin.columns import clipped
from pytest_thermal.plugin.keys import TERMINAL
from pytest_thermal.plugin.language import catalogue

if TYPE_CHECKING:
    from pytest_thermal.experiment import Notice, Progress

PLAIN_SECONDS = 30.0
"""Between two plain lines."""
LIVE_SECONDS = 0.5
PROGRESS_FILE = "progress-{worker}.log"
_CLEAR = "\r\x1b[K"


def live_view(config: pytest.Config) -> LiveView:
    """The view that fits where this process runs."""
    worker = getattr(config, "workerinput", None)
    quiet = config.get_verbosity() < 0
    if worker is not None:
        folder = worker.get("thermal_folder")
        path = Path(folder) / PROGRESS_FILE.format(worker=worker["workerid"]) if folder else None
        return LiveView(FileOutput(path), live=False, quiet=quiet, told=catalogue(config))
    descriptor = config.stash.get(TERMINAL, None)
    output = DescriptorOutput(descriptor)
    live = descriptor is not None and os.isatty(descriptor) and not os.environ.get("CI")
    return LiveView(output, live=live, quiet=quiet, told=catalogue(config))


class DescriptorOutput:
    """Writes to a descriptor; one that is gone takes nothing, and that is no fault of the run."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"

    def write(self, text: str) -> None:
        """Write it at once."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.write(self._descriptor, text.encode(self._encoding, "replace"))


class FileOutput:
    """Adds to a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, text: str) -> None:
        """Write it at once."""
        if self._path is not None:
            with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as file:
                file.write(text)


class LiveView:
    """Shows progress and notices. Called from one thread of the experiment and from the main one."""

    def __init__(
        self,
        output: DescriptorOutput | FileOutput,
        *,
        live: bool,
        quiet: bool,
        told: Callable[[str], str] = str,
    ) -> None:
        self._output = output
        self._live = live
        self._quiet = quiet
        self._in_words = told
        self._lock = threading.Lock()
        self._shown = False
        self._last_seconds = 0.0
        self._begun = False

    def tell(self, news: Progress | Notice) -> None:
        """Show it, if it is time."""
        from pytest_thermal.experiment import Notice

        with self._lock:
            if isinstance(news, Notice):
                self._notice(news)
            else:
                self._progress(news)

    def pause(self) -> None:
        """Leave the terminal to pytest."""
        with self._lock:
            self._clear()
            self._begun = False

    def close(self) -> None:
        """No more is shown."""
        self.pause()

    def _notice(self, notice: Notice) -> None:
        if self._quiet and notice.kind == "phase":
            return
        line = say("thermal: {text}", text=notice.text)
        if notice.kind == "warning":
            line = say("thermal: warning: {text}", text=notice.text)
        elif notice.kind == "critical":
            line = say("thermal: CRITICAL: {text}", text=notice.text)
        self._begin()
        self._clear()
        self._output.write(f"{self._in_words(line)}\n")
        self._last_seconds = 0.0 if self._live else time.monotonic()

    def _progress(self, progress: Progress) -> None:
        now_seconds = time.monotonic()
        if self._quiet or now_seconds - self._last_seconds < (LIVE_SECONDS if self._live else PLAIN_SECONDS):
            return
        self._last_seconds = now_seconds
        self._begin()
        line = self._in_words(progress_line(progress))
        if self._live:
            columns = shutil.get_terminal_size().columns - 1
            self._output.write(_CLEAR + clipped(line, columns))
            self._shown = True
        else:
            self._output.write(self._in_words(say("thermal: {text}", text=line)) + "\n")

    def _begin(self) -> None:
        """Pytest stands in the middle of a line of its own."""
        if not self._begun:
            self._begun = True
            self._output.write("\n")

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            self._output.write(_CLEAR)


def progress_line(progress: Progress) -> str:
    """One line: phase, time left, warnings, requests, hottest sensors; what 80 columns must show stands first."""
    left, whole = clock_time(progress.phase_left_seconds), clock_time(progress.left_seconds)
    parts = [say("{phase} {left} left, run {whole}", phase=progress.phase, left=left, whole=whole)]
    if progress.warnings:
        parts.append(say("1 warning") if progress.warnings == 1 else say("{count} warnings", count=progress.warnings))
    if progress.requests or progress.in_flight:
        failed = say(", {failed:,} failed", failed=progress.failed) if progress.failed else ""
        parts.append(say("{requests:,} requests{failed}", requests=progress.requests, failed=failed))
    elif progress.load:
        parts.append(progress.load)
    for hot in progress.hottest[:2]:
        name = hot.sensor.removesuffix(".temperature_celsius")
        rounded = 0 if hot.since_baseline_celsius is None else round(hot.since_baseline_celsius)
        since = "" if hot.since_baseline_celsius is None else f" ({rounded:+d})"
        parts.append(f"{name} {hot.celsius:.0f} °C{since}")
    return joined(" | ", parts)


def clock_time(seconds: float) -> str:
    """``1:02:03`` or ``02:03``."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes:02}:{left:02}"


class WorkerLines(threading.Thread):
    """On the controller: shows what workers left in their files."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        super().__init__(name="thermal-lines", daemon=True)
        self._output = DescriptorOutput(config.stash.get(TERMINAL, None))
        self._folder = folder
        self._ended = threading.Event()
        self._read: dict[Path, int] = {}

    def run(self) -> None:
        """Look once a second."""
        while not self._ended.wait(1.0):
            self.show()

    def show(self) -> None:
        """Show what is new."""
        for path in sorted(self._folder.glob(PROGRESS_FILE.format(worker="*"))):
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
                self._read[path] = file.tell()
                self._output.write(text.decode("utf-8", "replace"))

    def stop(self) -> None:
        """Show the rest and end."""
        self._ended.set()
        self.join(2.0)
        self.show()
