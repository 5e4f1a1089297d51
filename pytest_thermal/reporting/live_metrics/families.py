"""The metrics by name, and a run's state in them.

Names follow Prometheus's conventions: base units at the end, a counter ends in ``_total``, what never changes is an
``_info``. Source: "Metric and label naming", https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_thermal import __version__
from pytest_thermal.model import Unit
from pytest_thermal.reporting.live_metrics.followed_run import Snapshot

if TYPE_CHECKING:
    from prometheus_client import Metric

PREFIX = "pytest_thermal"
OF_UNIT: Mapping[Unit, tuple[str, float, str]] = {
    Unit.CELSIUS: ("celsius", 1.0, "Temperature in °C."),
    Unit.KELVIN_MARGIN: ("margin_kelvin", 1.0, "Kelvin left to the device's own limit."),
    Unit.WATTS: ("watts", 1.0, "Power in watts."),
    Unit.RPM: ("rpm", 1.0, "Speed of a pump or fan in rounds per minute."),
    Unit.PERCENT: ("ratio", 0.01, "Utilisation and other shares, 0 to 1."),
    Unit.MEGAHERTZ: ("hertz", 1e6, "Clock in hertz."),
    Unit.VOLTS: ("volts", 1.0, "Voltage in volts."),
    Unit.AMPERES: ("amperes", 1.0, "Current in amperes."),
    Unit.LITERS_PER_MINUTE: ("liters_per_minute", 1.0, "Flow in litres per minute."),
    Unit.PASCALS: ("pascals", 1.0, "Pressure in pascals."),
    Unit.MILLISECONDS: ("seconds", 0.001, "Time spent in a state, such as slowed down by heat, in seconds."),
    Unit.BYTES: ("bytes", 1.0, "Memory in bytes."),
    Unit.COUNT: ("events", 1.0, "A count that the device keeps."),
    Unit.STATE: ("state", 1.0, "What a detector says: 0 all is well, 1 a warning, 2 an alarm."),
    Unit.BITS: ("bits", 1.0, "A register of flags."),
}
"""How a sensor's value is named: the end of its metric, what it is multiplied by, what it is."""
METRICS: Mapping[str, str] = {
    f"{PREFIX}_run_info": "The run that is going on; simulated says whether its readings are of the demo bench.",
    f"{PREFIX}_recording": "1 while the recorder writes.",
    f"{PREFIX}_phase": "1 for the phase that the run is in, 0 for the others of its plan.",
    f"{PREFIX}_phase_start_timestamp_seconds": "When the current phase began, unix time.",
    f"{PREFIX}_phase_planned_seconds": "How long each phase is to last.",
    f"{PREFIX}_load_running": "1 while a kind of load runs.",
    f"{PREFIX}_requests_total": "Inference requests of the load that ended, by outcome.",
    f"{PREFIX}_warnings_total": "Warnings of the run: thresholds crossed, sources that stopped answering.",
    f"{PREFIX}_errors_total": "Loads lost, critical thresholds crossed, and what broke the run.",
    f"{PREFIX}_sensor_coverage_ratio": "Readings present of those due in the current phase, 0 to 1.",
    **{f"{PREFIX}_sensor_{end}": text for end, _, text in OF_UNIT.values()},
}
"""Every metric with what it says."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """Whose run it is."""

    bench: str
    node: str
    redact: Callable[[str], str] = str
    """Takes keys out of labels."""


def families(now: Snapshot, named: Named) -> Iterator[Metric]:
    """The state as metrics of the client library. A missing reading has no sample; none is ever NaN."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily  # noqa: PLC0415

    own = {"bench": named.redact(named.bench), "node": named.redact(named.node)}

    def gauge(name: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Metric | None:
        return _filled(GaugeMetricFamily, name, samples)

    def counter(name: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Metric | None:
        return _filled(CounterMetricFamily, name, samples)

    def _filled(
        kind: type[GaugeMetricFamily | CounterMetricFamily],
        name: str,
        samples: Iterable[tuple[Mapping[str, str], float]],
    ) -> Metric | None:
        told = list(samples)
        if not told:
            return None
        labels = [*told[0][0], *own]
        family = kind(f"{PREFIX}_{name}", METRICS[f"{PREFIX}_{name}"], labels=labels)
        for more, value in told:
            family.add_metric([named.redact(text) for text in more.values()] + list(own.values()), value)
        return family

    info = InfoMetricFamily(f"{PREFIX}_run", METRICS[f"{PREFIX}_run_info"])
    simulated = "true" if now.simulated else "false"
    info.add_metric([], {"run": named.redact(now.run), "simulated": simulated, "version": __version__, **own})
    phases = list(now.planned_seconds) or ([now.phase] if now.phase else [])
    found = [
        gauge("recording", [({}, float(now.recording))]),
        gauge("phase", [({"phase": name}, float(name == now.phase)) for name in phases]),
        gauge("phase_start_timestamp_seconds", [({"phase": now.phase}, now.phase_start_seconds)] if now.phase else []),
        gauge(
            "phase_planned_seconds",
            [({"phase": name}, float(now.planned_seconds[name])) for name in now.planned_seconds],
        ),
        gauge("load_running", [({"load": kind}, float(on)) for kind, on in now.loads.items()]),
        counter("requests_total", [({"outcome": name}, float(count)) for name, count in now.requests.items()]),
        counter("warnings_total", [({}, float(now.warnings))]),
        counter("errors_total", [({}, float(now.errors))]),
        gauge("sensor_coverage_ratio", [(_of(now, sensor), share) for sensor, share in now.coverage.items()]),
        *(
            gauge(
                f"sensor_{end}",
                [
                    (_of(now, sensor), value * factor)
                    for sensor, value in now.readings.items()
                    if now.sensors[sensor].unit is unit
                ],
            )
            for unit, (end, factor, _) in OF_UNIT.items()
        ),
    ]
    yield info
    yield from (family for family in found if family is not None)


def _of(now: Snapshot, sensor: str) -> dict[str, str]:
    return {"sensor": sensor, "device": now.sensors[sensor].device}
