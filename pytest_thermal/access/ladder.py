"""The layers of one domain from outside in: each check is measured once, and none behind a failed outer layer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pytest_thermal.access.checks import CHECKS, Check
from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.verdict import CannotMeasure, Verdict
from pytest_thermal.bench import Redactor
from pytest_thermal.model import Finding, Outcome, is_outside
from pytest_thermal.model.said import say, shorten

SHORT_REASON = 140

STOPPING = (Outcome.FAILED, Outcome.INCONCLUSIVE)


class Ladder:
    """Findings of one domain by check id, measured when first asked for."""

    def __init__(self, gateway: Gateway, *, checks: Sequence[Check] = CHECKS) -> None:
        self.gateway = gateway
        self._checks = {check.id: check for check in checks}
        self._found: dict[str, Finding] = {}
        self._redactor = Redactor(gateway.bench.secrets())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was concluded so far, in the order of the checks."""
        return tuple(self._found[name] for name in self._checks if name in self._found)

    def check(self, name: str) -> Check:
        """The check of that id; raises KeyError with the known ids."""
        try:
            return self._checks[name]
        except KeyError:
            raise KeyError(f"no access check {name!r}; there are: {', '.join(self._checks)}") from None

    def finding(self, name: str) -> Finding:
        """The finding of check ``name``, with all that stands outside it measured first."""
        check = self.check(name)
        if name not in self._found:
            self._found[name] = self._blocked(check) or self._measure(check)
        return self._found[name]

    def _outer(self, check: Check) -> list[Check]:
        return [
            other
            for other in self._checks.values()
            if not other.advisory
            and (
                (other.layer == check.layer and other.leads and not check.leads and check.through_gateway)
                or is_outside(other.layer, check.layer)
            )
        ]

    def _blocked(self, check: Check) -> Finding | None:
        for other in self._outer(check):
            if check.through_gateway or other.layer == check.layer:
                found = self.finding(other.id)
            elif other.id in self._found:
                found = self._found[other.id]
            else:
                continue
            if found.outcome is Outcome.BLOCKED:
                return self._finding(check, Verdict(outcome=Outcome.BLOCKED, seen=found.seen))
            if found.outcome in STOPPING:
                first_line = shorten(found.first_line, SHORT_REASON)
                return self._finding(
                    check,
                    Verdict(outcome=Outcome.BLOCKED, seen=say("not tried, since {first_line}", first_line=first_line)),
                )
            if found.outcome is Outcome.SKIPPED and other.layer == check.layer:
                return self._finding(check, Verdict(outcome=Outcome.SKIPPED, seen=found.seen))
        return None

    def _measure(self, check: Check) -> Finding:
        begin = time.perf_counter()
        try:
            verdict = check.probe(self.gateway)
        except CannotMeasure as error:
            verdict = Verdict(outcome=Outcome.INCONCLUSIVE, seen=error.seen, likely=error.likely, advice=error.advice)
        return self._finding(check, verdict, duration_seconds=time.perf_counter() - begin)

    def _finding(self, check: Check, verdict: Verdict, *, duration_seconds: float = 0.0) -> Finding:
        clean = self._redactor.text
        return Finding(
            check=check.id,
            layer=verdict.layer or check.layer,
            subject=self.gateway.domain.name,
            outcome=verdict.outcome,
            seen=clean(verdict.seen),
            likely=clean(verdict.likely),
            advice=clean(verdict.advice),
            evidence={
                name: clean(value) if isinstance(value, str) else value for name, value in verdict.evidence.items()
            },
            warnings=tuple(clean(text) for text in verdict.warnings),
            transcript=clean(verdict.transcript),
            duration_seconds=duration_seconds,
        )
