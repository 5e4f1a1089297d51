"""Silence that is told, and not timed: a read gives up once the server has said all that it will say.

With a short read timeout a server that is merely late, on a busy machine, looks like one that keeps silent.
"""

from __future__ import annotations

import threading

import httpcore
import pytest
from httpcore._backends.sync import SyncStream

from pytest_thermal.demo.call import Call

_LOOK_SECONDS = 0.02


class Hush:
    """Whether all is said."""

    def __init__(self) -> None:
        self._told = threading.Event()

    def tell(self) -> None:
        """Nothing more will come: what was sent is still read."""
        self._told.set()

    def end(self) -> None:
        """It goes on."""
        self._told.clear()

    @classmethod
    def over_sockets(cls, monkeypatch: pytest.MonkeyPatch) -> Hush:
        """Reads of httpx's synchronous clients wait for this, whatever their timeout is."""
        hush = cls()
        really = SyncStream.read

        def read(stream: SyncStream, max_bytes: int, timeout: float | None = None) -> bytes:
            assert timeout is not None, "a read without a timeout"
            while True:
                is_last = hush._told.is_set()
                try:
                    return really(stream, max_bytes, timeout=_LOOK_SECONDS)
                except httpcore.ReadTimeout:
                    if is_last:
                        raise

        monkeypatch.setattr(SyncStream, "read", read)
        return hush

    def told_by_the_demo(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A demo gateway that gives no (more of an) answer says so here."""
        really = Call.hang

        async def hang(call: Call) -> None:
            self.tell()
            await really(call)

        monkeypatch.setattr(Call, "hang", hang)
