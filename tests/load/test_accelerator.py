"""What loads accelerators: a user's command, gpu_burn, torch; or the words for why nothing does."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from pytest_thermal.load import LoadError, Work, accelerator_works, start, torch_device
from tests.load.fakes import script
from tests.load.helpers import until


def devices(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).touch()
    return folder


def modules(*names: str) -> Callable[[str], bool]:
    return lambda name: name in names


def works(
    tmp_path: Path,
    *,
    command: str | None = None,
    cards: Collection[int] | None = None,
    workers: int | None = None,
    burner: str | None = None,
    nodes: Collection[str] = (),
    installed: Collection[str] = (),
) -> tuple[tuple[Work, ...], str]:
    return accelerator_works(
        command=command,
        cards=tuple(cards) if cards is not None else None,
        workers=workers,
        limit_seconds=90.5,
        environ={"A": "b"},
        which=lambda name: burner if name == "gpu_burn" else None,
        has_module=modules(*installed),
        devices=devices(tmp_path, *nodes),
    )


def test_a_users_command_comes_first(tmp_path: Path) -> None:
    (work,), why_not = works(tmp_path, command="/opt/burn -t {seconds} --name 'all cards'", burner="/usr/bin/gpu_burn")
    assert work.command == ("/opt/burn", "-t", "91", "--name", "all cards")
    assert (work.kind, work.tool, why_not) == ("accelerator", "user command burn", "")
    assert work.environ == {"A": "b"}


def test_a_users_command_for_each_card(tmp_path: Path) -> None:
    found, _ = works(tmp_path, command="burn --card={card}", cards=(0, 2, 3), workers=2)
    assert [work.command for work in found] == [("burn", "--card=0"), ("burn", "--card=2")]
    assert [work.tool for work in found] == ["user command burn of card 0", "user command burn of card 2"]


@pytest.mark.parametrize(
    "command, words",
    [
        ("burn --card={card}", "no cards are known"),
        ("burn 'all", "cannot be read"),
        ("  ", "is empty"),
    ],
)
def test_a_users_command_that_makes_no_sense_is_told(command: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=words):
        works(tmp_path, command=command)


def test_gpu_burn_runs_where_its_kernel_is(tmp_path: Path) -> None:
    home = tmp_path / "opt"
    real = script(home / "gpu_burn", 'pwd; echo "$@"; sleep 600')
    (home / "compare.ptx").touch()
    link = tmp_path / "gpu_burn"
    link.symlink_to(real)
    (work,), why_not = works(tmp_path, burner=str(link))
    assert (work.tool, work.command, work.folder) == ("gpu_burn", (str(real), "92"), home)
    assert (work.notes, why_not) == ((), "")
    with start(work) as load:
        until(lambda: load.status().text == "92")
        assert load.stop().tail == f"{home}\n92"


def test_gpu_burn_of_some_cards_is_one_process_each_and_the_time_comes_last(tmp_path: Path) -> None:
    found, _ = works(tmp_path, burner="/usr/bin/gpu_burn", cards=(1, 3))
    assert [work.command[1:] for work in found] == [("-i", "1", "92"), ("-i", "3", "92")]


def test_gpu_burn_without_its_kernel_is_told(tmp_path: Path) -> None:
    (work,), _ = works(tmp_path, burner=str(script(tmp_path / "gpu_burn", "")))
    assert work.folder is None
    assert "compare.ptx" in work.notes[0]


@pytest.mark.parametrize(
    "node, installed, kind",
    [
        ("nvidia0", ("torch",), "cuda"),
        ("kfd", ("torch",), "cuda"),
        ("davinci0", ("torch", "torch_npu"), "npu"),
        ("cambricon_dev0", ("torch", "torch_mlu"), "mlu"),
        ("mtgpu.0", ("torch", "torch_musa"), "musa"),
    ],
)
def test_torch_burns_what_the_machine_has(node: str, installed: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    (work,), why_not = works(tmp_path, nodes=[node], installed=installed, cards=(0, 1))
    assert (work.tool, why_not) == (f"torch {kind}", "")
    assert work.command[work.command.index("--device") + 1] == kind
    assert work.command[work.command.index("--cards") + 1] == "0,1"
    assert torch_device(has_module=modules(*installed), devices=tmp_path) == kind


def test_of_all_cards_none_is_named(tmp_path: Path) -> None:
    (work,), _ = works(tmp_path, nodes=["nvidia0"], installed=["torch"])
    assert "--cards" not in work.command


@pytest.mark.parametrize(
    "node, installed, words",
    [
        ("", ("torch",), "no accelerator is found"),
        ("nvidiactl", ("torch",), "no accelerator is found"),
        ("nvidia0", (), "neither gpu_burn nor torch is installed"),
        ("davinci3", ("torch",), "neither gpu_burn nor torch_npu is installed"),
    ],
)
def test_why_nothing_loads_it_is_told(node: str, installed: tuple[str, ...], words: str, tmp_path: Path) -> None:
    found, why_not = works(tmp_path, nodes=[node] if node else [], installed=installed)
    assert found == ()
    assert words in why_not
    assert torch_device(has_module=modules(*installed), devices=tmp_path) is None
