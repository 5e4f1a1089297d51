"""Ctrl-C and worse: the run ends, says what it knows, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.plugin.plugin_runs import SUITE, write_bench


@pytest.fixture
def silent_gateway() -> socket.socket:
    """Accepts and never answers: a suite that asks it waits until it is stopped."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener


def start_waiting(folder: Path, listener: socket.socket, *arguments: str) -> subprocess.Popen[str]:
    port = listener.getsockname()[1]
    write_bench(folder / "bench", api_endpoint=f"http://127.0.0.1:{port}/v1")
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
    listener.settimeout(60)
    listener.accept()  # the connection check
    listener.accept()  # the http check: its request is never answered
    return process


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_ctrl_c_ends_the_run_with_its_summary(
    tmp_path: Path, silent_gateway: socket.socket, arguments: tuple[str, ...]
) -> None:
    process = start_waiting(tmp_path, silent_gateway, *arguments)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    assert "INTERNALERROR" not in output


def test_kill_leaves_no_process(tmp_path: Path, silent_gateway: socket.socket) -> None:
    process = start_waiting(tmp_path, silent_gateway)
    process.kill()
    process.communicate(timeout=60)
    end = time.monotonic() + 30
    while _group_lives(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _group_lives(process.pid)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
