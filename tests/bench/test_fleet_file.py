"""fleet.toml: nodes and places; every slip is told with what is near."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import BenchError
from pytest_thermal.bench.fleet_file import CARD_SLOT, FleetFile, read_fleet_file
from pytest_thermal.model.catalogue import catalogue


def read(folder: Path, text: str) -> FleetFile:
    (folder / "fleet.toml").write_text(text)
    return read_fleet_file(folder / "fleet.toml")


def test_nodes_cards_and_places(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        [fleet]
        name = "pod 3"
        [[node]]
        host = "n[01-03]"
        rack = "R1"
        branch = "A"
        [[node]]
        host = "n02"
        slot = 7
        [[card]]
        device = "gpu[0-1]"
        manifold = "front"
        slot = 1
        [[card]]
        device = "gpu0"
        host = "n03"
        branch = "B"
        """,
    )
    assert found.name == "pod 3"
    assert found.hosts == ("n01", "n02", "n03")
    assert found.position("n02", "gpu7") == {"rack": "R1", "branch": "A", "slot": "7"}
    assert found.position("n03", "gpu0") == {"rack": "R1", "branch": "B", "manifold": "front", CARD_SLOT: "1"}
    assert found.position("stranger", "gpu7") == {}


@pytest.mark.parametrize(
    "text, words",
    [
        ('[[node]]\nhost = "n1"\nrak = "R1"', ["fleet.toml: [[node]] #1 rak", "nearest known key: rack"]),
        ('[[nodes]]\nhost = "n1"', ["fleet.toml: nodes", "nearest known key: node"]),
        ('[[node]]\nrack = "R1"', ["[[node]] #1", "has no host"]),
        ('[[node]]\nhost = "n[3-1]"', ["[[node]] #1 host", "'3-1' is no range of numbers"]),
        ('[[node]]\nhost = "n1"\nslot = 1.5', ["slot", "1.5"]),
        ('[[node]]\nhost = "n/1"', ["'n/1' is no name of a host"]),
        ('[[node]]\nhost = "n[1-999999999]"', ["more than 100000 nodes"]),
        ('[[node]]\nhost = " "', ["no name and no number"]),
        ('node = "n1"', ["not a table", "[[node]]"]),
        (
            '[[node]]\nhost = "node1"\n[[card]]\ndevice = "gpu0"\nhost = "node2"',
            ["no node of this file", "nearest is node1"],
        ),
        ("[[node]\n", ["not TOML", "fleet.toml: line 1"]),
        ("", ["is empty"]),
    ],
)
def test_a_slip_is_told(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(BenchError) as caught:
        read(tmp_path, text)
    told = " ".join(str(caught.value).split())
    assert all(word in told for word in words), told
    assert "try: " in told


def test_all_slips_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as caught:
        read(tmp_path, '[[node]]\nhost = "n1"\nrak = 1\n[[node]]\nhots = "n2"\n')
    assert "rak" in str(caught.value)
    assert "hots" in str(caught.value)


def test_slips_are_told_in_chinese(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as caught:
        read(tmp_path, '[[node]]\nhost = "n[3-1]"\nrak = 1\n[[card]]\ndevice = "gpu0"\nhost = "n9"\n')
    told = catalogue("zh")(caught.value.message)
    assert "fleet.toml: [[node]] #1 host：'n[3-1]'：n[3-1]：'3-1' 不是编号范围\n可能原因: 列表写错" in told
    assert "fleet.toml: [[node]] #1 rak：不是已知的键；最接近的已知键：rack" in told
    assert "fleet.toml: [[card]] host n9：不是本文件中的节点" in told
