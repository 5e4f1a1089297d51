"""The gateway at a shell."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pytest_thermal.demo import FAULTS

ROOT = Path(__file__).parents[2]
CANARY = "sk-canary-5f0e1d2c3b4a5968"


# What a background shell starts ignores Ctrl-C from birth.
HEEDING = (
    "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " sys.argv[0] = 'demo'; runpy.run_module('pytest_thermal.demo', run_name='__main__')"
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", HEEDING, *arguments]


def environment(**more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("THERMAL_")}
    return {**inherited, **more}


@contextmanager
def running(*arguments: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process and the four lines that it says at first."""
    with subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, [process.stdout.readline().rstrip("\n") for _ in range(4)]
        finally:
            process.kill()


def read_environment(path: Path) -> dict[str, str]:
    words = [shlex.split(line)[1] for line in path.read_text().splitlines()]
    return dict(word.split("=", 1) for word in words)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(tmp_path: Path, end: signal.Signals) -> None:
    file = tmp_path / "with space.env"
    with running("--env-file", str(file), THERMAL_DEMO_KEY=CANARY) as (process, lines):
        assert lines[0].startswith("simulated gateway on http://127.0.0.1:")
        assert lines[1] == "fault: none"
        assert shlex.split(lines[2])[-1] == str(file)
        told = read_environment(file)
        assert told["THERMAL_DEMO_KEY"] == CANARY
        assert file.stat().st_mode & 0o777 == 0o600
        headers = {"authorization": f"Bearer {CANARY}"}
        answer = httpx.get(told["THERMAL_DEMO_URL"] + "/models", headers=headers, trust_env=False, timeout=90)
        assert answer.status_code == 200
        process.send_signal(end)
        rest = process.communicate(timeout=90)[0]
        assert (process.returncode, rest) == (0, "")
    assert not file.exists()
    assert CANARY not in "".join(lines)


def test_a_fault_is_named_and_in_force() -> None:
    with running("--fault", "key-wrong") as (process, lines):
        file = Path(shlex.split(lines[2])[-1])
        told = read_environment(file)
        headers = {"authorization": f"Bearer {told['THERMAL_DEMO_KEY']}"}
        answer = httpx.get(told["THERMAL_DEMO_URL"] + "/models", headers=headers, trust_env=False, timeout=90)
        assert answer.status_code == 401
        assert lines[1] == f"fault: key-wrong: {FAULTS['key-wrong'].description}"
        assert told["THERMAL_DEMO_KEY"] not in "".join(lines)
        process.terminate()
        process.wait(timeout=90)
    assert not file.exists()


def test_a_tls_gateway_says_whom_to_trust() -> None:
    with running("--fault", "tls-good") as (process, lines):
        told = read_environment(Path(shlex.split(lines[2])[-1]))
        authority = Path(told["SSL_CERT_FILE"])
        assert authority.read_text().startswith("-----BEGIN CERTIFICATE-----")
        process.terminate()
        process.wait(timeout=90)
    assert not authority.exists()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--fault", "key-worng"], "key-wrong"),
        (["--slots", "0"], "slots: 0 is less than 1"),
        (["--port", "70000"], "port 70000 on 127.0.0.1 cannot be bound"),
        (["--env-file", str(Path(__file__))], "File exists"),
    ],
)
def test_what_cannot_be_is_said_without_a_traceback(arguments: list[str], said: str) -> None:
    done = subprocess.run(command(*arguments), cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_faults_are_listed() -> None:
    done = subprocess.run(command("--list"), cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines] == list(FAULTS)
    assert [line.split()[0] for line in lines] == [fault.layer for fault in FAULTS.values()]
