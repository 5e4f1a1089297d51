"""RDMA ports as sysfs tells them, from trees like those of real adapters."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.access.interconnect.rdma import read_ports
from pytest_thermal.access.verdict import CannotMeasure


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    (tmp_path / "sys" / "class").mkdir(parents=True)
    return tmp_path / "sys"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def add_port(sysfs: Path, device: str = "mlx5_0", number: int = 1, **attributes: str) -> Path:
    folder = sysfs / "class" / "infiniband" / device / "ports" / str(number)
    told = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "rate": "400 Gb/sec (4X NDR)",
        "link_layer": "InfiniBand",
        "gids/0": "fe80:0000:0000:0000:1070:fd03:0012:3456",
        **attributes,
    }
    for name, text in told.items():
        put(folder / name, text)
    return folder


def test_a_machine_without_rdma_has_no_port(sysfs: Path) -> None:
    assert read_ports(sysfs) == ()
    (sysfs / "class" / "infiniband").mkdir()
    assert read_ports(sysfs) == ()


def test_reads_what_the_kernel_tells(sysfs: Path) -> None:
    add_port(sysfs)
    put(sysfs / "class/infiniband/mlx5_0/hca_type", "MT4129")
    put(sysfs / "class/infiniband/mlx5_0/board_id", "MT_0000000838")
    put(sysfs / "class/infiniband/mlx5_0/device/net/ibp24s0/address", "x")
    (port,) = read_ports(sysfs)
    assert (port.name, port.state_text, port.gigabits_per_second) == ("mlx5_0 port 1", "ACTIVE (LinkUp)", 400.0)
    assert (port.link_layer, port.netdev, port.model) == ("InfiniBand", "ibp24s0", "MT4129 MT_0000000838")
    assert port.words == "ACTIVE, LinkUp, 400 Gb/s, InfiniBand, ibp24s0"
    assert port.active
    assert port.has_address


def test_the_interface_of_a_port_is_its_own_where_a_device_has_several(sysfs: Path) -> None:
    folder = add_port(sysfs, link_layer="Ethernet")
    for name in ("eth2", "eth3"):
        put(sysfs / "class/infiniband/mlx5_0/device/net" / name / "address", "x")
    assert read_ports(sysfs)[0].netdev is None
    put(folder / "gid_attrs" / "ndevs" / "0", "eth3")
    assert read_ports(sysfs)[0].netdev == "eth3"


def test_ports_come_in_the_order_of_their_numbers(sysfs: Path) -> None:
    for device in ("mlx5_10", "mlx5_2", "mlx5_bond_0", "bnxt_re0"):
        add_port(sysfs, device)
    add_port(sysfs, "mlx5_2", 2)
    assert [port.name for port in read_ports(sysfs)] == [
        "bnxt_re0 port 1",
        "mlx5_2 port 1",
        "mlx5_2 port 2",
        "mlx5_10 port 1",
        "mlx5_bond_0 port 1",
    ]


@pytest.mark.parametrize(
    "state,physical,active,unused,half_up",
    [
        ("4: ACTIVE", "5: LinkUp", True, False, False),
        ("4: ACTIVE", "0: <unknown>", True, False, False),
        ("4: ACTIVE", "6: LinkErrorRecovery", False, False, True),
        ("4: ACTIVE", "2: Polling", False, False, True),
        ("5: ACTIVE_DEFER", "5: LinkUp", False, False, True),
        ("2: INIT", "5: LinkUp", False, False, True),
        ("3: ARMED", "5: LinkUp", False, False, True),
        ("1: DOWN", "2: Polling", False, True, False),
        ("1: DOWN", "3: Disabled", False, True, False),
        ("1: DOWN", "1: Sleep", False, True, False),
        ("1: DOWN", "4: PortConfigurationTraining", False, False, True),
        ("1: DOWN", "5: LinkUp", False, False, True),
        ("0: NOP", "3: Disabled", False, False, True),
        ("9: UNKNOWN", "5: LinkUp", False, False, True),
        ("", "5: LinkUp", False, False, True),
    ],
)
def test_a_port_is_active_or_unused_or_half_up(
    sysfs: Path, state: str, physical: str, active: bool, unused: bool, half_up: bool
) -> None:
    add_port(sysfs, state=state, phys_state=physical)
    (port,) = read_ports(sysfs)
    assert (port.active, port.unused, port.half_up) == (active, unused, half_up)


@pytest.mark.parametrize(
    "text,gigabits",
    [("2.5 Gb/sec (1X SDR)", 2.5), ("100 Gb/sec (4X EDR)", 100.0), ("25 Gb/sec (1X EDR)", 25.0), ("", None)],
)
def test_rates_are_in_gigabits(sysfs: Path, text: str, gigabits: float | None) -> None:
    add_port(sysfs, rate=text)
    assert read_ports(sysfs)[0].gigabits_per_second == gigabits


def test_a_virtual_function_is_another_model(sysfs: Path) -> None:
    for device in ("mlx5_0", "mlx5_1"):
        add_port(sysfs, device)
        put(sysfs / "class/infiniband" / device / "hca_type", "MT4129")
    (sysfs / "class/infiniband/mlx5_1/device/physfn").mkdir(parents=True)
    assert [port.model for port in read_ports(sysfs)] == ["MT4129", "MT4129 VF"]


def test_models_are_told_apart_by_their_pci_ids_too(sysfs: Path) -> None:
    add_port(sysfs, "irdma0")
    put(sysfs / "class/infiniband/irdma0/device/vendor", "0x8086")
    put(sysfs / "class/infiniband/irdma0/device/device", "0x159b")
    assert read_ports(sysfs)[0].model == "0x8086 0x159b"


def test_an_empty_gid_is_no_address(sysfs: Path) -> None:
    folder = add_port(sysfs)
    put(folder / "gids" / "0", "0000:0000:0000:0000:0000:0000:0000:0000")
    assert not read_ports(sysfs)[0].has_address


# --- what cannot be read is never a state --------------------------------------------------------------------


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    really = os.open

    def opened(path: Any, *rest: Any, **more: Any) -> int:
        if Path(path).name == name:
            raise OSError(number, os.strerror(number))
        return really(path, *rest, **more)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("name", ["state", "phys_state", "rate", "link_layer"])
@pytest.mark.parametrize(
    "number,likely",
    [
        (errno.EIO, "does not answer"),
        (errno.EACCES, "may not read it"),
        (errno.EAGAIN, "does not answer"),
        (errno.ENOENT, "went away"),
    ],
)
def test_an_active_port_that_cannot_be_read_is_not_measured(
    sysfs: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int, likely: str
) -> None:
    add_port(sysfs)
    refuse(monkeypatch, name, number)
    with pytest.raises(CannotMeasure) as caught:
        read_ports(sysfs)
    assert f"mlx5_0/ports/1/{name} cannot be read ({os.strerror(number)})" in caught.value.seen
    assert likely in caught.value.likely
    assert caught.value.advice


def test_a_port_without_link_may_have_no_rate(sysfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_port(sysfs, state="1: DOWN", phys_state="3: Disabled")
    refuse(monkeypatch, "rate", errno.EINVAL)
    (port,) = read_ports(sysfs)
    assert (port.unused, port.gigabits_per_second) == (True, None)


def test_a_device_that_is_gone_is_not_measured(sysfs: Path) -> None:
    top = sysfs / "class" / "infiniband"
    add_port(sysfs, "mlx5_1")
    (top / "mlx5_0").symlink_to("../../devices/gone")
    with pytest.raises(CannotMeasure, match=r"mlx5_0 in .* shows no port"):
        read_ports(sysfs)


def test_a_folder_that_is_no_sysfs_is_not_a_machine_without_rdma(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasure, match="is no sysfs") as caught:
        read_ports(tmp_path / "nowhere")
    assert "--sysfs" in caught.value.advice
