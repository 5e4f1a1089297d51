"""The first answer of a tool, damaged: it teaches nothing that would stay wrong for the whole run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, note

from tests.sensors.canned import EXPECTED, OUTPUTS, Canned, canned_file, files, own_tool, read, user_command, values
from tests.sensors.damage import EXAMPLES, Damage, after, cheaply, damages
from tests.sensors.test_mutations import BY_PLACE

WHOLE = [name for name in files(with_readings=True) if not name.startswith("numbers")]
# CI has no time for more than one of each tool.
OF_EACH_TOOL = WHOLE if EXAMPLES else list({name.partition("_")[0]: name for name in reversed(WHOLE)}.values())


class Once(Canned):
    """A tool whose first answers are others than all that follow."""

    def __init__(self, *first: bytes, then: bytes) -> None:
        super().__init__(self.next)
        self.left = list(first)
        self.then = then

    def next(self, _arguments: Sequence[str]) -> bytes:
        return self.left.pop(0) if self.left else self.then


@pytest.mark.parametrize("name", OF_EACH_TOOL)
def test_a_damaged_first_answer_leaves_no_trace(name: str) -> None:
    whole, command = canned_file(name).out, EXPECTED[name]["command"]
    assert isinstance(whole, bytes)
    right = values(user_command(Canned(whole), command))

    @cheaply(examples=5)
    @given(damages(whole.count(b"\n"), len(whole), by_place=name in BY_PLACE))
    def holds(damage: list[Damage]) -> None:
        source = user_command(Once(after(whole, damage), then=whole), command)
        note(repr([what for what, _ in damage]))
        found = values(source)
        # Read as another layout it is refused, since the second answer is none of that.
        assert found.items() <= right.items()
        assert values(source).items() <= right.items()

    holds()


TABLE = (OUTPUTS / "npu-smi_info_910c.txt").read_bytes()


def without(data: bytes, *lines: int) -> bytes:
    return b"".join(line for number, line in enumerate(data.splitlines(keepends=True)) if number not in lines)


def test_a_chip_that_the_first_answer_lacks_is_there() -> None:
    first = next(number for number, line in enumerate(TABLE.splitlines()) if line.startswith(b"| 0     Ascend910"))
    right = values(own_tool(Canned(TABLE), "npu-smi"))
    # The chip's two lines and the border after them: what is left looks whole.
    damaged = without(TABLE, first, first + 1, first + 2)
    source = own_tool(Once(damaged, then=TABLE), "npu-smi")
    assert values(source) == right
    assert "lacking" not in source.probe().reason


def test_half_of_a_card_is_called_by_its_chip() -> None:
    first = next(number for number, line in enumerate(TABLE.splitlines()) if line.startswith(b"| 0     Ascend910"))
    found = values(own_tool(Canned(without(TABLE, first, first + 1, first + 2)), "npu-smi"))
    right = values(own_tool(Canned(TABLE), "npu-smi"))
    assert "npu0.chip1.temperature_celsius" in found
    assert found.items() <= right.items()


def test_a_tool_that_never_says_the_same_is_refused_with_what_it_said() -> None:
    rows = (OUTPUTS / "nvidia-smi_query.txt").read_bytes().splitlines(keepends=True)
    answers = [b"".join([rows[0], *rows[1 : 1 + count]]) for count in (1, 2, 3, 4)]
    source = own_tool(Once(*answers * 9, then=b""), "nvidia-smi")
    availability = source.probe()
    assert not availability.ok
    assert "do not agree in what devices there are: 0, then 0, 1" in availability.reason


def test_a_figure_that_comes_and_goes_costs_no_device() -> None:
    whole = (OUTPUTS / "nvidia-smi_query.txt").read_bytes()
    right = values(own_tool(Canned(whole), "nvidia-smi"))
    first = right["gpu0.power_watts"]
    cell = next(cell for cell in whole.split(b", ") if cell.startswith(f"{first:.2f} W".encode()))
    source = own_tool(Once(*[whole, whole.replace(cell, b"[N/A]", 1)] * 2, then=whole), "nvidia-smi")
    assert set(values(source)) >= set(right) - {"gpu0.power_watts", "gpu0.instant.power_watts"}


@pytest.mark.parametrize("whole", [True, False])
def test_of_a_tool_too_slow_to_be_asked_again_a_whole_answer_has_to_do(
    whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    data = (OUTPUTS / "npu-smi_info_910b.txt").read_bytes()

    def out(_arguments: Sequence[str]) -> bytes:
        clock[0] += 40.0
        return data if whole else without(data, 7)

    monkeypatch.setattr("pytest_thermal.sensors.tools.asking.time.monotonic", lambda: clock[0])
    canned = Canned(out)
    availability = own_tool(canned, "npu-smi").probe()
    assert canned.calls == [["info"]]
    assert availability.ok is whole
    assert whole or "too slow to be asked again" in availability.reason


def test_an_answer_is_confirmed_by_one_more_call_and_not_asked_for_thrice() -> None:
    canned = Canned((OUTPUTS / "npu-smi_info_910b.txt").read_bytes())
    source = own_tool(canned, "npu-smi")
    assert source.probe().ok
    assert canned.calls == [["info"], ["info"]]
    canned.calls.clear()
    assert read(source)
    assert canned.calls == [["info"]]


@pytest.mark.parametrize("printed", ["HBM Capacity(MB) : 131072\n", "NPU ID : 3\n", "GPU Slowdown Temp : 96 C\n"])
def test_a_piece_of_another_answer_is_no_list_of_temperatures(printed: str) -> None:
    source = user_command(Canned(printed), "my-temperatures")
    assert not source.probe().ok
    assert printed.partition(" :")[0] in source.probe().reason


def test_digits_of_another_script_are_the_same_cards() -> None:
    whole = (OUTPUTS / "efsmi_table_1.7.txt").read_text("utf-8")
    eastern = whole.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))
    assert values(own_tool(Canned(eastern), "efsmi")) == values(own_tool(Canned(whole), "efsmi"))


def test_a_list_that_is_printed_twice_is_one_list() -> None:
    for name in ("ipmitool_elist.txt", "ipmitool_list.txt", "ipmitool_csv.txt"):
        whole = (OUTPUTS / name).read_bytes()
        command = EXPECTED[name]["command"]
        assert values(user_command(Canned(whole * 2), command)) == values(user_command(Canned(whole), command))
