"""The health monitor: breaks with their times, while it polls in the background."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pytest_thermal.access import HealthBreak, HealthMonitor
from pytest_thermal.access.health import endpoint_url
from pytest_thermal.demo import DemoGateway
from tests.access.conftest import KEY, make_bench
from tests.support.patience import until
from tests.transport.wire import Peer, Script, Wire, always, answer

MakeWire = Callable[..., Wire]
LISTING = answer({"data": [{"id": "a"}]})


@pytest.fixture
def watch() -> Iterator[Callable[..., HealthMonitor]]:
    """Makes monitors that are not started; closed with the test."""
    with ExitStack() as cleanup:

        def make(url: str, **settings: Any) -> HealthMonitor:
            bench = make_bench(url, **settings)
            monitor = HealthMonitor(bench, bench.domains[0], environ={})
            cleanup.callback(monitor.close)
            return monitor

        yield make


Watch = Callable[..., HealthMonitor]


def in_turn(*answers: bytes) -> Script:
    """Each request gets the next answer; the last one stays."""
    left = list(answers)

    def script(peer: Peer) -> None:
        while peer.request() is not None:
            peer.send(left.pop(0) if len(left) > 1 else left[0])

    return script


def is_gone() -> bool:
    return "thermal-health" not in {thread.name for thread in threading.enumerate()}


DOWN = answer(b"<html><title>503</title>", status="503 Service Unavailable", kind="text/html")


def test_a_healthy_gateway_has_no_breaks(wire: MakeWire, watch: Watch) -> None:
    server = wire(always(LISTING))
    monitor = watch(server.url)
    for _ in range(3):
        monitor.poll()
    log = monitor.log()
    assert (log.polls, log.healthy, log.breaks) == (3, 3, ())
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    assert {asked.target for asked in server.asked} == {"/v1/models"}


def test_a_break_has_its_beginning_its_end_and_its_cause(wire: MakeWire, watch: Watch) -> None:
    before = time.time()
    monitor = watch(wire(in_turn(LISTING, DOWN, DOWN, LISTING, LISTING)).url)
    for _ in range(5):
        monitor.poll()
    log = monitor.log()
    assert (log.polls, log.healthy) == (5, 3)
    (found,) = log.breaks
    assert found.seen == "503 Service Unavailable from GET /v1/models"
    assert found.end_unix_seconds is not None
    assert before <= found.start_unix_seconds < found.end_unix_seconds <= time.time()


def test_a_break_that_is_not_over(wire: MakeWire, watch: Watch) -> None:
    monitor = watch(wire(in_turn(LISTING, DOWN)).url)
    for _ in range(3):
        monitor.poll()
    (found,) = monitor.log().breaks
    assert found.end_unix_seconds is None
    assert "not over" in found.line


def test_two_breaks_are_two(wire: MakeWire, watch: Watch) -> None:
    monitor = watch(wire(in_turn(DOWN, LISTING, DOWN, LISTING)).url)
    for _ in range(4):
        monitor.poll()
    assert len(monitor.log().breaks) == 2


@pytest.mark.parametrize(
    "said, words",
    [
        (answer({"error": "no"}, status="401 Unauthorized"), "401 Unauthorized"),
        (answer(None, status="302 Found", location="/login"), "302 Found"),
        (answer(b"<html>login</html>", kind="text/html"), "200 OK with an HTML page"),
        (b"", "disconnected"),
        (b"SSH-2.0-x\r\n\r\n", "illegal"),
    ],
)
def test_what_counts_as_unwell(said: bytes, words: str, wire: MakeWire, watch: Watch) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(said)

    monitor = watch(wire(script).url)
    monitor.poll()
    assert words in monitor.log().breaks[0].seen


@pytest.mark.parametrize("said", [answer(None), answer({"status": "ok"}), answer(b"OK", kind="text/plain")])
def test_what_counts_as_well(said: bytes, wire: MakeWire, watch: Watch) -> None:
    monitor = watch(wire(always(said)).url, endpoint="/health")
    monitor.poll()
    assert monitor.log().healthy == 1


def test_a_key_that_comes_back_is_not_in_the_log(wire: MakeWire, watch: Watch) -> None:
    monitor = watch(wire(always(answer({}, status=f"401 No {KEY}"))).url)
    monitor.poll()
    assert KEY[4:] not in repr(monitor.log())


def test_silence_is_a_break(wire: MakeWire, watch: Watch) -> None:
    monitor = watch(wire(lambda peer: peer.hold()).url, read_seconds=0.2)
    monitor.poll()
    assert monitor.log().breaks[0].seen == "no answer in time from GET /v1/models"


def test_it_polls_at_once_and_then_once_an_interval(wire: MakeWire, watch: Watch) -> None:
    server = wire(always(LISTING))
    monitor = watch(server.url, interval_seconds=0.1)
    monitor.start()
    until(lambda: monitor.log().polls >= 4)
    monitor.close()
    until(is_gone)
    after = len(server.asked)
    time.sleep(0.3)
    assert len(server.asked) == after


def test_closing_does_not_wait_for_an_interval_and_leaves_no_thread(wire: MakeWire, watch: Watch) -> None:
    monitor = watch(wire(always(LISTING)).url, interval_seconds=3600)
    monitor.start()
    until(lambda: monitor.log().polls == 1)
    monitor.close()
    until(is_gone)


def test_one_that_was_never_started_can_be_closed(wire: MakeWire, watch: Watch) -> None:
    watch("http://127.0.0.1:1/v1").close()


def test_a_poll_that_our_own_end_cuts_short_is_no_break(wire: MakeWire, watch: Watch) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        while not monitor._stop.is_set() and not peer.hold(0.02):
            pass

    server = wire(script)
    monitor = watch(server.url)
    monitor.start()
    until(lambda: len(server.asked) == 1)
    monitor.close()
    until(is_gone)
    assert (monitor.log().polls, monitor.log().breaks) == (0, ())


# --- the demo's faults of health -----------------------------------------------------------------------------


def test_a_gateway_that_flaps(watch: Watch) -> None:
    with DemoGateway(fault="flapping") as gateway:
        monitor = watch(gateway.url, key=gateway.key)
        for _ in range(10):
            monitor.poll()
    log = monitor.log()
    assert (log.polls, log.healthy) == (10, 6)
    (found,) = log.breaks
    assert found.end_unix_seconds is not None
    assert "503" in found.seen


def test_a_gateway_that_dies(watch: Watch) -> None:
    with DemoGateway(fault="dies") as gateway:
        monitor = watch(gateway.url, key=gateway.key)
        for _ in range(10):
            monitor.poll()
    (found,) = monitor.log().breaks
    assert found.end_unix_seconds is None
    assert monitor.log().healthy == 6


# --- words ---------------------------------------------------------------------------------------------------


def test_a_break_in_one_line() -> None:
    over = HealthBreak(start_unix_seconds=1_796_000_000.0, end_unix_seconds=1_796_000_030.4, seen="503")
    assert re.fullmatch(r"\d\d:\d\d:\d\d to \d\d:\d\d:\d\d \(30 s\): 503", over.line)
    lasting = HealthBreak(start_unix_seconds=1_796_000_000.0, end_unix_seconds=None, seen="503")
    assert re.fullmatch(r"since \d\d:\d\d:\d\d, not over: 503", lasting.line)


@pytest.mark.parametrize(
    "base_url, endpoint, url",
    [
        ("https://gw.example/v1", "/v1/models", "https://gw.example/v1/models"),
        ("https://gw.example/gw/v1", "/v1/models", "https://gw.example/gw/v1/models"),
        ("https://gw.example/api/v3", "/v1/models", "https://gw.example/api/v3/models"),
        ("https://gw.example/v1", "v1/models", "https://gw.example/v1/models"),
        ("https://gw.example/gw/v1", "/health", "https://gw.example/health"),
        ("http://[::1]:8000/v1", "/health", "http://[::1]:8000/health"),
    ],
)
def test_where_the_endpoint_lies(base_url: str, endpoint: str, url: str) -> None:
    assert endpoint_url(base_url, endpoint) == url
