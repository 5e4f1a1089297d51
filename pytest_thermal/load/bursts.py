"""Compute bursts between requests: a helper process that burns for as long as any burst lasts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping, Sequence

READY_SECONDS = 120.0
"""A burner has to load its libraries, and a card its kernels."""
_AGAIN_SECONDS = 5.0


class Bursts:
    """Takes bursts of all slots side by side: while one lasts, it burns."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = command
        self._environ = {**os.environ, **environ}
        self._process: asyncio.subprocess.Process | None = None
        self._burning_until = 0.0
        self._start_again_at = 0.0
        self._starting = asyncio.Lock()
        self._ready = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._last_words = ""

    async def burn(self, seconds: float) -> str:
        """One burst; returns why there was none, or nothing."""
        trouble = await self._up()
        if trouble:
            return trouble
        now = time.monotonic()
        until = now + seconds
        # What burns already is not asked for again: bursts at the same time are one fire.
        added_seconds = until - max(now, self._burning_until)
        if added_seconds > 0:
            self._burning_until = until
            process = self._process
            if process is None or process.stdin is None or process.returncode is not None:
                return self._gone()
            process.stdin.write(f"{added_seconds:.3f}\n".encode())
        await asyncio.sleep(seconds)
        return "" if self._process is not None and self._process.returncode is None else self._gone()

    async def close(self) -> None:
        """End the helper."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._listening is not None:
            self._listening.cancel()

    async def _up(self) -> str:
        async with self._starting:
            if self._process is not None and self._process.returncode is None and self._ready.is_set():
                return ""
            now = time.monotonic()
            if now < self._start_again_at:
                await asyncio.sleep(min(1.0, self._start_again_at - now))
                return self._gone()
            await self.close()
            self._start_again_at = now + _AGAIN_SECONDS
            self._ready.clear()
            self._burning_until = 0.0
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    env=self._environ,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
            except OSError as error:
                self._last_words = error.strerror or str(error)
                return self._gone()
            self._listening = asyncio.create_task(self._listen(self._process))
            ended = asyncio.create_task(self._process.wait())
            ready = asyncio.create_task(self._ready.wait())
            try:
                await asyncio.wait({ended, ready}, timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
                ready.cancel()
            return "" if self._ready.is_set() else self._gone()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        while line := await process.stdout.readline():
            word = line.decode("utf-8", "replace").strip()
            if word == "ready":
                self._ready.set()
            elif word and word != "done":
                self._last_words = word

    def _gone(self) -> str:
        return "no compute burst" + (f": {self._last_words}" if self._last_words else "")
