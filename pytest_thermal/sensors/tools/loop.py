"""A tool that prints its answer again and again: one process for a whole recording, instead of one for each reading.

A driver that nobody holds open is initialised anew by each call, which takes a second and warms what is measured.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections import deque
from collections.abc import Callable

_FLOOD_BYTES = 4_000_000
_LATE_PERIODS = 3.0
"""Without an answer for so many of its periods, it hangs."""
_START_SECONDS = 30.0
"""For the first: a driver may have to wake its devices."""
_KILL_SECONDS = 0.2


class LoopBrokenError(Exception):
    """It ended, hangs, or prints something else than it did."""


class Loop:
    """Reads what such a process prints: a header, then one line a device, round by round. Never waits for it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        period_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if process.stdout is None:
            raise ValueError("its output must be a pipe")
        os.set_blocking(process.stdout.fileno(), False)
        self.process = process
        self._period_seconds = period_seconds
        self._clock = clock
        self._buffer = b""
        self._header: bytes | None = None
        self._round: list[bytes] = []
        self._heard_seconds = clock()
        self._has_answered = False

    def newest(self, rows: int) -> bytes | None:
        """The last whole round since this was asked before, under the header; None where there is none.

        It is at most as old as the time since then, and of a tool that keeps its time one period.

        Raises:
            LoopBrokenError: There will be none any more, and why.
        """
        *lines, self._buffer = (self._buffer + self._drained()).split(b"\n")
        whole: deque[list[bytes]] = deque(maxlen=1)
        for line in lines:
            text = line.rstrip()
            if self._header is None:
                self._header = text or None
            elif text and text != self._header:
                if text.count(b",") != self._header.count(b","):
                    raise LoopBrokenError(f"printed {text[:120].decode('utf-8', 'replace')!r}")
                self._round.append(text)
                if len(self._round) == rows:
                    whole.append(self._round)
                    self._round = []
        now = self._clock()
        if whole and self._header is not None:
            self._heard_seconds, self._has_answered = now, True
            return b"\n".join([self._header, *whole[-1], b""])
        if self.process.poll() is not None:
            raise LoopBrokenError(f"ended with exit code {self.process.returncode}")
        patience_seconds = _LATE_PERIODS * self._period_seconds if self._has_answered else _START_SECONDS
        if now - self._heard_seconds > patience_seconds:
            raise LoopBrokenError(f"printed nothing for {now - self._heard_seconds:.0f} s")
        return None

    def close(self) -> bool:
        """Kill it; whether it is gone, as one that hangs in its driver is not."""
        with contextlib.suppress(OSError):
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_KILL_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return self.process.poll() is not None

    def _drained(self) -> bytes:
        stream = self.process.stdout
        taken = bytearray()
        while stream is not None and not stream.closed:
            try:
                data = os.read(stream.fileno(), 1 << 16)
            except BlockingIOError:
                break
            taken += data
            if not data:
                break
            if len(taken) > _FLOOD_BYTES:
                raise LoopBrokenError(f"printed more than {_FLOOD_BYTES:,} bytes at once")
        return bytes(taken)
