"""A source that is a tool: finds its devices once, then each one's figures in every later answer."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Missing, Reading, Sensor
from pytest_thermal.sensors.source import Absent, Availability
from pytest_thermal.sensors.tools.answer import Row
from pytest_thermal.sensors.tools.asking import Asked, Asker, Way
from pytest_thermal.sensors.tools.command import Caller
from pytest_thermal.sensors.tools.devices import Roll, found_devices
from pytest_thermal.sensors.tools.places import Place, settle


class ToolSource:
    """Sensors of one tool's devices."""

    def __init__(
        self,
        *,
        name: str,
        command: Caller,
        ways: Sequence[Way],
        only: frozenset[str] = frozenset(),
        deadline_seconds: float | None = None,
        unfit: str = "",
    ) -> None:
        """Args tell what to ask and how.

        Args:
            name: The source's name.
            command: The program to call.
            ways: Tried in their order until one gives rows.
            only: Numbers of the cards that are wanted; empty for all.
            deadline_seconds: For one reading, where the tool's own is not to be used.
            unfit: Why it cannot be asked at all.
        """
        self.name = name
        self._unfit = unfit
        self._command = command
        self._asker = Asker(command, ways, only=only, deadline_seconds=deadline_seconds)
        self._roll = Roll(())
        self._places: tuple[Place, ...] = ()
        self._absent: tuple[Absent, ...] = ()
        self._availability: Availability | None = None

    def probe(self) -> Availability:
        """Whether the tool is there and shows a device: two calls that agree, whose figures are thrown away.

        The first after an idle time shows what the tool's own call woke up, and may be damaged.
        """
        if self._availability is None:
            self._availability = self._discover()
        return self._availability

    def sensors(self) -> Sequence[Sensor]:
        """What the devices offered at start."""
        self.probe()
        return tuple(place.sensor for place in self._places)

    def absent(self) -> Sequence[Absent]:
        """What they said that they do not offer."""
        self.probe()
        return self._absent

    def read(self) -> Sequence[Reading]:
        """One reading of each sensor, from one round of calls."""
        self.probe()
        if not self._places:
            return []
        asked = self._asker.again([device.identities for device in self._roll.devices])
        rows, refused = self._roll.assign(asked.rows)
        return [self._reading(place, rows.get(place.device.key), asked, refused) for place in self._places]

    def close(self) -> None:
        """End what still runs."""
        self._command.close()

    def _discover(self) -> Availability:
        if self._unfit:
            return Availability(ok=False, reason=self._unfit)
        if self._command.path is None:
            return Availability(ok=False, reason=f"{self._command.program} is not installed (not found in PATH)")
        asked = self._asker.start()
        way = self._asker.way
        if way is None:
            return Availability(ok=False, reason=asked.problems[0].said if asked.problems else "shows no device")
        devices = found_devices(asked.rows, way.tool.device, whole=not asked.cut)
        # A card that hides all others is known by its address alone.
        fallen = [one for one in self._asker.lost if not any(one in device.identities for device in devices)]
        devices += found_devices([Row(key=one, cells={}, identities=(one,)) for one in fallen], way.tool.device)
        self._roll = Roll(devices, keys_stay=way.tool.keys_stay)
        rows, _ = self._roll.assign(asked.rows)
        start, _ = self._roll.assign(self._asker.limits())
        places, absent = settle(self.name, way.tool.fields, devices, rows, start)
        self._places, self._absent = tuple(places), tuple(absent)
        if not places:
            faults = [f"{way.tool.device}{row.key}: {row.fault}" for row in asked.rows if row.fault]
            reason = "; ".join(["its devices offer none of the figures looked for", *faults])
            return Availability(ok=False, reason=reason)
        return Availability(ok=True, reason=self._remark(way, asked))

    def _remark(self, way: Way, asked: Asked) -> str:
        """As what a user's command is read; that a device may be lacking, where the first answer was not whole."""
        remarks = []
        if self.name != way.tool.name:
            labels = sorted({place.sensor.label for place in self._places})
            remarks.append(f"its output is read as {way.tool.name}: {', '.join(labels)}")
        if asked.cut and asked.problems:
            remarks.append(f"a device may be lacking, since its answer is not whole: {asked.problems[0].said}")
        return "; ".join(remarks)

    def _reading(self, place: Place, row: Row | None, asked: Asked, refused: str) -> Reading:
        if row is not None:
            return place.reading(row)
        sensor_id, mine = place.sensor.id, place.device.identities
        about = next((why for why in asked.problems if _is_about(why.identity, mine)), None)
        lost = next((self._asker.lost[one] for one in mine if one in self._asker.lost), None)
        if lost is not None:
            return Reading(sensor_id=sensor_id, missing=lost.missing, detail=lost.said)
        if refused:
            return Reading(sensor_id=sensor_id, missing=Missing.NOT_UNDERSTOOD, detail=refused)
        if about is not None:
            return Reading(sensor_id=sensor_id, missing=about.missing, detail=about.said)
        if asked.problems and not asked.rows:
            detail = f"hidden by another device's failure: {asked.problems[0].said}"
            return Reading(sensor_id=sensor_id, missing=Missing.UNREADABLE, detail=detail)
        return Reading(sensor_id=sensor_id, missing=Missing.ABSENT, detail="not in the tool's answer")


def _is_about(identity: str, mine: Sequence[str]) -> bool:
    """Whether a problem is about the device of these names: about all, about it, or about the card it is on."""
    return not identity or any(one == identity or one.startswith(f"{identity}/") for one in mine)
