"""``fleet.toml``: which nodes a fleet has, and where they and their cards sit, so that a warm place is no bad card.

    [fleet]
    name = "pod 3"

    [[node]]
    host = "n[01-24]"
    rack = "R1"
    branch = "A"

    [[card]]
    device = "gpu[0-3]"
    manifold = "front"

Tables of one host add up, the later one counts; so do those of one card. Without ``host`` a card's table is about every
node.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_thermal.bench.errors import BenchError, Problem
from pytest_thermal.bench.host_list import expand_nodes
from pytest_thermal.bench.read import UnreadableError, read_file
from pytest_thermal.bench.secrets import Redactor
from pytest_thermal.model.said import joined, say, words_of

FLEET_FILE = "fleet.toml"
PLACES = ("rack", "slot", "branch", "manifold")
"""Kinds of places that a node, or a card in its node, can have."""
CARD_SLOT = "card slot"
"""A card's slot in its node, which is another kind of place than a node's slot in its rack."""
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "fleet": ("name",),
    "node": ("host", *PLACES),
    "card": ("device", "host", *PLACES),
}
_NEEDED = {"node": "host", "card": "device"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class FleetFile:
    """What the file says."""

    path: Path
    name: str = ""
    hosts: tuple[str, ...] = ()
    """Every node that is expected, in the file's order."""
    places: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Host → kind of place → its name."""
    cards: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    """(Host, or ``""`` for every one, and device) → kind of place → its name."""

    def position(self, host: str, device: str) -> dict[str, str]:
        """Where a card sits: its node's places, and its own, which count where both name one kind."""
        return {
            **self.places.get(host, {}),
            **self.cards.get(("", device), {}),
            **self.cards.get((host, device), {}),
        }


def read_fleet_file(path: Path) -> FleetFile:
    """Read ``fleet.toml``.

    Raises:
        BenchError: It cannot be read, holds a key that is not known, or a value that cannot be meant; all at once.
    """
    try:
        tree = read_file(path.parent, path.name)
    except UnreadableError as error:
        raise BenchError.of([error.problem], folder=path.parent, redact=Redactor().text) from None
    reading = _Reading(path)
    found = reading.read(tree)
    if reading.problems:
        raise BenchError.of(reading.problems, folder=path.parent, redact=Redactor().text)
    return found


def _hosts(text: str) -> tuple[str, ...]:
    """Names of hosts, or of devices, from a list.

    Raises:
        ValueError: It is none.
    """
    names = expand_nodes(text)
    bad = [name for name in names if not _NAME.fullmatch(name)]
    if bad or not names:
        raise ValueError(say("{name!r} is no name of a host", name=bad[0]) if bad else say("it names no host"))
    return names


class _Reading:
    """One reading of the file, and everything that is wrong with it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problems: list[Problem] = []

    def read(self, tree: Mapping[str, object]) -> FleetFile:
        name = ""
        places: dict[str, dict[str, str]] = {}
        cards: dict[tuple[str, str], dict[str, str]] = {}
        for section, value in tree.items():
            if section not in _SECTIONS:
                self._unknown(section, _SECTIONS, "")
            elif section == "fleet":
                table = self._table(value, "fleet", "[fleet]")
                name = table.get("name", "")
            else:
                for number, one in enumerate(value if isinstance(value, list) else [value], 1):
                    where = f"[[{section}]] #{number}"
                    table = self._table(one, section, where)
                    own = {kind: table[kind] for kind in PLACES if kind in table}
                    hosts = self._hosts(table.get("host"), f"{where} host")
                    if section == "node":
                        for host in hosts:
                            places.setdefault(host, {}).update(own)
                        continue
                    if "slot" in own:
                        own[CARD_SLOT] = own.pop("slot")
                    for device in self._hosts(table.get("device"), f"{where} device"):
                        for host in hosts or ("",):
                            cards.setdefault((host, device), {}).update(own)
        for host in dict.fromkeys(host for host, _ in cards if host and host not in places):
            near = difflib.get_close_matches(host, places, n=1)
            self._problem(
                f"[[card]] host {host}",
                say("is no node of this file; nearest is {name}", name=near[0])
                if near
                else say("is no node of this file"),
                say("a slip in the name"),
                say("name a node of this file, or leave host out for all of them"),
            )
        return FleetFile(path=self._path, name=name, hosts=tuple(places), places=places, cards=cards)

    def _table(self, value: object, section: str, where: str) -> dict[str, str]:
        if not isinstance(value, Mapping):
            self._problem(
                where, say("is {value}, and not a table", value=repr(value)), say("one pair of brackets too few"),
                f"[{section}]" if section == "fleet" else say("[[{section}]], with its keys below", section=section),
            )  # fmt: skip
            return {}
        found = {}
        for key, one in value.items():
            if key not in _SECTIONS[section]:
                self._unknown(key, _SECTIONS[section], where)
            elif isinstance(one, bool) or not isinstance(one, (str, int)) or not str(one).strip():
                self._problem(
                    f"{where} {key}", say("is {value}, and no name and no number", value=repr(one)), "", f'{key} = "…"'
                )
            else:
                found[str(key)] = str(one).strip()
        needed = _NEEDED.get(section)
        if needed is not None and needed not in value:
            self._problem(where, say("has no {key}", key=needed), say("a key was forgotten"), f'{needed} = "…"')
        return found

    def _hosts(self, text: str | None, where: str) -> tuple[str, ...]:
        if text is None:
            return ()
        try:
            return _hosts(text)
        except ValueError as error:
            self._problem(
                where,
                say("{text!r}: {error}", text=text, error=words_of(error)),
                say("a slip in the list"),
                say('such as "n[01-24]", or "n01,n02"'),
            )
            return ()

    def _unknown(self, key: str, known: Iterable[str], where: str) -> None:
        names = list(known)
        near = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.0)
        self._problem(
            f"{where} {key}".strip(),
            say("is not a known key; nearest known key: {key}", key=near[0] if near else names[0]),
            say("a slip of the pen, or a key of another file"),
            say("known here: {names}", names=joined(", ", names)),
        )

    def _problem(self, where: str, seen: str, likely: str, remedy: str) -> None:
        self.problems.append(
            Problem(
                where=f"{self._path.name}: {where}", seen=seen, likely=likely or say("a slip of the pen"), remedy=remedy
            )
        )
