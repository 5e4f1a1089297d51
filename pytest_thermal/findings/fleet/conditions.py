"""What must be alike in all nodes for their figures to mean something side by side, and which nodes differ in what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_thermal.analysis.drift import SAME_SECONDS, SAME_WATTS
from pytest_thermal.findings.run_facts import facts_of, is_simulated, time_scale_of
from pytest_thermal.findings.telling import few
from pytest_thermal.model import Sensor
from pytest_thermal.model.said import joined, say

POWER_LIMIT, STEADY, SENSORS = "power limit of ", "length of steady", "sensors"
NOT_SET = say("not told")
_MOST_NAMED = 3
_WHAT = {
    "bench": say("bench"),
    "product": say("product"),
    "bios": "BIOS",
    "evidence": say("what was read"),
    "model": say("model"),
    "firmware": say("firmware"),
    STEADY: say("length of steady"),
    SENSORS: say("sensors"),
}
Conditions = Mapping[str, str]
"""What of → what it is, in words."""


def conditions_of(facts: Mapping[str, Any], sensors: Iterable[Sensor], *, node: str) -> dict[str, str]:
    """The conditions of one run.

    A bench that is called as its node is one bench all the same. Versions of the kernel and of Python move no
    temperature and are left out.
    """
    known = list(sensors)
    base = facts_of(facts, known)
    found = {"bench": "" if base.bench in ("", node) else base.bench}
    found["evidence"] = (
        say("simulated, {scale:g} times as fast", scale=time_scale_of(facts))
        if is_simulated(facts)
        else say("measured")
    )
    host = _mapping(facts.get("host"))
    found |= {name: str(host.get(name) or NOT_SET) for name in ("product", "bios")}
    found |= {say("driver {name}", name=name): str(version) for name, version in _mapping(facts.get("drivers")).items()}
    cards = [one for one in _list(facts.get("accelerators")) if isinstance(one, Mapping)]
    for what in ("model", "firmware"):
        told = sorted({str(one.get(what)) for one in cards if one.get(what)})
        if told:
            found[say("{what} of the cards", what=_what(what))] = ", ".join(told)
    found |= {say("load: {key}", key=key): _said(value) for key, value in base.load.items()}
    found |= {
        say("power limit of {device}", device=device): f"{watts:g} W" for device, watts in base.power_limits.items()
    }
    if base.steady_seconds:
        found[STEADY] = f"{base.steady_seconds:g} s"
    found[SENSORS] = " ".join(sorted(text.partition(" (")[0] for text in base.sensors))
    return found


def usual_conditions(fleet: Iterable[Conditions]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What most nodes have of each condition, and which conditions no majority agrees on, in words.

    A condition that two values share equally has no usual one: who is right cannot be told from the runs.
    """
    every = list(fleet)
    counts: dict[str, Counter[str]] = {}
    for name in dict.fromkeys(name for one in every for name in one):
        counts[name] = Counter(_rounded(name, one.get(name, NOT_SET)) for one in every)
    usual, split = {}, []
    for name, counter in counts.items():
        (first, most), *rest = counter.most_common()
        if rest and rest[0][1] == most:
            split.append(
                say(
                    "{what}: {first} in {most} nodes, {second} in {most}",
                    what=_what(name),
                    first=_few(name, first),
                    second=_few(name, rest[0][0]),
                    most=most,
                )
            )
        else:
            usual[name] = first
    return usual, tuple(split)


def differences(own: Conditions, usual: Conditions) -> tuple[str, ...]:
    """In what a node differs from what is usual, one piece of text each; empty where it is comparable."""
    return tuple(_differences(own, usual))


def _differences(own: Conditions, usual: Conditions) -> Iterator[str]:
    for name, expected in usual.items():
        value = own.get(name, NOT_SET)
        if _alike(name, value, expected):
            continue
        if name == SENSORS:
            gone = sorted(set(expected.split()) - set(value.split()))
            new = sorted(set(value.split()) - set(expected.split()))
            said = [say("{count} missing ({names})", count=len(gone), names=_named(gone))] if gone else []
            said += [say("{count} more ({names})", count=len(new), names=_named(new))] if new else []
            yield say("other sensors: {names}", names=joined(", ", said))
        else:
            yield say(
                "{what} is {value}, and {usual} in the others",
                what=_what(name),
                value=value or NOT_SET,
                usual=expected or NOT_SET,
            )


def _alike(name: str, value: str, expected: str) -> bool:
    if value == expected:
        return True
    share = SAME_WATTS if name.startswith(POWER_LIMIT) else SAME_SECONDS if name == STEADY else None
    one, other = _leading(value), _leading(expected)
    if share is None or one is None or other is None:
        return False
    return abs(one - other) <= share * max(one, other)


def _rounded(name: str, value: str) -> str:
    """Tools print power limits rounded, each in its own way: 699.9 W and 700 W are one."""
    number = _leading(value) if name.startswith(POWER_LIMIT) else None
    return value if number is None else f"{number:.0f} W"


def _leading(text: str) -> float | None:
    try:
        return float(text.split(" ", 1)[0])
    except ValueError:
        return None


def _what(name: str) -> str:
    return _WHAT.get(name, name)


def _few(name: str, value: str) -> str:
    return say("{count} sensors", count=len(value.split())) if name == SENSORS else value or NOT_SET


def _named(names: list[str]) -> str:
    return few(names, _MOST_NAMED)


def _said(value: object) -> str:
    return say("not set") if value is None else str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
