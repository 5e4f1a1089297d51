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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_thermal.bench.errors import BenchError, Problem
from pytest_thermal.bench.read import UnreadableError, read_file
from pytest_thermal.bench.secrets import Redactor

FLEET_FILE = "fleet.toml"
PLACES = ("rack", "slot", "branch", "manifold")
"""Kinds of places that a node, or a card in its node, can have."""
CARD_SLOT = "card slot"
"""A card's slot in its node, which is another kind of place than a node's slot in its rack."""
MOST_HOSTS = 100_000
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "fleet": ("name",),
    "node": ("host", *PLACES),
    "card": ("device", "host", *PLACES),
}
_NEEDED = {"node": "host", "card": "device"}
_RANGES = re.compile(r"([^\[\]]*)\[([\d,\s-]+)\](.*)")
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


def expand_hosts(text: str) -> tuple[str, ...]:
    """Names of hosts as batch systems write lists: ``n[01-03,7],gw1`` is n01, n02, n03, n7 and gw1.

    Raises:
        ValueError: It is no such list, or names one twice.
    """
    names = [name for part in _parts(text) for name in _expanded(part)]
    bad = [name for name in names if not _NAME.fullmatch(name)]
    if bad or not names:
        raise ValueError(f"{bad[0]!r} is no name of a host" if bad else "it names no host")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"{twice[0]} is there twice")
    return tuple(names)


def _parts(text: str) -> Iterator[str]:
    """Pieces between commas, but for commas in brackets."""
    yield from filter(None, (part.strip() for part in re.split(r",(?![^\[]*\])", text)))


def _expanded(text: str) -> Iterator[str]:
    match = _RANGES.fullmatch(text)
    if match is None:
        yield text
        return
    for piece in match[2].split(","):
        low, dash, high = (part.strip() for part in piece.partition("-"))
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ValueError(f"{piece.strip()!r} is no number and no range such as 01-24")
        numbers = range(int(low), int(high or low) + 1)
        if not 0 < len(numbers) <= MOST_HOSTS:
            raise ValueError(f"the range {piece.strip()} is empty, or has more than {MOST_HOSTS:,} hosts")
        for number in numbers:
            yield from _expanded(f"{match[1]}{number:0{len(low)}}{match[3]}")


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
                "is no node of this file" + (f"; nearest is {near[0]}" if near else ""),
                "a slip in the name",
                "name a node of this file, or leave host out for all of them",
            )
        return FleetFile(path=self._path, name=name, hosts=tuple(places), places=places, cards=cards)

    def _table(self, value: object, section: str, where: str) -> dict[str, str]:
        if not isinstance(value, Mapping):
            self._problem(
                where, f"is {value!r}, and not a table", "one pair of brackets too few",
                f"[{section}]" if section == "fleet" else f"[[{section}]], with its keys below",
            )  # fmt: skip
            return {}
        found = {}
        for key, one in value.items():
            if key not in _SECTIONS[section]:
                self._unknown(key, _SECTIONS[section], where)
            elif isinstance(one, bool) or not isinstance(one, (str, int)) or not str(one).strip():
                self._problem(f"{where} {key}", f"is {one!r}, and no name and no number", "", f'{key} = "…"')
            else:
                found[str(key)] = str(one).strip()
        needed = _NEEDED.get(section)
        if needed is not None and needed not in value:
            self._problem(where, f"has no {needed}", "a key was forgotten", f'{needed} = "…"')
        return found

    def _hosts(self, text: str | None, where: str) -> tuple[str, ...]:
        if text is None:
            return ()
        try:
            return expand_hosts(text)
        except ValueError as error:
            self._problem(where, f"{text!r}: {error}", "a slip in the list", 'such as "n[01-24]", or "n01,n02"')
            return ()

    def _unknown(self, key: str, known: Iterable[str], where: str) -> None:
        names = list(known)
        near = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.0)
        self._problem(
            f"{where} {key}".strip(),
            f"is not a known key; nearest known key: {near[0] if near else names[0]}",
            "a slip of the pen, or a key of another file",
            f"known here: {', '.join(names)}",
        )

    def _problem(self, where: str, seen: str, likely: str, remedy: str) -> None:
        self.problems.append(
            Problem(where=f"{self._path.name}: {where}", seen=seen, likely=likely or "a slip of the pen", remedy=remedy)
        )
