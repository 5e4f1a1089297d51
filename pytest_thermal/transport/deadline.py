"""A deadline for a whole answer: a peer that sends a byte now and then never runs into a read timeout."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

if TYPE_CHECKING:
    from typing_extensions import Self


_LOOK_SECONDS = 0.001
"""For what has arrived: the shortest wait that a socket knows."""
_LAST_LOOKS_SECONDS = 0.5
"""After the deadline; a peer that never stops sending is not listened to for longer."""


class Patience(float):
    """Seconds to wait for the next bytes (its value), and the moment at which all of them must be there.

    Stands in for the plain read timeout in a request's ``timeout`` extension; `DeadlineTransport` heeds its deadline,
    any other transport reads the seconds.
    """

    deadline: float
    ran_out: bool
    """Whether it was the deadline that ended the last wait, and not that nothing came for so many seconds."""
    _gives_up_at: float | None

    def __new__(cls, seconds: float, *, total_seconds: float) -> Self:
        """``total_seconds`` count from now."""
        made = super().__new__(cls, seconds)
        made.deadline = time.monotonic() + total_seconds
        made.ran_out = False
        made._gives_up_at = None
        return made

    def end_within(self, seconds: float) -> None:
        """Bring the deadline forward, to ``seconds`` from now at the latest."""
        self.deadline = min(self.deadline, time.monotonic() + seconds)

    def next_seconds(self) -> float:
        """How long to wait for the next bytes: as long as asked for, but not beyond the deadline; 0 for no more.

        Once that has passed, what is here already is still taken: this process may have stood still (Ctrl-Z, a machine
        that was suspended) while the peer answered in time.
        """
        now = time.monotonic()
        left = self.deadline - now
        self.ran_out = left < float(self)
        if left >= _LOOK_SECONDS:
            return min(float(self), left)
        if self._gives_up_at is None:
            self._gives_up_at = now + _LAST_LOOKS_SECONDS
        return min(float(self), _LOOK_SECONDS) if now < self._gives_up_at else 0.0


class DeadlineTransport(httpx.HTTPTransport):
    """httpx's transport, whose reads end at a `Patience`'s deadline: those of the head of an answer too."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # httpx has no setting for httpcore's network backend.
        self._pool._network_backend = _Backend(self._pool._network_backend)  # noqa: SLF001


class _Backend(httpcore.NetworkBackend):
    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(self, *args: Any, **settings: Any) -> httpcore.NetworkStream:
        return _Stream(self._inner.connect_tcp(*args, **settings))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if isinstance(timeout, Patience):
            timeout = timeout.next_seconds()
            if timeout <= 0:
                raise httpcore.ReadTimeout("the deadline for the whole answer has passed")
        return self._inner.read(max_bytes, timeout=timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, timeout=timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(self, *args: Any, **settings: Any) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(*args, **settings))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
