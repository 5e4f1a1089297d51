"""What stays with a device: its UUID, serial number, address on the bus. What tools print for none of these is none."""

from __future__ import annotations

import re

from pytest_thermal.sensors.tools.answer import normal_bus_id
from pytest_thermal.sensors.tools.figures import absent

_LEAST_CHARACTERS = 4
_TELLING = re.compile(r"[1-9a-z]", re.IGNORECASE)
_KIND = re.compile(r"(?:GPU|MLU|XPU|MTGPU|UUID|SN|0x)[-:]?", re.IGNORECASE)


def identities(*texts: str, bus: str = "") -> tuple[str, ...]:
    """Those that tell something, the best first: ``texts`` in their order, then the address.

    ``N/A``, ``0000-0000`` and an address that is none are left out.
    """
    found = []
    for text in texts:
        name = " ".join(text.split())
        bare = _KIND.sub("", name, count=1)
        if len(bare) >= _LEAST_CHARACTERS and not absent(name) and _TELLING.search(bare):
            found.append(name)
    address = normal_bus_id(bus)
    return tuple(dict.fromkeys([*found, *([address] if address else [])]))
