"""OpenIPMI's ``ipmi_sim``: a BMC on loopback whose sensors are files, asked by the real ``ipmitool``."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.parts.errors import PartFailedError, PartUnavailableError
from tests.real.parts.process import free_ports, served

USER, PASSWORD = "operator", "loopback-only"
CIPHER_SUITE = 3
"""The simulator offers no list of them, and ipmitool waits 10 s for it where it is not told."""
_NAME = "bench"
_NEEDED = ("ipmi_sim", "sdrcomp", "ipmitool")


@dataclass(frozen=True, kw_only=True)
class _Simulated:
    number: int
    name: str
    kind: str
    code: int
    unit: str
    per_step: int
    """The file's number divided by this is the raw byte, and that times this the figure."""
    value: int | None
    """At start; None for one that is disabled."""


_SENSORS = (
    _Simulated(number=1, name="Coolant In", kind="Temperature", code=1, unit="degrees_C", per_step=1, value=31),
    _Simulated(number=2, name="Pump 1", kind="Fan", code=4, unit="RPM", per_step=20, value=3200),
    _Simulated(number=3, name="Pump 2", kind="Fan", code=4, unit="RPM", per_step=20, value=None),
    _Simulated(number=4, name="FAN1", kind="Fan", code=4, unit="RPM", per_step=50, value=5050),
    _Simulated(number=5, name="Cpu_Opt", kind="Fan", code=4, unit="RPM", per_step=20, value=2940),
    _Simulated(number=6, name="Cpu_Opt", kind="Fan", code=4, unit="RPM", per_step=20, value=2000),
    _Simulated(number=7, name="PSU1 Power", kind="Current", code=3, unit="Watts", per_step=10, value=640),
)


@dataclass(frozen=True, kw_only=True)
class Bmc:
    """Where it is, and what its sensors show."""

    host: str
    values: Mapping[int, Path]

    def set(self, number: int, value: int) -> None:
        """What the sensor of that number shows, from 0.2 s later on."""
        self.values[number].write_text(f"{value}\n")


BROKEN_NAME = 4
"""A name of four capitals comes back as bytes that are no UTF-8: ipmitool prints them, Prometheus' exporter dies."""


@contextlib.contextmanager
def simulated_bmc(folder: Path, *, name: str = "bmc", without: Collection[int] = ()) -> Iterator[Bmc]:
    """The BMC, until the block ends; ``without`` sensors of these numbers.

    Raises:
        PartUnavailableError: The simulator or ipmitool is not installed.
    """
    for program in _NEEDED:
        if shutil.which(program) is None:
            raise PartUnavailableError(f"{program} is not installed (Debian: openipmi, ipmitool)")
    home = folder / name
    sensors = [one for one in _SENSORS if one.number not in without]
    state = home / "state" / "ipmi_sim" / _NAME
    state.mkdir(parents=True)
    port, console = free_ports(2)
    values = {one.number: home / f"value{one.number}" for one in sensors if one.value is not None}
    bmc = Bmc(host=f"127.0.0.1:{port}", values=values)
    for one in sensors:
        if one.value is not None:
            bmc.set(one.number, one.value)
    (home / "lan.conf").write_text(_lan(port, console))
    (home / "bmc.emu").write_text(_emulation(sensors, values))
    (home / "bmc.sdrs").write_text(_records(sensors))
    compiled = subprocess.run(
        ["sdrcomp", "-o", str(state / "sdr.20.main"), str(home / "bmc.sdrs")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if compiled.returncode:
        raise PartFailedError(f"sdrcomp: {compiled.stdout}{compiled.stderr}")

    def ready() -> Bmc | None:
        asked = subprocess.run(
            ["ipmitool", "-I", "lanplus", "-C", str(CIPHER_SUITE), "-N", "1", "-R", "1", "-H", "127.0.0.1",
             "-p", str(port), "-U", USER, "-E", "sdr", "elist", "full"],
            env={**os.environ, "IPMI_PASSWORD": PASSWORD}, capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        # A sensor has no reading before its file was looked at.
        return bmc if asked.stdout.count(b"| ok ") == len(values) and b"| 3200 RPM" in asked.stdout else None

    command = ["ipmi_sim", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state", "-n"]
    with served(command, log=home / "log", ready=ready, folder=home) as running:
        yield running


def _lan(port: int, console: int) -> str:
    rights = "none md2 md5 straight"
    levels = "\n".join(f"    allowed_auths_{level} {rights}" for level in ("callback", "user", "operator", "admin"))
    return f"""\
name "{_NAME}"
console 127.0.0.1 {console}
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
{levels}
    guid a123456789abcdefa123456789abcdef
  endlan
  user 2 true "{USER}" "{PASSWORD}" admin 10 {rights}
"""


def _emulation(sensors: Sequence[_Simulated], values: Mapping[int, Path]) -> str:
    lines = [
        "mc_setbmc 0x20",
        "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr",
        "sel_enable 0x20 1000 0x0a",
    ]
    nothing, all_states = "0" * 15, "0" * 3 + "1" * 12
    for one in sensors:
        path = values.get(one.number)
        source = f' poll 200 file "{path}" div={one.per_step}' if path else ""
        on, mask = ("enable scanning", all_states) if path else ("disable no-scanning", nothing)
        lines += [
            f"sensor_add 0x20 0 {one.number} 0x{one.code:02x} 0x01{source}",
            f"sensor_set_event_support 0x20 0 {one.number} {on} per-state {' '.join([mask] * 4)}",
        ]
    return "\n".join([*lines, "mc_enable 0x20", ""])


def _records(sensors: Sequence[_Simulated]) -> str:
    return "\n\n".join(_record(one) for one in sensors) + "\n"


def _record(one: _Simulated) -> str:
    fields = {
        "sensor_owner_id": "0x20", "sensor_owner_lun": 0, "channel_number": 0, "sensor_number": one.number,
        "entity_id": "system_board", "entity_instance": 1, "sensor_type": one.kind, "init_scanning": "true",
        "init_sensor_type": "true", "default_sensor_scan_on": "true", "sensor_threshold_access": "readable",
        "event_reading_type_code": 1, "analog_data_format": "unsigned", "rate_unit": "none", "modifier_unit": "none",
        "percentage": "false", "base_unit": one.unit, "modifier_unit_code": "unspecified", "linearization": "linear",
        "m": one.per_step, "tolerance": 0, "b": 0, "accuracy": 1, "accuracy_exp": 0, "sensor_direction": "input",
        "r_exp": 0, "b_exp": 0, "sensor_maximum": 255, "sensor_minimum": 0, "id_string": f'"{one.name}"',
    }  # fmt: skip
    return "\n".join(["sdr type 1", *(f"\t{name}\t{value}" for name, value in fields.items()), "endsdr"])
