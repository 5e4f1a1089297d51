"""What is known of one recording: figures worked out when a check first asks for them, each once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from pytest_thermal.analysis import (
    Answer,
    Coverage,
    LoadProof,
    LoopFault,
    LoopSensors,
    LoopShape,
    TemperatureFigures,
    analyse_temperature,
    judge_idle,
    level,
    measure_coverage,
    measure_shape,
    name_loop_fault,
    not_comparable,
    own_share,
    prove_load,
    resistance,
    throughput_held,
)
from pytest_thermal.analysis.load_proof import LEAST_HELD
from pytest_thermal.analysis.own_time import LEAST_OWN_SHARE_SERVING
from pytest_thermal.analysis.windows import level_window
from pytest_thermal.findings.devices import power_of, utilization_of
from pytest_thermal.findings.foreign_phases import find_phases
from pytest_thermal.findings.limits import Limits
from pytest_thermal.findings.run_events import own_times
from pytest_thermal.findings.run_facts import (
    comparable_facts,
    is_simulated,
    is_to_be_loaded,
    planned_loads,
    serves_itself,
)
from pytest_thermal.findings.staleness import unproven
from pytest_thermal.findings.subjects import in_order, is_heated, main_temperature
from pytest_thermal.findings.telling import span
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.kinds import Kind, is_pump, kind_of
from pytest_thermal.model.said import first_part, say
from pytest_thermal.model.series import Figure, FloatArray, Phase, Series
from pytest_thermal.recording import Recording

IDLE_POWER_SHARE = 0.25
"""Of the power in steady: a device whose utilisation nobody measures is idle below this. Own criterion: accelerators
idle at a tenth to a fifth of their power."""
COUNTED_TOKENS = 0.95
"""Share of the answers that must say how many tokens they hold before tokens are counted instead of answers."""

_Value = TypeVar("_Value")


class Material:
    """One recording in the time of a real bench, its limits, and the figures of each sensor and device.

    Args:
        recording: Its times stretched already where its loop was faster than a real one.
        limits: Of its bench.
        loads: What was to be loaded; None: what the run says of itself.
        earlier: An earlier, comparable run, to tell by what has changed what is wrong with the loop.
    """

    def __init__(
        self,
        recording: Recording,
        limits: Limits,
        *,
        loads: Collection[str] | None = None,
        earlier: Material | None = None,
    ) -> None:
        self.why_no_phases = "" if recording.phases else say("it ended before its first phase")
        self.phases_from = ""
        if not recording.phases and recording.state == "foreign":
            found, device = find_phases(recording)
            recording = replace(recording, phases=found.phases)
            self.why_no_phases = found.reason
            self.phases_from = (
                say("{found_origin} of {device}", found_origin=found.origin, device=device) if found.phases else ""
            )
        self.recording = recording
        self.limits = limits
        self.loads = planned_loads(recording.facts) if loads is None else frozenset(loads)
        self.earlier = earlier
        self.phases: Mapping[str, Phase] = {phase.name: phase for phase in recording.phases}
        self.sensors: tuple[Sensor, ...] = in_order(one.sensor for one in recording.series.values())
        self._known: dict[tuple[str, str], object] = {}

    @property
    def is_foreign(self) -> bool:
        """Whether it is a log from elsewhere."""
        return self.recording.state == "foreign"

    def series(self, sensor_id: str) -> Series | None:
        """Its readings as recorded."""
        return self.recording.series.get(sensor_id)

    def main(self, device: str) -> Sensor | None:
        """The temperature that stands for a device."""
        return main_temperature(device, self.sensors)

    def is_main(self, sensor: Sensor) -> bool:
        """Whether it is the temperature that stands for its device."""
        main = self.main(sensor.device)
        return main is not None and main.id == sensor.id

    def to_be_loaded(self, device: str) -> bool:
        """Whether the plan of the run puts that device under load."""
        return is_to_be_loaded(device, self.loads)

    # ------------------------------------------------------------------------------------------------ of one sensor

    def figures(self, series: Series) -> TemperatureFigures:
        """All figures of one temperature."""
        sensor = series.sensor
        return self._once(
            "figures",
            sensor.id,
            lambda: analyse_temperature(
                series,
                self.recording.phases,
                power=power_of(sensor.device, self.recording.series),
                rate=self.limits.rate,
                heated=is_heated(sensor) and self.to_be_loaded(sensor.device),
            ),
        )

    def coverage(self, series: Series, phase: str) -> Coverage:
        """How much of a phase a sensor covered, spikes and dropouts taken out of a temperature."""
        if series.sensor.unit is Unit.CELSIUS:
            return self.figures(series).coverage[self.phases[phase].name]
        return self._once(phase, series.sensor.id, lambda: measure_coverage(series, self.phases[phase]))

    def unproven(self, series: Series) -> str:
        """Why its readings may be old ones, in words; empty where nothing says so."""
        return self._once("unproven", series.sensor.id, lambda: unproven(series, self.recording.series, self.phases))

    def shape(self, series: Series) -> LoopShape:
        """A temperature's curve taken apart."""
        return self._once("shape", series.sensor.id, lambda: self._shape(series))

    def fault(self, series: Series) -> LoopFault:
        """What the curves say is wrong with the loop that cools the device of that temperature."""
        main = self.main(series.sensor.device)
        if main is None:
            return LoopFault(kind=None, candidates=(), evidence=())
        of = self.recording.series[main.id]
        return self._once("fault", main.id, lambda: self._named_fault(of))

    def resistance(self, series: Series) -> Figure:
        """Thermal resistance of a device from the temperature that stands for it."""
        return self._once("resistance", series.sensor.id, lambda: self._resistance(series))

    # ------------------------------------------------------------------------------------------------ of one device

    def proof(self, device: str) -> LoadProof:
        """Whether a device was loaded in full through steady, and also in the stretch its level is taken from."""
        return self._once("proof", device, lambda: self._proof(device))

    def idle(self, device: str) -> tuple[Answer, str]:
        """Whether a device was idle in its baseline, and how that is known."""
        return self._once("idle", device, lambda: self._idle(device))

    @cached_property
    def throughput(self) -> Figure:
        """``throughput_held`` of the requests in steady, in tokens where the answers count them."""
        requests, steady = self.recording.requests, self.phases.get("steady")
        if requests is None or steady is None:
            return Figure.missing(
                "throughput_held", "ratio", say("no inference requests") if requests is None else NO_STEADY
            )
        done, tokens = self.answered()
        counted = bool(done.size) and float(np.mean(np.isfinite(tokens))) >= COUNTED_TOKENS
        amounts = np.nan_to_num(tokens) if counted else None
        held = throughput_held(done, steady, amounts=amounts)
        return replace(held, detail={**held.detail, "amounts": "tokens" if counted else "requests"})

    def answered(self) -> tuple[FloatArray, FloatArray]:
        """When each successful request ended, and its completion tokens (NaN where not told), shape (n,) each."""
        requests = self.recording.requests
        if requests is None:
            return np.empty(0), np.empty(0)
        done = requests.start_seconds + np.nan_to_num(requests.latency_seconds)
        good = (requests.status == 200) & ~requests.error.where(bool)
        return done[good], requests.completion_tokens[good]

    # ---------------------------------------------------------------------------------------------------------------

    def _once(self, what: str, name: str, make: Callable[[], _Value]) -> _Value:
        key = what, name
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]  # type: ignore[return-value]  # one key is only ever used with one type

    def _covered(self, series: Series | None, *phases: str) -> tuple[Series | None, str]:
        """A series that is complete in these phases, or None and why not."""
        if series is None:
            return None, say("not measured")
        for phase in phases:
            if phase in self.phases:
                covered = self.coverage(series, phase)
                if covered.complete is not Answer.YES:
                    return None, say("{covered} in {phase}", covered=first_part(covered.reason), phase=phase)
        return series, ""

    def _proof(self, device: str) -> LoadProof:
        steady = self.phases.get("steady")
        if steady is None:
            none = Figure.missing("load", "ratio", NO_STEADY)
            return LoadProof(
                proven=Answer.UNKNOWN, utilization=none, power=none, on_plateau=none, throughput=none, reason=NO_STEADY
            )
        series = self.recording.series
        use, no_use = self._covered(utilization_of(device, series), "steady")
        power, no_power = self._covered(power_of(device, series), "steady")
        # Of answers that another machine computes, this one's cards know nothing.
        here = serves_itself(self.recording.facts)
        served = self.throughput if kind_of(device) is Kind.ACCELERATOR and here else None
        # A device that is measured, though with holes, is not accused by the throughput: a gateway or a load generator
        # that stood still gets less of it too.
        is_measured = utilization_of(device, series) is not None or power_of(device, series) is not None
        if is_measured and served is not None and served.value is not None and served.value < LEAST_HELD:
            served = None
        # A simulated processor is as warm as its burner would make it on a machine of its own.
        burns = kind_of(device) is Kind.CPU and not is_simulated(self.recording.facts)
        spent = own_times(self.recording) if burns else ()
        least_own = self.limits["own_share_least"].value

        def proven(phase: Phase) -> LoadProof:
            return prove_load(
                phase,
                utilization=use,
                power=power,
                baseline=self.phases.get("baseline"),
                throughput=served,
                least_utilization=self.limits["utilization_least"].value,
                own=own_share(spent, phase.start_seconds, phase.end_seconds) if spent else None,
                least_own=min(least_own, LEAST_OWN_SHARE_SERVING) if here else least_own,
            )

        whole = proven(steady)
        if whole.proven is Answer.UNKNOWN and not whole.is_starved:
            return replace(
                whole,
                reason=say("utilisation: {why}; power: {no_power}", why=no_use, no_power=no_power or whole.reason),
            )
        if whole.proven is not Answer.YES:
            return whole
        start, end = level_window(steady)
        last = proven(replace(steady, start_seconds=start, end_seconds=end))
        if last.proven is Answer.YES:
            return whole
        why = say("in the last {end}: {reason}", end=span(end - start), reason=last.reason)
        return replace(whole, proven=last.proven, reason=why, own=last.own, is_starved=last.is_starved)

    def _idle(self, device: str) -> tuple[Answer, str]:
        baseline = self.phases.get("baseline")
        if baseline is None:
            return Answer.UNKNOWN, say("the run has no baseline")
        use, why = self._covered(utilization_of(device, self.recording.series), "baseline")
        if use is not None:
            answer, figure = judge_idle(baseline, utilization=use, most_utilization=self.limits["idle_most"].value)
            return answer, say(
                "utilisation {figure:.0f} %", figure=figure.value
            ) if figure.value is not None else figure.reason
        power, no_power = self._covered(power_of(device, self.recording.series), "baseline", "steady")
        steady = self.phases.get("steady")
        if power is None or steady is None:
            return Answer.UNKNOWN, say("utilisation: {why}; power: {no_power}", why=why, no_power=no_power or NO_STEADY)
        cold, hot = level(power, baseline).value, level(power, steady).value
        if cold is None or hot is None:
            return Answer.UNKNOWN, say("too few readings of the power")
        said = say("{cold:.0f} W, in steady {hot:.0f} W", cold=cold, hot=hot)
        return (Answer.YES if hot > 0 and cold <= IDLE_POWER_SHARE * hot else Answer.UNKNOWN), said

    def _shape(self, series: Series) -> LoopShape:
        found = self.figures(series)
        return measure_shape(
            found.clean,
            self.recording.phases,
            power=power_of(series.sensor.device, self.recording.series),
            constants=found.heating,
        )

    def _named_fault(self, series: Series) -> LoopFault:
        sensor = series.sensor
        found = self.figures(series)
        allowed = self.limits.rise(sensor)
        earlier = self._earlier_shape(sensor)
        return name_loop_fault(
            found.clean,
            self.recording.phases,
            self.shape(series),
            most_rise=math.inf if allowed is None else allowed[1].value,
            sensors=LoopSensors(
                power=power_of(sensor.device, self.recording.series),
                pump=self._one_of(is_pump),
                flow=self._one_of(_is_loop_flow),
                fan=self._one_of(_is_loop_fan),
                coolant_supply=self._one_of(_is_supply),
            ),
            health=found.health,
            rebound=found.rebound,
            earlier=earlier,
        )

    def _earlier_shape(self, sensor: Sensor) -> LoopShape | None:
        """Of an earlier run that may be compared with, and in which that device was loaded."""
        if self.earlier is None:
            return None
        series = self.earlier.series(sensor.id)
        if series is None or not_comparable(comparable_facts(self.recording), comparable_facts(self.earlier.recording)):
            return None
        return self.earlier.shape(series) if self.earlier.proof(sensor.device).proven is Answer.YES else None

    def _resistance(self, series: Series) -> Figure:
        found = self.figures(series)
        power = power_of(series.sensor.device, self.recording.series)
        steady, baseline = self.phases.get("steady"), self.phases.get("baseline")
        if power is None or steady is None:
            return Figure.missing(
                "resistance", "celsius/watt", say("power is not measured") if power is None else NO_STEADY
            )
        supply, room = self._one_of(_is_supply), self._one_of(_is_ambient)
        return resistance(
            found.steady,
            level(power, steady),
            coolant_supply=level(supply, steady) if supply is not None else None,
            ambient=level(room, steady) if room is not None else None,
            baseline=found.baseline,
            baseline_power=level(power, baseline) if baseline is not None else None,
        )

    def _one_of(self, wanted: Callable[[Sensor], bool]) -> Series | None:
        """The series of that kind, where there is one only: of two loops nobody says which cools what."""
        found = [one for one in self.recording.series.values() if wanted(one.sensor) and one.present.any()]
        return found[0] if len(found) == 1 else None


NO_STEADY = say("the run has no steady phase")


def _is_loop_fan(sensor: Sensor) -> bool:
    """A fan of its own, and none of a card or a processor."""
    return sensor.unit is Unit.RPM and not is_pump(sensor) and sensor.device.startswith(("fan", "radiator"))


def _is_loop_flow(sensor: Sensor) -> bool:
    """What flows through the machine, and not through the building."""
    return sensor.unit is Unit.LITERS_PER_MINUTE and not sensor.device.startswith("facility")


def _is_supply(sensor: Sensor) -> bool:
    return sensor.unit is Unit.CELSIUS and sensor.device.startswith("coolant_supply")


def _is_ambient(sensor: Sensor) -> bool:
    return sensor.unit is Unit.CELSIUS and sensor.device.startswith(("ambient", "room", "inlet"))
