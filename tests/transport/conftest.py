"""Servers of raw bytes, and clients for them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

sys.path.insert(0, str(Path(__file__).parents[2]))

from pytest_thermal.transport import client
from tests.support.hush import Hush
from tests.support.patience import PATIENCE_SECONDS
from tests.transport.wire import Wire

KEY = "sk-test-0123456789abcdefghijklmnop"


@pytest.fixture
def wire() -> Iterator[Callable[..., Wire]]:
    """Starts servers; stopped with the test."""
    with ExitStack() as cleanup:
        yield lambda script, **settings: cleanup.enter_context(Wire(script, **settings))


@pytest.fixture
def connect() -> Iterator[Callable[..., httpx.Client]]:
    """Makes clients; closed with the test."""
    with ExitStack() as cleanup:

        def make(where: Wire | str, **settings: Any) -> httpx.Client:
            wanted: dict[str, Any] = {
                "base_url": where if isinstance(where, str) else where.url,
                "key": SecretStr(KEY),
                "connect_seconds": PATIENCE_SECONDS,
                "read_seconds": PATIENCE_SECONDS,
                "environ": {},
                **settings,
            }
            return cleanup.enter_context(client(**wanted))

        yield make


@pytest.fixture
def hush(monkeypatch: pytest.MonkeyPatch) -> Hush:
    """Clients' reads give up when a server tells this, and not sooner."""
    return Hush.over_sockets(monkeypatch)


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that is bound and does not listen, so that it stays ours and refuses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]
