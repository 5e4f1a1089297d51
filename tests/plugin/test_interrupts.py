"""Ctrl-C and worse: the run ends, says what it knows, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.plugin_runs import SUITE, write_bench
from tests.support.patience import PATIENCE_SECONDS, until


class SilentGateway:
    """Accepts and never answers: a suite that asks it waits until it is stopped."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self._listener.settimeout(PATIENCE_SECONDS)
        self._held: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def hold(self, connections: int) -> None:
        """Wait for so many connections and keep them open."""
        for _ in range(connections):
            self._held.append(self._listener.accept()[0])

    def close(self) -> None:
        for held in (*self._held, self._listener):
            held.close()


@pytest.fixture
def silent_gateway() -> Iterator[SilentGateway]:
    gateway = SilentGateway()
    yield gateway
    gateway.close()


def start_waiting(folder: Path, gateway: SilentGateway, *arguments: str) -> subprocess.Popen[str]:
    write_bench(folder / "bench", api_endpoint=gateway.url)
    # A background shell ignores Ctrl-C, and children inherit that.
    start = (
        "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(pytest.main())"
    )
    options = ("--bench", str(folder / "bench"), "-p", "no:cacheprovider")
    process = subprocess.Popen(
        [sys.executable, "-c", start, str(SUITE), *options, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    gateway.hold(2)  # the connection check, and the http check whose request is never answered
    return process


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_ctrl_c_ends_the_run_with_its_summary(
    tmp_path: Path, silent_gateway: SilentGateway, arguments: tuple[str, ...]
) -> None:
    process = start_waiting(tmp_path, silent_gateway, *arguments)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    assert "INTERNALERROR" not in output


def test_kill_leaves_no_process(tmp_path: Path, silent_gateway: SilentGateway) -> None:
    process = start_waiting(tmp_path, silent_gateway)
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    until(lambda: not _group_lives(process.pid))


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
