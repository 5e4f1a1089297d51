"""Every fault that the embedded gateway can show, against the whole ladder: the layer named, and nothing behind it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from pytest_thermal.access import CHECKS, Ladder, burst
from pytest_thermal.access import gateway as access_gateway
from pytest_thermal.access.plan import Plan
from pytest_thermal.access.probes import capacity
from pytest_thermal.demo import FAULTS, DemoError, DemoGateway
from pytest_thermal.demo.call import Call
from pytest_thermal.demo.wire import Answer
from pytest_thermal.model import LAYERS, Finding, Outcome, is_outside
from pytest_thermal.transport import sse
from tests.access.bursts import bursts_meet
from tests.access.conftest import Unmoved
from tests.support.clock import Standing
from tests.support.hush import Hush

MakeLadder = Callable[..., Ladder]

SETTINGS: dict[str, dict[str, Any]] = {
    # What never comes is not waited for long.
    "silent-connection": {"connect_seconds": 0.5},
    # A limit that the fault breaks.
    "one-slot": {"timeout_ms": 1990},
    "slow": {"timeout_ms": 1450, "fallback": None},
    "overload": {"timeout_ms": 1600},
}
HUSHED = ["silence", "chat-hang", "stream-stall"]
"""That nothing more comes is told to the client: however long it waits, it is for this."""
MEETING = [name for name, fault in FAULTS.items() if fault.layer in ("concurrency", "scheduler")]
"""Faults of requests that are there at the same time."""
GATEWAY: dict[str, dict[str, Any]] = {"stream-buffered": {"token_seconds": 0.2}}

IN_THE_LADDER = [name for name, fault in FAULTS.items() if fault.layer != "health"]
HEALTHY = [name for name in IN_THE_LADDER if FAULTS[name].healthy]
ADVISORY = ["stream-no-done", "stream-no-usage"]
"""Told, but no reason to fail: a load can live with them."""
WARNED = ["stream-buffered"]
FATAL = [name for name in IN_THE_LADDER if name not in (*HEALTHY, *ADVISORY, *WARNED)]

WORDS = {
    "tls-expired": "expired on",
    "tls-wrong-host": "is for other.example, not for 127.0.0.1",
    "tls-unknown-issuer": "does not trust",
    "plain-for-https": "it is plain HTTP",
    "not-http": "SSH-2.0",
    "redirect": "a login page",
    "unavailable": "given as the date",
    "key-no-db": "no database of other keys",
    "key-missing": "names no key",
    "upstream-key": "not this bench's key",
    "path-too-deep": "1 level of path too many",
    "path-too-short": "1 level of path too few",
    "route-missing": "nearest is 'demo-chat-2'",
    "wrong-model": "fell back to another route",
    "engine-dead": "engine crashed",
    "stream-truncated": "without finish_reason or [DONE]",
    "stream-ignored": "ignores stream = true",
    "burst-408": "fewer than 8 at once",
    "burst-503": "fewer than 8 at once",
    "burst-drop": "a limit on connections",
    "duplicated": "one and the same",
    "quota-429": "rate is used up",
    "quota-low": "announced by the gateway",
    "one-slot": "one after another behind a single slot",
    "overload": "overloaded",
}
"""What the message of the fault has to say of its cause, whatever else it says."""

ADVISORY_CHECKS = {check.id for check in CHECKS if check.advisory}


class Run:
    """All findings of one domain, in the order of the checks."""

    def __init__(self, ladder: Ladder, key: str) -> None:
        self.findings = [ladder.finding(check.id) for check in CHECKS]
        self.spending = ladder.gateway._ledger.spending()
        self.key = key

    def of(self, *outcomes: Outcome) -> list[Finding]:
        return [finding for finding in self.findings if finding.outcome in outcomes]

    @property
    def bad(self) -> list[Finding]:
        return self.of(Outcome.FAILED, Outcome.INCONCLUSIVE)


def serves_by(clock: Standing, demo: DemoGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the simulated engine's time pass on a clock by which the client measures too; none of it is waited for."""
    for module in (burst, capacity, sse, importlib.import_module("pytest_thermal.transport.exchange")):
        monkeypatch.setattr(module, "time", clock)
    behaviour = demo._behaviour
    came: dict[int, float] = {}
    on_request, first_token_seconds = behaviour.on_request, behaviour.first_token_seconds

    async def note(call: Call) -> Answer | None:
        answer = await on_request(call)
        came[call.number] = clock.now_seconds
        return answer

    def pass_by(call: Call, seconds: float) -> float:
        begin = clock.now_seconds if demo._settings.slots == 1 else came[call.number]
        clock.at_least(begin + first_token_seconds(call, seconds))
        return 0.0

    monkeypatch.setattr(behaviour, "on_request", note)
    monkeypatch.setattr(behaviour, "first_token_seconds", pass_by)


