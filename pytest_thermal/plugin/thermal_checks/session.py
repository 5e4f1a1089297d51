"""Where the thermal run of this process comes from: made on the bench, or read from what was recorded before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import active_bench
from pytest_thermal.plugin.keys import THERMAL
from pytest_thermal.plugin.thermal_checks.extras import require_thermal_extra
from pytest_thermal.plugin.thermal_checks.judged_run import ThermalRun

if TYPE_CHECKING:
    from pytest_thermal.bench import Monitor
    from pytest_thermal.findings import Judgement, Limits
    from pytest_thermal.model import Finding
    from pytest_thermal.model.readings import Sensor
    from pytest_thermal.recording import Recording

ARCHIVE = "reports/runs"
STOP_FILE = "stop"
"""In the meeting place of xdist's workers: end what takes long."""


@dataclass(frozen=True, kw_only=True)
class ThermalEnding:
    """What a process tells of its thermal run; plain data, since it travels from xdist's workers."""

    node: str
    head: Sequence[str]
    findings: Sequence[dict[str, Any]] = field(default_factory=list)
    phases: Sequence[dict[str, Any]] = field(default_factory=list)
    """Key figures of each phase."""
    rows: Sequence[dict[str, Any]] = field(default_factory=list)
    """Key figures of each sensor."""
    lines: Sequence[str] = field(default_factory=list)
    """Where the run lies, what loaded it, how the sampling went."""
    evidence: str = ""
    """``measured``, or that it is simulated; empty where there is none."""
    machine: Mapping[str, str] = field(default_factory=dict)
    """What the run says of the machine it was made on; only where a report asks for it."""


def thermal_session(config: pytest.Config) -> ThermalSession:
    """The thermal run of this process, found when first asked for.

    Raises:
        pytest.UsageError: what is to be replayed cannot be read, or the plan cannot be run.
    """
    found = config.stash.get(THERMAL, None)
    if found is None:
        found = config.stash[THERMAL] = _make(config)
        config.add_cleanup(found.close)
    return found


class ThermalSession(ABC):
    """One thermal run, its limits, and what there is to say of it at the end."""

    def __init__(self, config: pytest.Config, *, demo: bool) -> None:
        self.config = config
        self.simulated = demo
        self.noted: list[Finding] = []
        """What tests asked of this run, in their order."""
        self.report: Path | None = None
        """The page of the run, once it is written."""
        self.history: Path | None = None
        """The page of all runs of the archive, once it is written."""
        self.by_third_parties: list[Finding] = []
        """What criteria of somebody else's concluded at the end."""
        self.bad_by_third_parties = False
        """Whether a criterion of somebody else's failed or could not be judged: that ends no test."""
        self._judged: tuple[object, Judgement] | None = None

    # ------------------------------------------------------------------------------ what a kind of session must know

    @property
    @abstractmethod
    def phases(self) -> Sequence[str]:
        """The phases of the run, in order."""

    @property
    @abstractmethod
    def sensors(self) -> Sequence[Sensor]:
        """Every sensor of the run."""

    @property
    @abstractmethod
    def path(self) -> Path | None:
        """Where the run lies."""

    @property
    @abstractmethod
    def inference(self) -> bool:
        """Whether inference requests are part of the load."""

    @abstractmethod
    def ensure(self, phase: str) -> None:
        """Have that phase, and those before it."""

    def broken(self) -> str:
        """Why nothing more can be had of this run; empty while nothing is wrong."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """End the run, if it goes on."""

    @abstractmethod
    def conclude(self, *, interrupted: bool) -> None:
        """End the run and keep what was concluded; after an interrupt there is no time to judge."""

    @abstractmethod
    def state(self) -> object:
        """What a judgement holds for: it is made anew when this changes."""

    @abstractmethod
    def recording(self) -> Recording:
        """What is recorded so far."""

    # ------------------------------------------------------------------------------------------------------ judgement

    def limits(self) -> Limits:
        """The limits of the bench, each with where it came from."""
        from pytest_thermal.findings import limits_for

        monitor, origin = self.thresholds()
        wanted = options.value(self.config, "settling")
        settling = ("default", "default") if wanted is None else (wanted, "command line --settling")
        try:
            return limits_for(monitor, origin=origin, overrides=options.limits(self.config), settling=settling)
        except ValueError as error:
            raise pytest.UsageError(*error.args) from None

    def thresholds(self) -> tuple[Monitor, Callable[[str], str]]:
        """The thresholds to judge by, and where each came from."""
        bench = active_bench(self.config).bench
        return bench.monitor, bench.origin

    def header(self) -> list[str]:
        """What the header says of it."""
        return active_bench(self.config).header()

    def judgement(self) -> Judgement:
        """What is recorded so far, judged."""
        state = self.state()
        if self._judged is None or self._judged[0] != state:
            self._judged = (state, self._judge())
        return self._judged[1]

    def _judge(self) -> Judgement:
        from pytest_thermal.findings import Judgement, choose_earlier, is_simulated, time_scale_of

        recording = self.recording()
        against = options.value(self.config, "against") or "latest"
        return Judgement(
            recording,
            self.limits(),
            earlier=choose_earlier(archive(self.config), recording, against),
            time_scale=time_scale_of(recording.facts),
            simulated=is_simulated(recording.facts),
        )

    def third_parties(self) -> list[Finding]:
        """What the hook for criteria of one's own concludes."""
        from pytest_thermal.model import Finding, Outcome
        from pytest_thermal.reporting.observed import finding_of, plain_finding

        found: list[Finding] = []
        run = ThermalRun(self, self.limits())
        try:
            for more in self.config.hook.pytest_thermal_criteria(config=self.config, run=run):
                found += [one for one in more or () if isinstance(one, Finding)]
        except Exception as error:  # noqa: BLE001 - somebody else's code must not take the run's own findings along
            found.append(
                Finding(
                    check="criteria",
                    layer="criteria",
                    subject="pytest_thermal_criteria",
                    outcome=Outcome.INCONCLUSIVE,
                    seen=say(
                        "the hook of a conftest.py or plugin failed: {name}: {error}",
                        name=type(error).__name__,
                        error=error,
                    ),
                    likely=say("it asks for a figure or a phase that this run does not have"),
                    advice=say("let it return no finding where it has nothing to judge"),
                )
            )
        # Others have the key too, and values of any kind; what is written from here on is text and plain numbers.
        redactor = active_bench(self.config).redactor
        found = [finding_of(cast("dict[str, Any]", redactor.data(plain_finding(one)))) for one in found]
        self.by_third_parties = found
        self.bad_by_third_parties = any(one.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE) for one in found)
        return found

    # ------------------------------------------------------------------------------------------------------ at the end

    @abstractmethod
    def ending(self, node: str) -> ThermalEnding | None:
        """What to tell of this run; None where it never began."""


