"""Findings as OCP Test & Validation output (version 2.0): one JSON document a line, for a test executive of a factory.

A run of pytest is a test run, a test is a step, the number that a finding is about a measurement with its limit as a
validator, the finding itself a diagnosis: passed is PASS, failed is FAIL, and what is not known (inconclusive, blocked)
is UNKNOWN. What an advisory check says is a warning in the log. A device that findings name is a piece of hardware.

The result of the whole is PASS only where something was measured on the machine itself and nothing is open.

Needs ``ocptv`` (``pip install 'pytest-thermal[ocp]'``): nothing but `--ocp-diag` imports this module.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import ocptv.output as tv
from ocptv.output.config import get_config

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.reporting.headline import Headline, headline
from pytest_thermal.reporting.measured import unit_of
from pytest_thermal.reporting.observed import How, Observed, plain_scalar

_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_DEVICE = re.compile(r"[a-z_]+\d*")
THERMAL_ONLY = frozenset(
    {"coverage", "baseline", "threshold", "rise", "settled", "load", "throttling", "pump", "leak", "rebound", "drift"}
)
"""Checks whose subject is a sensor or a device of the machine."""


def ocp_lines(
    observed: Sequence[Observed],
    *,
    version: str,
    host: str,
    command: str,
    bench: str,
    started_seconds: float,
    ended_seconds: float,
    interrupted: str = "",
) -> list[str]:
    """The output as lines of JSON, without their ends.

    Args:
        observed: Every test of the run.
        version: Of pytest-thermal.
        host: The machine that the findings are about: the device under test.
        command: pytest's arguments, keys taken out.
        bench: The bench's name.
        started_seconds: Unix time of the run's begin; the times of steps come from their tests.
        ended_seconds: Unix time of its end.
        interrupted: Why it did not go to its end; empty where it did.
    """
    writer = _Writer(started_seconds)
    simulated = any(one.simulated for one in observed)
    with _writing_to(writer):
        dut = tv.Dut(id=host, name=bench or None, metadata=tv.Metadata(simulated=simulated))
        dut.add_software_info("pytest-thermal", type=tv.SoftwareType.APPLICATION, version=version)
        hardware = {device: dut.add_hardware_info(device) for device in _devices(observed)}
        run = tv.TestRun("pytest-thermal", version, command_line=command, parameters={"bench": bench})
        run.start(dut=dut)
        if simulated:
            run.add_log(
                tv.LogSeverity.WARNING, "SIMULATED: the demo bench stood in for the machine", source_location=None
            )
        for one in observed:
            if one.how in (How.NOT_RUN, How.DESELECTED):
                continue
            writer.at_seconds = one.start_seconds or writer.at_seconds
            _step(run, one, hardware, writer)
        writer.at_seconds = ended_seconds
        if interrupted:
            run.add_error(symptom="interrupted", message=interrupted, source_location=None)
        status, result = _result(observed, interrupted=bool(interrupted))
        run.end(status=tv.TestStatus(status), result=tv.TestResult(result))
    return writer.lines


class _Writer(tv.Writer):
    """Keeps lines. The library stamps each with the time of writing; here a test's own time is what counts."""

    def __init__(self, at_seconds: float) -> None:
        self.lines: list[str] = []
        self.at_seconds = at_seconds

    def write(self, buffer: str) -> None:
        """Called by the library with one document."""
        data = json.loads(buffer)
        stamp = dt.datetime.fromtimestamp(self.at_seconds, tz=dt.timezone.utc).isoformat(timespec="milliseconds")
        data["timestamp"] = stamp.replace("+00:00", "Z")
        self.lines.append(json.dumps(data, ensure_ascii=False, allow_nan=False))


@contextmanager
def _writing_to(writer: Any) -> Iterator[None]:
    """The library has one configuration for the whole process: what it was comes back afterwards."""
    config = get_config()
    before = config.writer
    config.writer = writer
    try:
        yield
    finally:
        config.writer = before


def _step(run: tv.TestRun, one: Observed, hardware: Mapping[str, Any], writer: _Writer) -> None:
    step = run.add_step(one.test)
    step.start()
    writer.at_seconds = one.stop_seconds or writer.at_seconds
    for found in one.findings:
        _measure(step, found, hardware)
        _diagnose(step, found, one, hardware)
    if one.how is How.BROKEN and not any(found.outcome is Outcome.INCONCLUSIVE for found in one.findings):
        step.add_error(symptom="test-error", message=one.message or "no word", source_location=None)
    elif one.how is How.FAILED and not any(found.outcome is Outcome.FAILED for found in one.findings):
        verdict = f"{_word(one.test.rsplit('::', 1)[-1])}-fail"
        step.add_diagnosis(tv.DiagnosisType.FAIL, verdict=verdict, message=one.message or None, source_location=None)
    elif one.how in (How.SKIPPED, How.EXPECTED) and not one.findings:
        step.add_log(tv.LogSeverity.INFO, f"{one.how}: {one.message or 'no reason'}", source_location=None)
    step.end(status=tv.TestStatus(_STATUS[one.how]))


