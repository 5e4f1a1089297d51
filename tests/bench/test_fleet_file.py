"""fleet.toml: nodes and places; every slip is told with what is near."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import BenchError
from pytest_thermal.bench.fleet_file import CARD_SLOT, FleetFile, expand_hosts, read_fleet_file


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
        ('[[node]]\nhost = "n[3-1]"', ["[[node]] #1 host", "range 3-1 is empty"]),
        ('[[node]]\nhost = "n1"\nslot = 1.5', ["slot", "1.5"]),
        ('[[node]]\nhost = "n 1"', ["no name of a host"]),
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


@pytest.mark.parametrize(
    "text, names",
    [
        ("n[01-03,7],gw1", ("n01", "n02", "n03", "n7", "gw1")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n08", ("n08",)),
        (" a , b ", ("a", "b")),
        ("n[9-11]", ("n9", "n10", "n11")),
    ],
)
def test_lists_of_hosts(text: str, names: tuple[str, ...]) -> None:
    assert expand_hosts(text) == names


@pytest.mark.parametrize("text", ["", "n[1-", "n[a-b]", "n1,n1", "n[1-999999999]", "../x"])
def test_what_is_no_list_of_hosts(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        expand_hosts(text)