def archive(config: pytest.Config) -> Path:
    """The folder of run directories."""
    return config.invocation_params.dir / Path(options.value(config, "runs") or ARCHIVE).expanduser()


def _make(config: pytest.Config) -> ThermalSession:
    require_thermal_extra()
    given = options.value(config, "replay")
    if given is None:
        from pytest_thermal.plugin.thermal_checks.live_session import LiveSession

        return LiveSession(config)
    if config.getoption("thermal_prometheus_port", None) is not None:
        raise pytest.UsageError(
            "--prometheus-port serves a run while it goes on, and --replay makes none\ntry: leave one of them out"
        )
    from pytest_thermal.plugin.thermal_checks.replay_session import ReplaySession
    from pytest_thermal.recording import RecordingError, open_recording

    path = config.invocation_params.dir / Path(given).expanduser()
    try:
        return ReplaySession(config, open_recording(path))
    except RecordingError as error:
        raise pytest.UsageError(say("--replay: {error}", error=error.message)) from None
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise pytest.UsageError(
            say(
                "--replay: {path}: damaged: {name}: {error}\nlikely: run.json was edited by hand, or is "
                "of another program\ntry: restore it from a backup",
                path=path,
                name=type(error).__name__,
                error=error,
            )
        ) from None


def ending_of(session: ThermalSession, node: str, head: Sequence[str]) -> ThermalEnding:
    """What there is to tell of a run, whatever kind of session it is of."""
    from pytest_thermal.plugin.thermal_checks.summary import findings_of, lines_of, phases_of, rows_of

    broken = session.broken()
    if session.path is None:  # it broke before there was anything to record
        return ThermalEnding(node=node, head=head, lines=[broken])
    return ThermalEnding(
        node=node,
        head=head,
        findings=findings_of(session),
        phases=phases_of(session),
        rows=rows_of(session),
        lines=lines_of(session),
        evidence="SIMULATED (demo bench)" if session.simulated else "measured",
        machine=_machine(session),
    )


def _machine(session: ThermalSession) -> Mapping[str, str]:
    if not session.config.getoption("allure_report_dir", None):
        return {}
    from pytest_thermal.reporting.run_environment import run_environment

    return run_environment(session.judgement().recording)


def run_of(config: pytest.Config) -> ThermalRun:
    """The facade that tests get."""
    session = thermal_session(config)
    return ThermalRun(session, session.limits())
