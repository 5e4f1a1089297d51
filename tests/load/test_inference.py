"""The inference load as a process, against the demo gateway: rows that add up, a key that gets nowhere."""

from __future__ import annotations

import contextlib
import csv
import http.server
import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from pytest_thermal.bench import Domain, Inference, ModelRoute, Stress, Timeouts
from pytest_thermal.demo import DemoGateway
from pytest_thermal.load import LoadError, RunningLoad, Work, start
from pytest_thermal.load.calibration import START_SECONDS, Calibration
from pytest_thermal.load.inference_work import inference_work
from pytest_thermal.load.orders import InferenceOrders
from pytest_thermal.load.work import own_program
from pytest_thermal.recording import RunClock
from tests.load.helpers import MARK, PATIENCE_SECONDS, marked, new_mark, nothing_is_left, until

KEY = "canary-KEY-93f1c7e2a8b4d6059e1f"


def work_for(gateway: DemoGateway, run: Path | None = None, **settings: Any) -> Work:
    return work_of(gateway.url, gateway.key, run, **settings)


def work_of(
    url: str,
    key: str,
    run: Path | None,
    *,
    slots: int = 4,
    stream: bool = True,
    read_seconds: float = PATIENCE_SECONDS,
    ratio: float = 1.0,
    burner: Sequence[str] = (),
    mark: str = "",
    model: str | None = "demo-chat",
    limit_seconds: float = 120.0,
    rate_per_second: float | None = None,
    profile: str = "chat",
    calibration_seconds: float = 0.0,
) -> Work:
    work = inference_work(
        domains=[Domain(name="d", base_url=url, key=SecretStr(key), route=ModelRoute(default=model))],
        inference=Inference(max_tokens=5, stream=stream),
        stress=Stress(concurrent_requests=slots, request_interval_seconds=0.01),
        timeouts=Timeouts(connect_seconds=PATIENCE_SECONDS, read_seconds=read_seconds),
        run=run,
        clock=RunClock.start(),
        profile=profile,
        rate_per_second=rate_per_second,
        limit_seconds=limit_seconds,
        environ={MARK: mark or new_mark()},
        inference_ratio=ratio,
        burner=burner,
        calibration_seconds=calibration_seconds,
    )
    return replace(work, grace_seconds=PATIENCE_SECONDS)


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "requests.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def chats(gateway: DemoGateway) -> list[int | None]:
    """The status of each chat that the gateway had; None for one that it did not answer."""
    return [served.status for served in gateway.served if served.path.endswith("/chat/completions")]


@contextlib.contextmanager
def loaded(
    tmp_path: Path, *, fault: str | None = None, phase: str = "", **settings: Any
) -> Iterator[tuple[DemoGateway, RunningLoad]]:
    gateway = DemoGateway(fault=fault, key=KEY)
    work = work_for(gateway, tmp_path, **settings)
    with gateway, start(work, phase=phase) as load:
        yield gateway, load


def adds_up(found: Sequence[dict[str, str]], gateway: DemoGateway, status: int) -> bool:
    """Whether rows and the gateway's own count agree: of those cancelled it may have served any."""
    cancelled = sum(row["error"].startswith("cancelled") for row in found)
    recorded = sum(row["status"] == str(status) and not row["error"].startswith("cancelled") for row in found)
    return recorded <= chats(gateway).count(status) <= recorded + cancelled


def test_rows_add_up_to_what_the_gateway_served(tmp_path: Path) -> None:
    with loaded(tmp_path, phase="ramp") as (gateway, load):
        until(lambda: load.status().ok >= 20)
        assert gateway.max_parallel_seen == 4
        load.phase("steady")
        load.concurrency(6)
        until(lambda: rows(tmp_path)[-1]["phase"] == "steady")
        until(lambda: gateway.max_parallel_seen == 6)
        ended = load.stop()
    found = rows(tmp_path)
    assert {row["phase"] for row in found} == {"ramp", "steady"}
    good = [row for row in found if not row["error"]]
    assert {row["status"] for row in good} == {"200"}
    assert {row["completion_tokens"] for row in good} == {"5"}
    assert all(row["ttft"] for row in good)
    assert {row["error"] for row in found} <= {"", "cancelled: the load was taken off"}
    assert adds_up(found, gateway, 200)
    status = ended.last_status
    assert status is not None
    assert (status.requests, status.ok, status.failed) == (len(found), len(good), 0)
    assert status.completion_tokens >= 5 * len(good)
    assert status.concurrency == 6
    assert status.ttft_p50_seconds is not None
    assert (ended.in_order, ended.exit_code, ended.tail) == (True, 0, "")


def test_the_engine_is_measured_before_the_first_request(tmp_path: Path) -> None:
    begin = RunClock.start().now()
    with loaded(tmp_path, calibration_seconds=1.5) as (_, load):
        load.phase("steady")
        until(lambda: load.calibration)
        until(lambda: load.status().ok >= 4)
        calibration = Calibration.of_facts(load.calibration)
        until(lambda: load.status().loop_lag_p99_seconds is not None)
        assert load.status().cpu_share is not None
    assert (calibration.parallel, calibration.stream) == (4, True)
    assert {row["phase"] for row in rows(tmp_path)} == {"steady"}
    # All of its time, or that of a reference server that does not come.
    assert min(float(row["start"]) for row in rows(tmp_path)) >= begin + START_SECONDS


