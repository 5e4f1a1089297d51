"""The gateway's life: bound, started, stopped; without a trace, a word, or a wait."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from pytest_thermal.demo import DemoError, DemoGateway
from pytest_thermal.demo.behaviours.service import Slow
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.demo.conftest import MakeBed


def demo_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "pytest-thermal-demo" in thread.name]


def port_is_free(port: int) -> bool:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a client's connection may still be closing
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def test_the_address_is_known_and_refuses_until_it_is_started() -> None:
    gateway = DemoGateway()
    try:
        assert gateway.url == f"http://127.0.0.1:{gateway.port}/v1"
        assert demo_threads() == []
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", gateway.port))
        gateway.start()
        assert httpx.get(gateway.url + "/models", trust_env=False, timeout=PATIENCE_SECONDS).status_code == 401
    finally:
        gateway.stop()


def test_start_and_stop_may_be_repeated() -> None:
    gateway = DemoGateway()
    gateway.start()
    gateway.start()
    assert len(demo_threads()) == 1
    gateway.stop()
    gateway.stop()
    with pytest.raises(DemoError, match="was stopped"):
        gateway.start()


def test_a_gateway_that_was_never_started_gives_its_port_back() -> None:
    gateway = DemoGateway()
    gateway.stop()
    assert port_is_free(gateway.port)


@pytest.mark.parametrize("fault", [None, "silence", "not-http", "refused", "silent-connection", "tls-good", "dies"])
def test_stopping_leaves_no_thread_and_frees_the_port(fault: str | None) -> None:
    with DemoGateway(fault=fault) as gateway:
        pass
    assert demo_threads() == []
    assert port_is_free(gateway.port)


@pytest.mark.parametrize("fault", ["silence", "chat-hang", "stream-stall", "slow"])
def test_stopping_does_not_wait_for_hanging_clients(
    make_bed: MakeBed, fault: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slow, "settings", lambda _, settings: replace(settings, service_seconds=3600.0))
    bed = make_bed(fault)

    def ask(_: int) -> str:
        try:
            return str(bed.chat(stream=True).status_code)
        except httpx.TransportError as error:
            return type(error).__name__

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(ask, range(4))
            while bed.gateway.max_parallel_seen < (0 if fault == "silence" else 4):
                threading.Event().wait(0.01)
            bed.gateway.stop()
            assert demo_threads() == []
            assert set(answers) <= {"RemoteProtocolError", "ReadError", "ConnectError"}
    assert capfd.readouterr() == ("", "")


def test_a_connection_that_says_nothing_does_not_hold_it(make_bed: MakeBed) -> None:
    bed = make_bed()
    with socket.create_connection(("127.0.0.1", bed.gateway.port)) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf")
        bed.models()
        bed.gateway.stop()
        assert demo_threads() == []


def test_it_listens_on_loopback_only() -> None:
    with DemoGateway() as gateway:
        assert gateway._socket.getsockname() == ("127.0.0.1", gateway.port)
        assert gateway._socket.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 0


def test_a_taken_port_is_an_error_that_says_so() -> None:
    gateway = DemoGateway()
    try:
        with pytest.raises(DemoError, match=f"port {gateway.port} .*cannot be bound") as refusal:
            DemoGateway(port=gateway.port)
        assert "try: port 0" in str(refusal.value)
    finally:
        gateway.stop()


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_out_of_range_is_an_error(port: int) -> None:
    with pytest.raises(DemoError, match="cannot be bound"):
        DemoGateway(port=port)


@pytest.mark.parametrize(
    "settings, name",
    [
        ({"slots": 0}, "slots"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"service_seconds": -0.1}, "service_seconds"),
        ({"models": ()}, "models"),
        ({"models": ("",)}, "models"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        DemoGateway(**settings)  # type: ignore[arg-type]


def test_it_can_run_beside_another_event_loop(make_bed: MakeBed) -> None:
    bed = make_bed()

    async def ask() -> int:
        async with httpx.AsyncClient(base_url=bed.gateway.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
            answers = await asyncio.gather(*(client.get("/models") for _ in range(4)))
        return len(answers)

    assert asyncio.run(ask()) == 4


def test_keys_are_fresh_unless_given() -> None:
    gateways = [DemoGateway(), DemoGateway(), DemoGateway(key="sk-given-0001")]
    try:
        first, second, given = (gateway.key for gateway in gateways)
        assert first.startswith("sk-demo-")
        assert len({first, second, given}) == 3
        assert given == "sk-given-0001"
    finally:
        for gateway in gateways:
            gateway.stop()


@pytest.mark.parametrize(
    "fault", [None, "key-wrong", "key-scope", "engine-dead", "stream-cut", "quota-429", "burst-drop"]
)
def test_it_never_says_the_key(
    make_bed: MakeBed, fault: str | None, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    canary = "sk-canary-5f0e1d2c3b4a5968"
    bed = make_bed(fault, key=canary)
    said = [repr(bed.gateway), repr(bed.gateway.fault), str(bed.gateway.served), bed.models().text]
    said += [str(outcome if isinstance(outcome, Exception) else outcome.text) for outcome in bed.burst(6)]
    with socket.create_connection(("127.0.0.1", bed.gateway.port)) as sock:
        sock.sendall(b"nonsense\r\n\r\n")
        said.append(sock.recv(4096).decode())
    bed.gateway.stop()
    said += [
        *capfd.readouterr(),
        "".join(record.getMessage() for record in caplog.records if record.name != "httpcore"),
    ]
    assert all("canary" not in text for text in said)


def test_nothing_is_logged_or_printed(
    make_bed: MakeBed, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bed = make_bed("stream-cut")
    with pytest.raises(httpx.RemoteProtocolError):
        bed.stream()
    with socket.create_connection(("127.0.0.1", bed.gateway.port)) as sock:
        sock.sendall(b"nonsense\r\n\r\n")
        sock.recv(4096)
    with socket.create_connection(("127.0.0.1", bed.gateway.port)) as sock:
        sock.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n")
        sock.recv(4096)
    bed.gateway.stop()
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_importing_the_demo_imports_no_server() -> None:
    code = (
        "import sys, pytest_thermal.demo as d\n"
        "heavy = {'starlette', 'uvicorn', 'asyncio', 'anyio', 'h11', 'httpx', 'ssl', 'trustme', 'pytest'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "d.DemoGateway().stop()\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