@pytest.fixture
def run(make_ladder: MakeLadder, clock: Standing, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], Run]:
    def climb(fault: str | None) -> Run:
        try:
            gateway = DemoGateway(fault=fault, **GATEWAY.get(fault or "", {}))
            gateway.start()
        except DemoError as error:
            pytest.skip(str(error))
        if fault in HUSHED:
            Hush.over_sockets(monkeypatch).told_by_the_demo(monkeypatch)
        if fault in MEETING:
            bursts_meet(gateway, monkeypatch)
        if fault is not None and FAULTS[fault].layer == "scheduler":
            monkeypatch.setattr(access_gateway, "LATE_FACTOR", 100.0)
            serves_by(clock, gateway, monkeypatch)
        with gateway:
            environ = {"SSL_CERT_FILE": str(gateway.ca_file)} if gateway.ca_file else {}
            settings = SETTINGS.get(fault or "", {})
            ladder = make_ladder(gateway.url, key=gateway.key or None, environ=environ, plan=Plan(), **settings)
            return Run(ladder, gateway.key)

    return climb


RunFault = Callable[[str | None], Run]


def assert_says_no_key(found: Run) -> None:
    for finding in found.findings:
        for name, value in asdict(finding).items():
            # Four characters of the head may be shown; nothing of the rest.
            assert not found.key or found.key[8:24] not in repr(value), (finding.check, name)


def test_the_groups_cover_every_fault() -> None:
    groups = [*HEALTHY, *ADVISORY, *WARNED, *FATAL]
    assert sorted(groups) == sorted(IN_THE_LADDER)
    assert set(FAULTS) - set(groups) == {"flapping", "dies"}  # test_health.py
    assert len(FATAL) > 40
    assert set(WORDS) <= set(FATAL)


@pytest.mark.parametrize("fault", [None, *HEALTHY])
def test_a_healthy_gateway_passes_whatever_it_looks_like(fault: str | None, run: RunFault) -> None:
    found = run(fault)
    assert [finding.message for finding in found.bad if finding.check not in ADVISORY_CHECKS] == []
    assert found.of(Outcome.BLOCKED) == []
    assert {finding.check for finding in found.of(Outcome.PASSED)} >= {
        "connection", "http", "models", "models_route_default", "models_route_fallback", "chat", "chat_usage",
        "chat_model", "chat_fallback", "stream", "concurrency", "concurrency_answers", "concurrency_usage", "quota",
        "scheduler", "scheduler_parallel",
    }  # fmt: skip
    assert found.spending.asked_tokens <= 50
    assert all(finding.seen for finding in found.findings)
    assert_says_no_key(found)


@pytest.mark.parametrize("fault", FATAL)
def test_a_fault_is_named_by_its_layer_and_blocks_what_is_behind_it(fault: str, run: RunFault) -> None:
    found = run(fault)
    layer = FAULTS[fault].layer if fault != "upstream-key" else "chat"  # the fault's point: it is not this key's
    first = found.bad[0]
    assert first.layer == layer, first.message
    assert first.outcome is Outcome.FAILED
    lines = first.message.splitlines()
    assert lines[0].startswith(f"{layer}: ")
    assert [line.split(": ")[0] for line in lines[1:]] == ["likely", "try"]
    assert WORDS.get(fault, "") in first.message
    assert found.spending.asked_tokens <= 100

    before = found.findings[: found.findings.index(first)]
    assert {finding.outcome for finding in before} <= {Outcome.PASSED, Outcome.SKIPPED}
    inner = [finding for finding in found.findings if is_outside(check_layer(first), check_layer(finding))]
    for finding in inner:
        assert finding.outcome is Outcome.BLOCKED, finding.message
        assert finding.message.startswith(f"blocked: {finding.layer}: ")
        assert f"{layer}: " in finding.seen
    assert [check_layer(finding) for finding in inner] == [
        check.layer for check in CHECKS if is_outside(check_layer(first), check.layer)
    ]
    assert_says_no_key(found)


def check_layer(finding: Finding) -> str:
    """The layer that the check stands in, whichever layer it found at fault."""
    return next(check.layer for check in CHECKS if check.id == finding.check)


@pytest.mark.parametrize("fault", ADVISORY)
def test_an_advisory_fault_is_told_and_blocks_nothing(fault: str, run: RunFault) -> None:
    found = run(fault)
    assert [(finding.layer, finding.check in ADVISORY_CHECKS) for finding in found.bad] == [("stream", True)]
    assert "likely: " in found.bad[0].message
    assert found.of(Outcome.BLOCKED) == []
    assert_says_no_key(found)


@pytest.mark.parametrize("fault", WARNED)
def test_a_buffered_stream_is_a_warning(fault: str, run: RunFault) -> None:
    found = run(fault)
    assert found.bad == []
    warned = [finding for finding in found.findings if finding.warnings]
    assert [finding.check for finding in warned] == ["stream"]
    assert "buffers" in warned[0].warnings[0]


def test_what_came_at_once_because_this_process_stood_still_is_no_buffer(
    run: RunFault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Unmoved, "seconds", 0.6)
    found = run("stream-buffered")
    assert (found.bad, [finding.check for finding in found.findings if finding.warnings]) == ([], [])


def test_layers_of_checks_go_outside_in() -> None:
    order = [LAYERS.index(check.layer) for check in CHECKS]
    assert order == sorted(order)
    assert {check.layer for check in CHECKS} == set(LAYERS)