def test_a_load_that_is_stopped_while_it_is_measured_ends(tmp_path: Path) -> None:
    mark = new_mark()
    with loaded(tmp_path, calibration_seconds=200.0, mark=mark) as (gateway, load):
        until(lambda: load.status().text == "calibrating")
        ended = load.stop()
    assert (ended.in_order, ended.exit_code) == (True, 0)
    assert not gateway.served
    assert nothing_is_left(mark)


def test_failures_are_recorded_and_the_load_goes_on(tmp_path: Path) -> None:
    with loaded(tmp_path, fault="burst-429") as (gateway, load):
        until(lambda: load.status().failed >= 5)
        before = load.status().ok
        until(lambda: load.status().ok > before)
        ended = load.stop()
    found = rows(tmp_path)
    assert ended.last_status is not None
    refused = ended.last_status.errors["429 Too Many Requests"]
    assert sum(row["error"].startswith("429 Too Many Requests: “Rate limit reached") for row in found) == refused
    assert ended.last_status.failed == refused
    assert ended.last_status.requests == len(found)
    assert adds_up(found, gateway, 429)
    assert adds_up(found, gateway, 200)


def test_the_open_loop_an_agent_and_a_model_that_is_asked_for(tmp_path: Path) -> None:
    with loaded(tmp_path, rate_per_second=40.0, profile="agent", model=None, stream=False) as (_, load):
        until(lambda: load.status().ok >= 10)
    starts = sorted(float(row["start"]) for row in rows(tmp_path))
    # No burst of what was late, and none left out.
    assert starts[9] - starts[0] == pytest.approx(9 / 40, abs=1e-3)


def test_a_mixed_load_burns_between_requests_and_its_key_stands_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_KEY", KEY)
    mark = new_mark()
    burner = own_program("pytest_thermal.load.cpu_burner", "--bursts", "--limit", "60")
    gateway = DemoGateway(key=KEY)
    work = work_for(gateway, tmp_path, ratio=0.5, burner=burner, mark=mark)
    with gateway, start(work, log=tmp_path / "load.log") as load:
        until(lambda: load.status().items_compute >= 10)
        processes = marked(mark)
        helper = next(process for process in processes if "--bursts" in command_of(process))
        assert ticks(helper) > 0
        share = load.status().inference_share
        assert share is not None
        assert share == pytest.approx(0.5, abs=0.1)
        assert len(processes) >= 4  # guard, warden, generator, burner
        seen = b"".join(
            Path(f"/proc/{process}/{file}").read_bytes() for process in processes for file in ("cmdline", "environ")
        )
        ended = load.stop()
    assert nothing_is_left(mark)
    assert load.status().ok > 0
    assert KEY.encode() not in seen
    assert KEY not in repr(work) + repr(ended) + repr(load.status())
    assert KEY not in "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir())


def test_a_load_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    with loaded(tmp_path, fault="models-missing", model=None) as (_, load):
        until(lambda: not load.alive)
        assert load.ended is not None
        assert load.ended.exit_code == 2
        assert "the bench names no model, and the gateway at http://127.0.0.1:" in load.ended.tail


class Echo(http.server.BaseHTTPRequestHandler):
    """Refuses, and quotes the key that it refuses."""

    def do_POST(self) -> None:
        body = json.dumps({"error": {"message": f"what is {self.headers['Authorization']}?"}}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_key_that_the_gateway_quotes_stands_nowhere(tmp_path: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        with start(work_of(url, KEY, tmp_path), log=tmp_path / "load.log") as load:
            until(lambda: load.status().failed > 0)
            ended = load.stop()
        server.shutdown()
    assert all("what is" in row["error"] for row in rows(tmp_path) if row["status"] == "401")
    assert KEY not in "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir()) + repr(ended)


def test_without_orders_it_ends_at_once() -> None:
    done = subprocess.run(own_program("pytest_thermal.load.inference"), input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_orders_come_through_whole_and_do_not_show_the_key() -> None:
    with DemoGateway(key=KEY) as gateway:
        work = work_for(gateway, Path("/a/run"))
    orders = InferenceOrders.from_line(work.orders)
    assert InferenceOrders.from_line(orders.to_line()) == orders
    assert KEY in orders.to_line()
    assert KEY not in repr(orders)
    assert "\n" not in orders.to_line()
    assert orders.run == Path("/a/run")


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"profile": "novel"}, "no request profile is called 'novel'\ntry: one of chat, long-context, agent"),
        ({"rate_per_second": 0.0}, "a rate of 0 requests per second is none"),
        ({"ratio": 1.5}, "an inference_ratio of 1.5 is no share"),
        ({"ratio": 0.5}, "compute bursts are asked for, and nothing burns them"),
    ],
)
def test_what_makes_no_sense_is_told(settings: dict[str, Any], words: str) -> None:
    with DemoGateway() as gateway, pytest.raises(LoadError) as caught:
        work_for(gateway, **settings)
    assert str(caught.value).startswith(words)


def command_of(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def ticks(process: int) -> int:
    """Clock ticks that it has computed for."""
    return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11])
