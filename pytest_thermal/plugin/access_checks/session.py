"""The access run of one process: ladders of all domains, the token ledger, the health monitors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import ActiveBench, active_bench
from pytest_thermal.plugin.evidence.properties import add_properties
from pytest_thermal.plugin.keys import ACCESS, FINDINGS
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.outcomes import FindingWarning, conclude

if TYPE_CHECKING:
    from pytest_thermal.access import HealthMonitor, Ladder


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a process tells at its end; plain data, since it travels from xdist's workers."""

    node: str
    bench: Sequence[str]
    findings: Sequence[dict[str, Any]] = field(default_factory=list)
    spending: str = ""
    health: Sequence[str] = field(default_factory=list)


class AccessSession:
    """Everything that access checks of one process share. Made when the first of them runs."""

    def __init__(self, active: ActiveBench, config: pytest.Config) -> None:
        from pytest_thermal.access import Ledger, Plan

        self.active = active
        settings = {
            "requests": options.value(config, "probe-requests"),
            "workers": options.value(config, "probe-workers"),
            "token_budget": options.value(config, "token-budget"),
            "probe_quota": options.value(config, "probe-quota"),
            "interconnect_command": options.value(config, "interconnect-cmd"),
            "sysfs": _sysfs(config),
        }
        self.plan = Plan(**{name: given for name, given in settings.items() if given is not None})
        self.ledger = Ledger(self.plan.budget_tokens(len(active.bench.domains)))
        self._ladders: dict[str, Ladder] = {}
        self._monitors: dict[str, HealthMonitor] = {}

    def ladder(self, name: str) -> Ladder:
        """The ladder of domain ``name``."""
        from pytest_thermal.access import Gateway, Ladder

        if name not in self._ladders:
            self.active.start()
            bench = self.active.bench
            chosen = next(domain for domain in bench.domains if domain.name == name)
            gateway = Gateway(bench, chosen, plan=self.plan, ledger=self.ledger, environ=self.active.environ)
            self._ladders[name] = Ladder(gateway)
        return self._ladders[name]

    def finding(self, name: str, check: str) -> Finding:
        """The finding of ``check`` for domain ``name``; the health monitor starts once the gateway has answered."""
        ladder = self.ladder(name)
        found = ladder.finding(check)
        if name not in self._monitors and self.active.bench.health_check.enabled:
            # Before the model list is there, a poll of it would only repeat what a check says better.
            listed = [finding for finding in ladder.findings if finding.check == "models"]
            if listed and listed[0].outcome is Outcome.PASSED:
                self._monitor(name).start()
        return found

    def health(self, name: str) -> Finding:
        """Whether the gateway of domain ``name`` stayed healthy since it first answered, with one poll more now."""
        setting = self.active.bench.health_check
        if not setting.enabled:
            return _health_finding(name, Outcome.SKIPPED, say("health_check is not enabled in the bench file"))
        for check in ("http", "key", "models"):
            reached = self.finding(name, check)
            if reached.outcome is Outcome.BLOCKED:
                return _health_finding(name, Outcome.BLOCKED, reached.seen)
            if reached.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE):
                return _health_finding(
                    name, Outcome.BLOCKED, say("not tried, since {first_line}", first_line=reached.first_line)
                )
        monitor = self._monitors[name]
        monitor.poll()
        log = monitor.log()
        evidence: dict[str, Scalar] = {
            "polls": log.polls,
            "breaks": len(log.breaks),
            "interval_seconds": setting.interval_seconds,
        }
        if not log.breaks:
            return _health_finding(
                name, Outcome.PASSED, say("healthy in all {polls} polls", polls=log.polls), evidence=evidence
            )
        if log.healthy == 0:
            return _health_finding(
                name,
                Outcome.FAILED,
                say("never healthy in {polls} health polls: {seen}", polls=log.polls, seen=log.breaks[0].seen),
                likely=say("health_check.endpoint {endpoint} is not this gateway's", endpoint=setting.endpoint),
                advice=say("the gateway's own health path, or /v1/models"),
                evidence=evidence,
            )
        return _health_finding(
            name,
            Outcome.FAILED,
            say(
                "{breaks} in {polls} health polls: {when}",
                breaks=say("1 break") if len(log.breaks) == 1 else say("{count} breaks", count=len(log.breaks)),
                polls=log.polls,
                when=joined("; ", (entry.line for entry in log.breaks[:5])),
            ),
            likely=say("the gateway restarted or was overloaded while the suite ran"),
            advice=say("the gateway's log at these times; checks that failed at the same time may have this cause"),
            evidence=evidence,
        )

    def ending(self, node: str) -> Ending:
        """What to tell of this run. Stops the monitors."""
        clean = self.active.redactor
        findings = []
        for ladder in self._ladders.values():
            for finding in ladder.findings:
                plain = asdict(finding)
                plain |= {
                    "outcome": str(finding.outcome),
                    "warnings": list(finding.warnings),
                    "message": finding.message,
                }
                plain["advisory"] = ladder.check(finding.check).advisory
                del plain["transcript"]
                findings.append(plain)
        health = []
        for name, monitor in self._monitors.items():
            log = monitor.log()
            health += [clean.text(say("{name}: {entry}", name=name, entry=entry.line)) for entry in log.breaks]
            if not log.breaks:
                polls = say("1 poll") if log.polls == 1 else say("{count} polls", count=log.polls)
                health.append(say("{name}: healthy in {polls}", name=name, polls=polls))
        return Ending(
            node=node,
            bench=self.active.header(),
            findings=findings,
            spending=self.ledger.spending().line,
            health=health,
        )

    def close(self) -> None:
        """Stop what runs in the background and close connections."""
        for monitor in self._monitors.values():
            monitor.close()
        for ladder in self._ladders.values():
            ladder.gateway.close()

    def _monitor(self, name: str) -> HealthMonitor:
        from pytest_thermal.access import HealthMonitor

        chosen = self.ladder(name).gateway.domain
        self._monitors[name] = HealthMonitor(self.active.bench, chosen, environ=self.active.environ)
        return self._monitors[name]


