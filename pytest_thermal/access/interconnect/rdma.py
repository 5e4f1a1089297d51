"""RDMA ports of this machine and the state of their links, as the kernel tells it in sysfs."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

from pytest_thermal.access.verdict import CannotMeasure
from pytest_thermal.model.said import joined, say

INFINIBAND, ETHERNET = "InfiniBand", "Ethernet"
"""Link layers as sysfs spells them; RoCE and iWARP are Ethernet."""

_IDLE = ("Polling", "Disabled", "Sleep", "unknown")
"""Physical states of a port that nobody uses."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """One port: its logical state (``ACTIVE``, ``INIT`` …), physical state (``LinkUp`` …) and rate in Gb/s."""

    device: str
    number: int | None = None
    state: str
    physical_state: str = "unknown"
    gigabits_per_second: float | None = None
    link_layer: str = ""
    netdev: str | None = None
    model: str = ""
    """Ports are only compared with those of the same model: a 25 Gb/s management adapter is no slow 400 Gb/s one."""
    has_address: bool = True
    """Whether its first GID is set; without one nothing reaches it."""

    @property
    def name(self) -> str:
        """``mlx5_0 port 1``, or ``npu0`` where a device has one port."""
        return (
            self.device
            if self.number is None
            else say("{device} port {number}", device=self.device, number=self.number)
        )

    @property
    def active(self) -> bool:
        """Whether it carries data."""
        return self.state == "ACTIVE" and self.physical_state in ("LinkUp", "unknown")

    @property
    def unused(self) -> bool:
        """Whether it is down as a port without a cable is."""
        return self.state == "DOWN" and self.physical_state in _IDLE

    @property
    def half_up(self) -> bool:
        """Whether it is on its way up and does not get there: no one leaves a spare port like that."""
        return not self.active and not self.unused

    @property
    def rate_text(self) -> str:
        """``400 Gb/s``, or nothing where it is not told."""
        return "" if self.gigabits_per_second is None else f"{self.gigabits_per_second:g} Gb/s"

    @property
    def state_text(self) -> str:
        """``INIT (LinkUp)``."""
        return (
            self.state
            if self.physical_state == "unknown"
            else say("{state} ({physical_state})", state=self.state, physical_state=self.physical_state)
        )

    @property
    def words(self) -> str:
        """All that is known of it, for the evidence."""
        known = (self.state, self.physical_state, self.rate_text, self.link_layer, self.netdev or "")
        return joined(", ", (text for text in known if text and text != "unknown"))


def read_ports(sysfs: Path) -> tuple[Port, ...]:
    """Every port of every RDMA device below ``sysfs``; empty where the machine has none.

    Raises:
        CannotMeasure: a device is there and its state cannot be read.
    """
    if not (sysfs / "class").is_dir():
        raise CannotMeasure(
            say("{sysfs} is no sysfs: there is no {sysfs_2}", sysfs=sysfs, sysfs_2=sysfs / "class"),
            likely=say("the host's /sys is mounted elsewhere in this container, or --sysfs names the wrong folder"),
            advice=say("ls {sysfs}; --sysfs DIR", sysfs=sysfs),
        )
    top = sysfs / "class" / "infiniband"
    found = {device.name: _device_ports(device) for device in _entries(top, absent_is_empty=True)}
    bare = [name for name, ports in found.items() if not ports]
    if bare:
        raise CannotMeasure(
            say("{name} in {top} shows no port", name=bare[0], top=top)
            if len(bare) == 1
            else say("{names} in {top} show no port", names=joined(", ", bare), top=top),
            likely=say("its driver did not finish, or the device belongs to another network namespace"),
            advice=say("rdma link; rdma system; dmesg | tail"),
        )
    return tuple(port for ports in found.values() for port in ports)


def _device_ports(device: Path) -> list[Port]:
    model = _model(device)
    folders = _entries(device / "ports", absent_is_empty=True)
    return [_port(device, folder, model) for folder in folders if folder.name.isdigit()]


def _port(device: Path, folder: Path, model: str) -> Port:
    state = _after_colon(_read(folder / "state")) or "UNKNOWN"
    physical_state = _after_colon(_read(folder / "phys_state")) or "unknown"
    active = state == "ACTIVE"
    # A port without a link may have no rate: the kernel answers "invalid argument" then.
    rate = _read(folder / "rate") if active else _read_if_there(folder / "rate")
    found = re.match(r"\s*([\d.]+)\s*Gb/sec", rate)
    gid = _read_if_there(folder / "gids" / "0")
    return Port(
        device=device.name,
        number=int(folder.name),
        state=state,
        physical_state="unknown" if "unknown" in physical_state else physical_state,
        gigabits_per_second=float(found[1]) if found else None,
        link_layer=_read(folder / "link_layer") if active else _read_if_there(folder / "link_layer"),
        netdev=_netdev(device, folder),
        model=model,
        has_address=not gid or any(sign not in "0:" for sign in gid),
    )


def _model(device: Path) -> str:
    told = [_read_if_there(device / name) for name in ("hca_type", "board_id")]
    if not any(told):
        told = [_read_if_there(device / "device" / name) for name in ("vendor", "device", "subsystem_device")]
    virtual = "VF" if (device / "device" / "physfn").exists() else ""
    return " ".join(text for text in (*told, virtual) if text)


def _netdev(device: Path, folder: Path) -> str | None:
    named = _read_if_there(folder / "gid_attrs" / "ndevs" / "0")
    if named:
        return named
    try:
        names = sorted(os.listdir(device / "device" / "net"))  # noqa: PTH208 - names, not paths
    except OSError:
        return None
    return names[0] if len(names) == 1 else None


def _entries(folder: Path, *, absent_is_empty: bool) -> list[Path]:
    try:
        return sorted(folder.iterdir(), key=_natural)
    except OSError as error:
        if absent_is_empty and error.errno in (errno.ENOENT, errno.ENOTDIR):
            return []
        raise _unreadable(folder, error) from error


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name) if part]


def _read(path: Path) -> str:
    # One read system call: sysfs hands a whole attribute over at once, and buffered reading hides EAGAIN.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(handle, 4096).decode("utf-8", "replace").strip()
        finally:
            os.close(handle)
    except OSError as error:
        raise _unreadable(path, error) from error


def _read_if_there(path: Path) -> str:
    try:
        return _read(path)
    except CannotMeasure:
        return ""


def _after_colon(text: str) -> str:
    return text.partition(":")[2].strip() if ":" in text else text


def _unreadable(path: Path, error: OSError) -> CannotMeasure:
    if error.errno in (errno.EACCES, errno.EPERM):
        likely = say("this user may not read it, or the container hides it")
        advice = say("ls -l {path}; run as a user who may, or with the host's /sys mounted (--sysfs DIR)", path=path)
    elif error.errno == errno.ENOENT:
        likely = say("the device went away while it was read, or its driver does not tell this")
        advice = say("rdma link; dmesg | tail")
    else:
        likely = say("the adapter or its driver does not answer")
        advice = say("dmesg | tail; rdma link; reload the driver, or power the node off and on")
    return CannotMeasure(
        say("{path} cannot be read ({strerror})", path=path, strerror=error.strerror or error),
        likely=likely,
        advice=advice,
    )
