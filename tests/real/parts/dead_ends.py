"""Addresses that lead nowhere and need no server: made in the test's own process, so they end with it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

UNRESOLVABLE_URL = "http://gateway.invalid:8080/v1"  # RFC 6761 keeps .invalid from ever resolving


@dataclass(frozen=True, kw_only=True)
class DeadEnds:
    """Where nobody listens, and where somebody accepts and then says nothing."""

    closed_url: str
    silent_url: str
    closed_address: str
    silent_address: str


@contextlib.contextmanager
def dead_ends() -> Iterator[DeadEnds]:
    """Both addresses, kept to us as long as the block lasts."""
    with socket.socket() as closed, socket.socket() as silent:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else can take the port
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        threading.Thread(target=_accept_and_keep, args=(silent,), daemon=True).start()
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in (closed, silent)]
        yield DeadEnds(
            closed_address=addresses[0],
            closed_url=f"http://{addresses[0]}/v1",
            silent_address=addresses[1],
            silent_url=f"http://{addresses[1]}/v1",
        )
        with contextlib.suppress(OSError):
            silent.shutdown(socket.SHUT_RDWR)  # wakes the thread, which close() alone would not


def _accept_and_keep(listener: socket.socket) -> None:
    kept = []
    with contextlib.suppress(OSError):
        while True:
            kept.append(listener.accept()[0])
    for each in kept:
        each.close()