class Access:
    """The access checks of one domain, as a test asks for them."""

    def __init__(self, session: AccessSession, item: pytest.Item, domain: str) -> None:
        self._session = session
        self._item = item
        self.domain = domain

    def finding(self, check: str) -> Finding:
        """The finding of a check (``"chat_usage"``); it and all that stands outside it are measured once a run."""
        before = self._session.ledger.spending().output_tokens
        found = self._session.finding(self.domain, check)
        return self._noted(found, output_tokens=self._session.ledger.spending().output_tokens - before)

    def require(self, check: str) -> Finding:
        """The finding of a check that must hold.

        Raises:
            FindingFailed: it failed.
            Inconclusive: it could not be measured.
            pytest.skip.Exception: an outer layer failed, or it does not apply to this bench.
        """
        __tracebackhide__ = True
        return self._conclude(self.finding(check))

    def require_health(self) -> Finding:
        """The gateway stayed healthy while the suite ran; raises as `require`."""
        __tracebackhide__ = True
        return self._conclude(self._noted(self._session.health(self.domain), output_tokens=0))

    def _noted(self, found: Finding, *, output_tokens: int) -> Finding:
        """Keep the finding for reports, and hand it to JUnit and the like as properties (plain values for xdist)."""
        self._item.stash.setdefault(FINDINGS, []).append(found)
        add_properties(self._item, found, simulated=self._session.active.bench.demo)
        self._item.user_properties.append(("thermal_output_tokens", output_tokens))
        return found

    def _conclude(self, found: Finding) -> Finding:
        __tracebackhide__ = True
        told = catalogue(self._item.config)
        for text in found.warnings:
            self._item.warn(FindingWarning(told(say("{layer}: {text}", layer=found.layer, text=text))))
        conclude(found, advisory=self._item.get_closest_marker("advisory") is not None)
        return found


def access_session(config: pytest.Config) -> AccessSession:
    """The access run of this process, made when first asked for."""
    found = config.stash.get(ACCESS, None)
    if found is None:
        found = config.stash[ACCESS] = AccessSession(active_bench(config), config)
        config.add_cleanup(found.close)
    return found


def _health_finding(
    name: str,
    outcome: Outcome,
    seen: str,
    *,
    likely: str = "",
    advice: str = "",
    evidence: Mapping[str, Scalar] | None = None,
) -> Finding:
    return Finding(
        check="http_health",
        layer="http",
        subject=name,
        outcome=outcome,
        seen=seen,
        likely=likely,
        advice=advice,
        evidence=evidence or {},
    )


def _sysfs(config: pytest.Config) -> Path | None:
    given = options.value(config, "sysfs")
    return None if given is None else Path(given)
