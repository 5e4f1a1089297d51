"""The source that is a Redfish service: its tree is walked once, and then only what holds readings is asked for."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_thermal.bench.files import REDFISH_PASSWORD
from pytest_thermal.model import Missing, Reading, Sensor
from pytest_thermal.model.kinds import is_leak_detector, is_part_of_pump
from pytest_thermal.model.said import say
from pytest_thermal.sensors.redfish.address import Address, address
from pytest_thermal.sensors.redfish.link import Link, Trouble, TroubleError
from pytest_thermal.sensors.redfish.reading_times import ReadingTimes
from pytest_thermal.sensors.redfish.resources import limits_of_sensor
from pytest_thermal.sensors.redfish.things import TIME, Quantity, Resource, Thing, part_of, readings, state_of
from pytest_thermal.sensors.redfish.units import measure
from pytest_thermal.sensors.redfish.walk import Walk
from pytest_thermal.sensors.source import Absent, Availability
from pytest_thermal.sensors.sysfs.files import natural, slug

NAME = "redfish"
PERIOD_SECONDS = 10.0
"""A controller takes a tenth of a second and more for each resource, and measures no oftener than every few seconds."""
READ_SECONDS = 18.0
"""For one reading of all: within two periods, as the recorder has it."""
WALK_SECONDS = 60.0
_SILENT_FROM_THE_START = frozenset({Missing.NOT_OFFERED, Missing.ABSENT, Missing.DEVICE_ERROR})
_INSTALL = say("the Python package redfish is not installed; try: pip install 'pytest-thermal[redfish]'")


def make(
    *, host: str | None = None, user: str | None = None, ca: str | None = None, roles: str = "{}"
) -> RedfishSource:
    """The source at ``host``, whose password is taken from $REDFISH_PASSWORD.

    Args:
        host: Name or number, with ``:port``; https unless it begins with ``http://``.
        user: None for a service that asks for none.
        ca: File with the certificate that is trusted; None for the system's.
        roles: Names of things by the device that the bench says they are, as JSON.
    """
    where = address(host) if host else say("redfish_host is not set")
    password = os.environ.get(REDFISH_PASSWORD, "")
    unfit = _why_unfit(where, user, password, ca)
    if unfit or isinstance(where, str):
        return RedfishSource(None, unfit=unfit)
    found = where

    def client() -> object:
        from pytest_thermal.sensors.redfish.client import Client  # noqa: PLC0415 - an extra

        return Client(found.url, ca=ca)

    link = Link(found, user=user, password=password, make_client=client)  # type: ignore[arg-type]  # an extra's class
    return RedfishSource(link, address=found, roles=json.loads(roles))


def _why_unfit(where: Address | str, user: str | None, password: str, ca: str | None) -> str:
    if isinstance(where, str):
        return where
    if user is not None and not password:
        return say("${name} is not set, and redfish_user wants a password", name=REDFISH_PASSWORD)
    if user is not None and where.is_open:
        return say("{url} would send the password for all to read; try: https://, or without http://", url=where.url)
    if ca is not None and not Path(ca).is_file():
        return say("redfish_ca: there is no file {path}", path=ca)
    return ""


@dataclass(frozen=True, kw_only=True)
class _Placed:
    """A thing with the sensors it is read for."""

    thing: Thing
    sensors: tuple[Sensor, ...]


class RedfishSource:
    """Sensors of one service. Used by one thread."""

    name = NAME

    def __init__(
        self,
        link: Link | None,
        *,
        address: Address | None = None,
        roles: Mapping[str, str] | None = None,
        unfit: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args tell whom to ask.

        Args:
            link: The way to it; None: it cannot be asked, for the reason in ``unfit``.
            address: Where it is.
            roles: By device: the name, or the address, of what the bench says it is.
            unfit: Why it cannot be asked.
            clock: The link's.
        """
        self._link = link
        self._address = address
        self._roles = dict(roles or {})
        self._unfit = unfit
        self._clock = clock
        self._availability: Availability | None = None
        self._placed: tuple[_Placed, ...] = ()
        self._absent: tuple[Absent, ...] = ()
        self._pages: dict[str, tuple[str, ...]] = {}
        self._times = ReadingTimes()

    def probe(self) -> Availability:
        """Whether it answers and has something to say: the walk through its tree."""
        if self._availability is None:
            self._availability = self._discover()
        return self._availability

    def sensors(self) -> Sequence[Sensor]:
        """What it measures."""
        self.probe()
        return tuple(sensor for placed in self._placed for sensor in placed.sensors)

    def absent(self) -> Sequence[Absent]:
        """What it has and does not measure, or what is not of the cooling."""
        self.probe()
        return self._absent

    def read(self) -> Sequence[Reading]:
        """One reading of each sensor, from as few requests as it takes."""
        self.probe()
        got = self._fetched(self._clock() + READ_SECONDS) if self._placed else {}
        found: list[Reading] = []
        for placed in self._placed:
            resource = got.get(placed.thing.uri)
            if isinstance(resource, Trouble) or resource is None:
                why = resource or Trouble(missing=Missing.ABSENT, said=say("not in the BMC's answer"))
                found += [Reading(sensor_id=one.id, missing=why.missing, detail=why.said) for one in placed.sensors]
            else:
                found += self._times.checked(
                    placed.thing.identity, resource.get(TIME), readings(placed.thing, resource), self._clock()
                )
        return found

    def close(self) -> None:
        """End the session."""
        if self._link is not None:
            self._link.close()

    # ----------------------------------------------------------------------------------------------------- discovery

    def _discover(self) -> Availability:
        link, where = self._link, self._address
        if self._unfit or link is None or where is None:
            return Availability(ok=False, reason=self._unfit)
        until = self._clock() + WALK_SECONDS

        def get(path: str) -> Resource:
            if self._clock() > until:
                raise TroubleError(
                    Missing.TIMEOUT,
                    say("its tree was not walked to the end within {seconds:g} s", seconds=WALK_SECONDS),
                    of_all=True,
                )
            return link.get(path, until=until)

        walk, trouble = Walk(get, where.path_of), ""
        try:
            walk.go()
        except TroubleError as error:
            trouble = error.trouble.said
        except ImportError:
            trouble = _INSTALL
        self._settle(walk)
        if not self._placed:
            reason = trouble or next(
                iter(walk.troubles), say("it has no fan, pump, coolant or power supply that it measures")
            )
            return Availability(ok=False, reason=reason)
        remarks = list(dict.fromkeys(filter(None, (trouble, *walk.troubles))))
        more = say("; and {count} more", count=len(remarks) - 1) if len(remarks) > 1 else ""
        reason = say("something may be lacking: {remark}{more}", remark=remarks[0], more=more) if remarks else ""
        return Availability(ok=True, reason=reason)

    def _settle(self, walk: Walk) -> None:
        """Names for all, and what of it is recorded: judged by what the walk itself has read."""
        resources = walk.seen
        placed: list[_Placed] = []
        absent: list[Absent] = []
        for thing, expected in _called(self._each_once(walk), self._roles):
            resource = resources.get(thing.uri)
            first = readings(thing, resource) if resource is not None else []
            sensors = [
                Sensor(
                    id=f"{thing.device}.{one.name}", unit=one.unit, device=thing.device, identity=thing.identity,
                    source=NAME, label=thing.name, limits=one.limits or self._own_limits(walk, one),
                )
                for one in thing.quantities
            ]  # fmt: skip
            kept = []
            for sensor, reading in zip(sensors, first, strict=False):
                why = "" if expected else thing.left_out or _silent(sensor, reading, thing, resource)
                if why:
                    missing = reading.missing if reading.missing and not thing.left_out else Missing.NOT_OFFERED
                    told = Reading(sensor_id=sensor.id, missing=missing, detail=why)
                    absent.append(Absent(sensor=sensor, reading=told))
                else:
                    kept.append(sensor)
            if kept:
                quantities = tuple(
                    one for one in thing.quantities if f"{thing.device}.{one.name}" in {s.id for s in kept}
                )
                placed.append(_Placed(thing=replace(thing, quantities=quantities), sensors=tuple(kept)))
        self._placed = tuple(sorted(placed, key=lambda one: natural(one.thing.identity)))
        self._absent = tuple(sorted(absent, key=lambda one: natural(one.sensor.id)))
        self._pages = _pages(dict.fromkeys(one.thing.uri for one in self._placed), walk.sheets)

    def _each_once(self, walk: Walk) -> list[Thing]:
        """Without the sensors that pumps, fans and supplies show excerpts of, and summaries of sensors there are.

        What the bench names is kept, whatever it repeats.
        """
        named = {name.casefold() for name in self._roles.values()}
        shown = {path for one in walk.things if not one.summary for path in self._sources(one)}
        return [
            one
            for one in walk.things
            if one.names & named
            or (
                not (one.summary and any(path in walk.sensors for path in self._sources(one)))
                and not (one.uri in walk.sensors and one.uri in shown)
            )
        ]

    def _sources(self, thing: Thing) -> list[str]:
        found = (self._path_of(one) for one in thing.quantities)
        return [path for path in found if path]

    def _path_of(self, quantity: Quantity) -> str | None:
        return self._address.path_of(quantity.data_source) if self._address and quantity.data_source else None

    def _own_limits(self, walk: Walk, quantity: Quantity) -> Mapping[str, float]:
        """Those of the sensor that a quantity is an excerpt of, where that is in the same unit."""
        own = walk.sensors.get(self._path_of(quantity) or "")
        found = measure(own.get("ReadingUnits"), own.get("ReadingType")) if own else None
        return limits_of_sensor(own) if own and found and found.unit is quantity.unit else {}

    # ------------------------------------------------------------------------------------------------------- reading

    def _fetched(self, until: float) -> dict[str, Resource | Trouble]:
        """By address: each resource, or why there is none."""
        found: dict[str, Resource | Trouble] = {}
        stop: Trouble | None = None
        for page, uris in self._pages.items():
            if stop is None and self._clock() >= until:
                stop = Trouble(
                    missing=Missing.TIMEOUT,
                    said=say("the BMC did not get round to it in {seconds:g} s", seconds=READ_SECONDS),
                )
            if stop is not None:
                found.update(dict.fromkeys(uris, stop))
                continue
            try:
                resource = self._got(page, until)
            except TroubleError as error:
                trouble = error.trouble
                found.update(dict.fromkeys(uris, trouble))
                stop = trouble if trouble.of_all else None
                continue
            found.update(self._of_page(resource, uris) if uris != (page,) else {page: resource})
        return found

    def _got(self, page: str, until: float) -> Resource:
        if self._link is None:
            raise TroubleError(Missing.UNREADABLE, self._unfit, of_all=True)
        return self._link.get(page, until=until)

    def _of_page(self, page: Resource, uris: Sequence[str]) -> dict[str, Resource | Trouble]:
        members = page.get("Members")
        here = {
            one.get("@odata.id"): one for one in members if isinstance(one, Mapping)
        } if isinstance(members, list) else {}  # fmt: skip
        return {uri: here[uri] for uri in uris if uri in here}


