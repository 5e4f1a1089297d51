"""Through a service's tree, once: which resources hold readings, and how to get them again with few requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_thermal.model import Missing
from pytest_thermal.model.said import say
from pytest_thermal.sensors.redfish import processors, resources
from pytest_thermal.sensors.redfish.link import ROOT, TroubleError
from pytest_thermal.sensors.redfish.things import Resource, Thing

_MOST_RESOURCES = 3000
_MOST_PAGES = 100
_MOST_PROCESSORS = 64
"""In one system: an accelerator tray has a dozen, and each is asked for by itself in every reading."""
_TRIES = 3
"""What is torn or late the first time would be missing for the whole run."""
_UNITS = {
    "CDUs": "cdu",
    "RPUs": "rpu",
    "ImmersionUnits": "immersion",
    "HeatExchangers": "exchanger",
    "CoolingLoops": "loop",
}


class Walk:
    """One walk. ``things`` and ``sheets`` are what came of it."""

    def __init__(self, get: Callable[[str], Resource], path_of: Callable[[str], str | None]) -> None:
        """Args tell how to ask.

        Args:
            get: The resource at a path. Raises TroubleError.
            path_of: The path that a link means; None where it leads to another host.
        """
        self._get = get
        self._path_of = path_of
        self._expand = ""
        self.seen: dict[str, Resource] = {}
        """By address: every resource that was read."""
        self._asked = 0
        self.things: list[Thing] = []
        self.sheets: dict[str, str] = {}
        """By resource: the page of its collection that holds it whole."""
        self.troubles: list[str] = []
        """What could not be read, in words."""
        self.sensors: dict[str, Resource] = {}
        """Every sensor's own resource."""

    def go(self) -> None:
        """Walk.

        Raises:
            TroubleError: Nothing can be had from this service at all.
        """
        root = self._get(ROOT)
        self._expand = _expand(root)
        for link in self._links(root, "Chassis"):
            for uri, chassis in self._members(link):
                self._chassis(uri, chassis)
        for equipment in self._linked(root, "ThermalEquipment"):
            for key, word in _UNITS.items():
                for link in self._links(equipment, key):
                    for uri, unit in self._members(link):
                        self._unit(uri, unit, word)
            self._leaks(equipment, "")
        for link in self._links(root, "Systems"):
            for uri, system in self._members(link):
                self._processors(resources.name_of({"Id": system.get("Id")}, uri.rpartition("/")[2]), system)

    # ---------------------------------------------------------------------------------------------------- the tree

    def _chassis(self, uri: str, chassis: Resource) -> None:
        around = resources.name_of({"Id": chassis.get("Id")}, uri.rpartition("/")[2])
        begin = len(self.things)
        for subsystem in self._linked(chassis, "ThermalSubsystem"):
            self._turning(subsystem, around)
            for link in self._links(subsystem, "CoolantConnectors"):
                for one, resource in self._members(link):
                    self.things += resources.connector(one, resource, around, loop="coolant")
            for one, resource in self._at(subsystem, "ThermalMetrics"):
                self.things += resources.thermal_metrics(one, resource, around)
            self._leaks(subsystem, around)
        self._leaks(chassis, around)
        for link in self._links(chassis, "Sensors"):
            for one, resource in self._members(link):
                self.sensors[one] = resource
                self.things += resources.sensor(one, resource, around)
        new = self.things[begin:]
        for one, resource in self._at(chassis, "EnvironmentMetrics"):
            links = chassis.get("Links")
            whole = not (isinstance(links, Mapping) and links.get("ContainedBy"))
            name = resources.name_of(chassis, around)
            self.things += resources.environment(one, resource, around, name=name, whole=whole)
        supplied = self._power(chassis, around)
        turn = any(quantity.name.startswith("speed_") for one in new for quantity in one.quantities)
        warm = any(
            quantity.name.startswith("temperature_") and not one.summary for one in new for quantity in one.quantities
        )
        if not (turn and warm):
            for one, resource in self._at(chassis, "Thermal"):
                self.things += [
                    thing
                    for thing in resources.thermal(one, resource, around)
                    if not (turn if thing.quantities[0].name.startswith("speed_") else warm)
                ]
        if not supplied:
            for one, resource in self._at(chassis, "Power"):
                self.things += resources.power(one, resource, around)

    def _power(self, chassis: Resource, around: str) -> bool:
        found = False
        for subsystem in self._linked(chassis, "PowerSubsystem"):
            for link in self._links(subsystem, "PowerSupplies"):
                for uri, supply in self._members(link):
                    name = resources.name_of(supply, uri.rpartition("/")[2])
                    for one, resource in self._at(supply, "Metrics"):
                        things = list(resources.supply_metrics(one, resource, around, name=name))
                        self.things += things
                        found = found or bool(things)
        return found

    def _unit(self, uri: str, unit: Resource, word: str) -> None:
        around = f"{word}{resources.name_of({'Id': unit.get('Id')}, uri.rpartition('/')[2])}"
        self._turning(unit, around)
        loops = ("coolant", "facility") if word != "loop" else (f"{around}_coolant", f"{around}_source")
        for key, loop in (("SecondaryCoolantConnectors", loops[0]), ("PrimaryCoolantConnectors", loops[1])):
            for link in self._links(unit, key):
                for one, resource in self._members(link):
                    self.things += resources.connector(one, resource, around, loop=loop)
        for link in self._links(unit, "Reservoirs"):
            for one, resource in self._members(link):
                self.things += resources.reservoir(one, resource, around)
        for one, resource in self._at(unit, "EnvironmentMetrics"):
            name = resources.name_of(unit, around)
            self.things += resources.environment(one, resource, around, name=name, whole=True)
        self._leaks(unit, around)

    def _processors(self, name: str, system: Resource) -> None:
        members = [one for link in self._links(system, "Processors") for one in self._members(link)]
        found = processors.numbered(members, name)
        for processor in found[:_MOST_PROCESSORS]:
            things = [
                thing
                for one, resource in self._at(processor.resource, "EnvironmentMetrics")
                for thing in processors.environment(one, resource, processor)
            ]
            for one, resource in self._at(processor.resource, "Metrics"):
                things += processors.metrics(one, resource, processor, things)
            self.things += things
        if len(found) > _MOST_PROCESSORS:
            self.troubles.append(
                say("{system} has {count} processors: those after the first {most} were not looked at", system=name,
                    count=len(found), most=_MOST_PROCESSORS)
            )  # fmt: skip

    def _turning(self, part: Resource, around: str) -> None:
        for key, make in (("Pumps", resources.pump), ("Fans", resources.fan)):
            for link in self._links(part, key):
                for one, resource in self._members(link):
                    self.things += make(one, resource, around)

    def _leaks(self, part: Resource, around: str) -> None:
        detections = self._at(part, "LeakDetection")
        for uri, holder in [("", part), *detections]:
            found = [
                thing
                for link in self._links(holder, "LeakDetectors")
                for one, resource in self._members(link)
                for thing in resources.leak_detector(one, resource, around)
            ]
            self.things += found or list(resources.leak_groups(uri, holder, around) if uri else ())

    # -------------------------------------------------------------------------------------------------------- asking

    def _links(self, resource: Resource, key: str) -> list[str]:
        link = resource.get(key)
        target = link.get("@odata.id") if isinstance(link, Mapping) else None
        path = self._path_of(target.partition("#")[0]) if isinstance(target, str) else None
        return [path] if path else []

    def _at(self, resource: Resource, key: str) -> list[tuple[str, Resource]]:
        """The resource that a link leads to, where it is there."""
        return [(path, found) for path in self._links(resource, key) if (found := self._read(path)) is not None]

    def _linked(self, resource: Resource, key: str) -> list[Resource]:
        return [found for _, found in self._at(resource, key)]

    def _members(self, path: str) -> Iterator[tuple[str, Resource]]:
        """The members of a collection, all pages of it."""
        pages: list[str] = []
        page: str | None = path
        while page is not None and page not in pages and len(pages) < _MOST_PAGES:
            asked, found = self._page(page)
            if found is None:
                return
            pages.append(page)
            members = found.get("Members")
            for one in members if isinstance(members, list) else ():
                target = one.get("@odata.id") if isinstance(one, Mapping) else None
                uri = self._path_of(target.partition("#")[0]) if isinstance(target, str) else None
                if uri is None:
                    continue
                if len(one) > 1 and asked:
                    self.sheets[uri] = asked
                    self.seen[uri] = one
                    yield uri, one
                elif (resource := self._read(uri)) is not None:
                    yield uri, resource
            following = found.get("Members@odata.nextLink") or found.get("@odata.nextLink")
            page = self._path_of(following) if isinstance(following, str) else None

    def _page(self, path: str) -> tuple[str, Resource | None]:
        """A page of a collection, with its members in it where the service can do that; and how that was asked."""
        if self._expand and "$" not in path:
            asked = f"{path}{'&' if '?' in path else '?'}{self._expand}"
            try:
                return asked, self._get(asked)
            except TroubleError as error:
                if error.trouble.of_all:
                    raise
                self._expand = ""  # it only says that it can
        return (path if "$" in path else ""), self._read(path)

    def _read(self, path: str) -> Resource | None:
        """A resource; None, and told, where it cannot be had."""
        if path in self.seen:
            return self.seen[path]
        if self._asked >= _MOST_RESOURCES:
            self.troubles.append(say("more than {count} resources: the rest was not looked at", count=_MOST_RESOURCES))
            return None
        for left in reversed(range(_TRIES)):
            self._asked += 1
            try:
                found: Mapping[str, Any] = self._get(path)
            except TroubleError as error:
                trouble = error.trouble
                if trouble.of_all:
                    raise
                again = trouble.missing in (Missing.TIMEOUT, Missing.NOT_UNDERSTOOD)
                if again and left:
                    continue
                if trouble.missing is not Missing.ABSENT:
                    self.troubles.append(trouble.said)
                return None
            self.seen[path] = found
            return found
        return None


def _expand(root: Resource) -> str:
    """How collections are asked for with their members in them; empty where that cannot be."""
    features = root.get("ProtocolFeaturesSupported")
    query = features.get("ExpandQuery") if isinstance(features, Mapping) else None
    if not isinstance(query, Mapping) or query.get("NoLinks") is not True:
        return ""
    return "$expand=.($levels=1)" if query.get("Levels") is True else "$expand=."
