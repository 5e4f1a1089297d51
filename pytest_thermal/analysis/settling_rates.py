"""At which rate a standard calls a temperature settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class SettlingRate:
    """A temperature counts as settled when it changes by at most ``kelvin`` in ``seconds``."""

    name: str
    kelvin: float
    seconds: float
    origin: str
    """Where the figure is from."""

    @property
    def per_second(self) -> float:
        """In kelvin per second."""
        return self.kelvin / self.seconds


def _table(*rates: SettlingRate) -> Mapping[str, SettlingRate]:
    return MappingProxyType({rate.name: rate for rate in rates})


SETTLING_RATES = _table(
    SettlingRate(
        name="default",
        kelvin=1.0,
        seconds=300.0,
        origin="1 K in 5 min, the rate that IEC 62368-1 allows well below the limit",
    ),
    SettlingRate(name="iec62368", kelvin=3.0, seconds=1800.0, origin="IEC 62368-1: 3 K in 30 min"),
    SettlingRate(
        name="iec62368_below_limit",
        kelvin=1.0,
        seconds=300.0,
        origin="IEC 62368-1: 1 K in 5 min where the temperature is at least 10 % below its limit",
    ),
    SettlingRate(
        name="iec61010",
        kelvin=2.0,
        seconds=3600.0,
        origin="2 K in 1 h: how IECEE laboratories read IEC 61010-1 (decision sheet DSH 335), which has no rate",
    ),
    SettlingRate(name="iec60034", kelvin=2.0, seconds=3600.0, origin="IEC 60034-1, edition 12: 2 K in 1 h"),
    SettlingRate(name="iec60598", kelvin=1.0, seconds=3600.0, origin="IEC 60598-1: 1 K in 1 h"),
    SettlingRate(name="iec60335_2_6", kelvin=1.0, seconds=900.0, origin="IEC 60335-2-6: 1 K in 15 min"),
)
"""Rates by name. They say when a part counts as settled, not how far it still has to go."""
