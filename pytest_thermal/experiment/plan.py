"""How long each phase lasts, how often sensors are read, and where each of these came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_thermal.bench import Bench
from pytest_thermal.model.phases import PHASES
from pytest_thermal.model.said import joined, say

BASELINE_SECONDS = 300.0
"""Long enough for a mean over its last minute, and to see that the bench is cold and idle."""
COOLDOWN_SECONDS = 600.0
"""Long enough to see a rebound, which is looked for over half a minute and more."""
LIMIT_SECONDS = 300.0
DEMO_SECONDS: Mapping[str, float] = {"baseline": 12.0, "ramp": 10.0, "steady": 26.0, "limit": 12.0, "cooldown": 14.0}
"""Wall seconds of the demo bench's phases: about a minute."""
DEMO_PERIOD_SECONDS = 0.25
DEMO_TIME_SCALE = 20.0
"""Seconds of a real loop that pass in a second of the demo bench."""
LEAST_TICKS = 3
"""A phase with fewer readings than this says nothing."""
SETUP_SECONDS = 300.0
"""For what is around the phases: sources that start, an idle check that waits, loads that are taken off."""


class PlanError(ValueError):
    """A plan that cannot be run; the text says what to change."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Phases in their order, in wall seconds.

    Raises:
        PlanError: A phase is too short to be measured.
    """

    seconds: Mapping[str, float]
    """By phase; a phase that is not in it is not run."""
    period_seconds: float
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each length came from, by phase."""
    time_scale: float = 1.0
    """How many times faster than a real one the bench's loop is: above 1 only on the demo bench."""
    wait_seconds: float = 0.0
    """At most for other nodes, before each phase."""

    def __post_init__(self) -> None:
        for name in self.names:
            seconds = self.seconds[name]
            if not (math.isfinite(seconds) and seconds >= LEAST_TICKS * self.period_seconds):
                raise PlanError(
                    say(
                        "{name}: {seconds:g} s ({get}) holds fewer than {least_ticks} readings at one every "
                        "{period_seconds:g} s\nlikely: a unit was forgotten, or the sample interval is meant for "
                        "a longer run\ntry: {get_2} of at least {least_ticks_2:g} s, or a shorter sample interval "
                        "in the bench file",
                        name=name,
                        seconds=seconds,
                        get=self.origins.get(name, "default"),
                        least_ticks=LEAST_TICKS,
                        period_seconds=self.period_seconds,
                        get_2=self.origins.get(name, "the option"),
                        least_ticks_2=LEAST_TICKS * self.period_seconds,
                    )
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The phases that are run, in order."""
        return tuple(name for name in PHASES if name in self.seconds)

    @property
    def total_seconds(self) -> float:
        """All phases together, without what is around them."""
        return sum(self.seconds[name] for name in self.names)

    @property
    def loaded_seconds(self) -> float:
        """From the ramp's start until the load is taken off."""
        return sum(self.seconds[name] for name in self.names if name in ("ramp", "steady", "limit"))

    @property
    def timeout_seconds(self) -> float:
        """After which a run certainly hangs: for pytest-timeout."""
        return self.total_seconds + SETUP_SECONDS + self.wait_seconds * len(self.names)

    @property
    def loaded_most_seconds(self) -> float:
        """``loaded_seconds``, with all waiting for other nodes that may come in between."""
        loaded = sum(name in self.seconds for name in ("ramp", "steady", "limit"))
        return self.loaded_seconds + self.wait_seconds * loaded

    def until(self, phase: str) -> tuple[str, ...]:
        """The phases up to and including that one.

        Raises:
            PlanError: It is not in the plan.
        """
        if phase not in self.names:
            raise PlanError(
                say("this run has no {phase} phase; it has: {names}", phase=phase, names=joined(", ", self.names))
            )
        return self.names[: self.names.index(phase) + 1]


def plan_for(
    bench: Bench, given: Mapping[str, tuple[float, str]], *, with_limit: bool = False, wait_seconds: float = 0.0
) -> Plan:
    """The plan of a bench: what was given, else its files, else the defaults.

    Args:
        bench: Its ``stress`` says how long ramp (``warmup_seconds``) and steady last.
        given: From the command line: phase → seconds and the option's name.
        with_limit: Whether the limit phase is run too.
        wait_seconds: How long other nodes are waited for, at most, before each phase.

    Raises:
        PlanError: A phase is too short to be measured.
    """
    seconds: dict[str, float] = {}
    origins: dict[str, str] = {}
    stress = bench.stress
    files = {"ramp": ("stress.warmup_seconds", stress.warmup_seconds)}
    files["steady"] = ("stress.duration_seconds", stress.duration_seconds)
    defaults = {"baseline": BASELINE_SECONDS, "limit": LIMIT_SECONDS, "cooldown": COOLDOWN_SECONDS}
    for name in PHASES:
        if name == "limit" and not with_limit:
            continue
        setting, from_file = files.get(name, ("", 0.0))
        if name in given:
            seconds[name], origins[name] = given[name]
        elif setting and bench.origins.get(setting, "default") != "default":
            seconds[name], origins[name] = from_file, bench.origins[setting]
        elif bench.demo:
            seconds[name], origins[name] = DEMO_SECONDS[name], "the demo bench"
        else:
            seconds[name], origins[name] = from_file or defaults[name], "default"
    from_file = bench.origins.get("monitor.sample_interval_seconds", "default") != "default"
    period = DEMO_PERIOD_SECONDS if bench.demo and not from_file else bench.monitor.sample_interval_seconds
    return Plan(
        seconds=seconds,
        period_seconds=period,
        origins=origins,
        time_scale=DEMO_TIME_SCALE if bench.demo else 1.0,
        wait_seconds=wait_seconds,
    )