_STATUS: Mapping[How, str] = {
    How.PASSED: "COMPLETE",
    How.FAILED: "COMPLETE",
    How.EXPECTED: "COMPLETE",
    How.BROKEN: "ERROR",
    How.SKIPPED: "SKIP",
}
_DIAGNOSIS: Mapping[Outcome, str] = {
    Outcome.PASSED: "PASS",
    Outcome.FAILED: "FAIL",
    Outcome.INCONCLUSIVE: "UNKNOWN",
    Outcome.BLOCKED: "UNKNOWN",
}


def _measure(step: Any, found: Finding, hardware: Mapping[str, Any]) -> None:
    """The number that the finding is about first, with its limit, then the others that have a unit."""
    number = headline(found)
    metadata = tv.Metadata(subject=found.subject)
    about = hardware.get(_device(found))
    if number is not None:
        step.add_measurement(
            name=number.name,
            value=number.value,
            unit=number.unit or None,
            validators=[_validator(number)] if number.limit is not None else [],
            hardware_info=about,
            metadata=metadata,
        )
    for name, value in found.evidence.items():
        plain = plain_scalar(value)
        is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
        told = number is not None and name == number.name
        if is_number and unit_of(name) and not told and not name.startswith(("limit", "target")):
            step.add_measurement(name=name, value=plain, unit=unit_of(name), hardware_info=about, metadata=metadata)


def _validator(number: Headline) -> Any:
    kind = tv.ValidatorType.GREATER_THAN_OR_EQUAL if number.at_least else tv.ValidatorType.LESS_THAN_OR_EQUAL
    return tv.Validator(
        type=kind,
        value=number.limit if number.limit is not None else 0.0,
        name="at least" if number.at_least else "at most",
        metadata=tv.Metadata(origin=number.limit_origin),
    )


def _diagnose(step: Any, found: Finding, one: Observed, hardware: Mapping[str, Any]) -> None:
    message = f"{found.subject}: {found.message}" if found.subject else found.message
    if one.simulated:
        message = f"simulated: {message}"
    if found.outcome is Outcome.SKIPPED:
        step.add_log(tv.LogSeverity.INFO, message, source_location=None)
    elif one.advisory and found.outcome is not Outcome.PASSED:
        step.add_log(tv.LogSeverity.WARNING, message, source_location=None)
    else:
        kind = _DIAGNOSIS[found.outcome]
        step.add_diagnosis(
            tv.DiagnosisType(kind),
            verdict=f"{'simulated-' if one.simulated else ''}{_word(found.check)}-{kind.lower()}",
            message=message,
            hardware_info=hardware.get(_device(found)),
            source_location=None,
        )
    for text in found.warnings:
        step.add_log(tv.LogSeverity.WARNING, text, source_location=None)


def _result(observed: Sequence[Observed], *, interrupted: bool) -> tuple[str, str]:
    """Status and result of the whole, in one of the combinations that the standard allows."""
    decisive = [one for one in observed if not one.advisory]
    if any(one.how is How.FAILED for one in decisive):
        return "COMPLETE", "FAIL"
    is_open = any(
        one.how in (How.BROKEN, How.NOT_RUN)
        or any(found.outcome in (Outcome.INCONCLUSIVE, Outcome.BLOCKED) for found in one.findings)
        for one in decisive
    )
    if interrupted or is_open:
        return "ERROR", "NOT_APPLICABLE"
    if not any(one.how is How.PASSED for one in decisive) or any(one.simulated for one in decisive):
        return "SKIP", "NOT_APPLICABLE"  # nothing of the machine itself was tested
    return "COMPLETE", "PASS"


def _devices(observed: Sequence[Observed]) -> list[str]:
    found = dict.fromkeys(_device(found) for one in observed for found in one.findings)
    return [device for device in found if device]


def _device(found: Finding) -> str:
    """The device that a thermal finding is about; empty for a domain, a phase, or nothing at all."""
    device = found.subject.partition(".")[0]
    return device if found.check in THERMAL_ONLY and device != "none" and _DEVICE.fullmatch(device) else ""


def _word(text: str) -> str:
    return _NAME.sub("-", text).strip("-").replace("_", "-") or "test"
