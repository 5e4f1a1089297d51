"""What can wait for a quiet moment, handed on some at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """Takes things, and hands them on together ``wait_seconds`` after the first, ``at_once`` of them at a time.

    Between those the event loop turns, so that nothing else waits for all of them.
    """

    def __init__(self, handle: Callable[[list[T]], None], *, wait_seconds: float, at_once: int) -> None:
        self._handle = handle
        self._wait_seconds = wait_seconds
        self._at_once = at_once
        self._waiting: deque[T] = deque()
        self._due: asyncio.TimerHandle | asyncio.Handle | None = None

    def add(self, one: T) -> None:
        """One more, in the running loop."""
        self._waiting.append(one)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(self._wait_seconds, self._some)

    def close(self) -> None:
        """Hand on what waits."""
        if self._due is not None:
            self._due.cancel()
        while self._waiting:
            self._hand_on()

    def _some(self) -> None:
        self._hand_on()
        self._due = asyncio.get_running_loop().call_soon(self._some) if self._waiting else None

    def _hand_on(self) -> None:
        self._handle([self._waiting.popleft() for _ in range(min(self._at_once, len(self._waiting)))])