def _silent(sensor: Sensor, reading: Reading, thing: Thing, resource: Resource | None) -> str:
    """Why a sensor that gives no figure at the start is not recorded; empty where it is."""
    if reading.missing not in _SILENT_FROM_THE_START:
        return ""
    part = part_of(resource, thing) if resource is not None else None
    state = state_of(part) if part is not None else ""
    # A pump or a detector that is out of order is news, and not a sensor that nobody has put in.
    if (is_part_of_pump(sensor) or is_leak_detector(sensor)) and state in ("", "Enabled", "UnavailableOffline"):
        return ""
    return reading.detail or str(reading.missing)


def _called(things: Sequence[Thing], roles: Mapping[str, str]) -> list[tuple[Thing, bool]]:
    """Things with names of their own, those first that the bench names; and whether it does."""
    owners: dict[int, str] = {}
    for device, name in roles.items():
        theirs = [order for order, one in enumerate(things) if name.casefold() in one.names]
        if theirs and _is_one([things[order] for order in theirs]):
            owners.update(dict.fromkeys(theirs, device))
    named = [
        (replace(one, device=owners[order]), True)
        if order in owners
        else (replace(one, device=one.longer or one.device), False)
        if one.device in roles
        else (one, False)
        for order, one in enumerate(things)
    ]
    ids = Counter(f"{one.device}.{quantity.name}" for one, _ in named for quantity in one.quantities)
    strong = Counter(f"{one.device}.{q.name}" for one, _ in named if not one.summary for q in one.quantities)
    taken: set[str] = set()
    found: list[tuple[Thing, bool]] = []
    for one, expected in named:
        mine = [f"{one.device}.{quantity.name}" for quantity in one.quantities]
        if one.summary and any(strong[name] for name in mine):
            continue
        alone = expected or not any(ids[name] > 1 and strong[name] != 1 for name in mine)
        device = one.device if alone else one.longer or one.device
        number = 1
        free = device
        while any(f"{free}.{quantity.name}" in taken for quantity in one.quantities):
            number += 1
            free = f"{slug(device)}_{number}"
        taken |= {f"{free}.{quantity.name}" for quantity in one.quantities}
        found.append((replace(one, device=free), expected))
    return found


def _is_one(things: Sequence[Thing]) -> bool:
    """Whether these are one thing, told in one resource or, as a card's temperature and power, in parts."""
    quantities = [quantity.name for one in things for quantity in one.quantities]
    in_parts = len({(one.device, one.longer) for one in things}) == 1 and len(set(quantities)) == len(quantities)
    return in_parts or len({one.identity for one in things}) == 1


def _pages(uris: Mapping[str, None], sheets: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What is asked for in each reading: a page of a collection for several of its members, else each by itself."""
    on_page: dict[str, list[str]] = {}
    for uri in uris:
        on_page.setdefault(sheets.get(uri, uri), []).append(uri)
    pages: dict[str, tuple[str, ...]] = {}
    for page, members in on_page.items():
        if len(members) > 1:
            pages[page] = tuple(members)
        else:
            pages[members[0]] = (members[0],)
    return pages
