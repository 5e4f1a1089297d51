"""What is special to npu-smi: cards and chips, the controller's figures, one call a chip."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Missing
from tests.sensors.canned import OUTPUTS, Canned, own_tool, read, values

MAP = (OUTPUTS / "npu-smi_m_310p.txt").read_text("utf-8")


def keys(*pairs: tuple[str, object]) -> str:
    return "".join(f"\t{name:<30} : {value}\n" for name, value in pairs)


def details(arguments: Sequence[str]) -> str:
    """A 310P server: no HBM; power by the controller only."""
    if "-m" in arguments:
        return MAP
    card = arguments[arguments.index("-i") + 1]
    if "memory" in arguments:
        return keys(("NPU ID", card), ("Chip ID", arguments[arguments.index("-c") + 1]), ("DDR Capacity(MB)", 44280))
    return (
        keys(("NPU ID", card), ("Chip Count", 2))
        + "\n"
        + keys(("Power Dissipation(W)", 30 + int(card)), ("Chip Name", "MCU"))
    )


def test_the_power_of_a_card_comes_from_its_controller() -> None:
    canned = Canned(details)
    assert values(own_tool(canned, "npu-smi-details")) == {"npu1.power_watts": 31, "npu4.power_watts": 34}
    # Asked once a card, although it has two chips; at start and for the reading.
    assert canned.calls.count(["info", "-t", "power", "-i", "4"]) == 2
    # What no card answers is not asked again.
    assert canned.calls.count(["info", "-t", "memory", "-i", "4", "-c", "1"]) == 1


def test_a_family_without_chips_is_asked_without_one() -> None:
    def out(arguments: Sequence[str]) -> str:
        if "-m" in arguments:
            return (OUTPUTS / "npu-smi_m_950.txt").read_text("utf-8")
        return (OUTPUTS / "npu-smi_t_memory_950.txt").read_text("utf-8")

    canned = Canned(out)
    source = own_tool(canned, "npu-smi-details")
    assert values(source) == {"npu0.memory.temperature_celsius": 56, "npu1.memory.temperature_celsius": 56}
    assert not any("-c" in call for call in canned.calls)


def test_an_answer_about_another_card_is_none() -> None:
    def out(arguments: Sequence[str]) -> str:
        if "-m" in arguments:
            return MAP.replace("310P3", "910B3")
        return keys(("NPU ID", 4), ("Chip ID", 0), ("HBM Temperature(C)", 55))

    assert values(own_tool(Canned(out), "npu-smi-details")) == {"npu4.memory.temperature_celsius": 55}


def test_without_a_map_the_list_says_which_cards_there_are() -> None:
    def out(arguments: Sequence[str]) -> str:
        if "-m" in arguments:
            return "Error parameter of -m\n"
        if "-l" in arguments:
            return (OUTPUTS / "npu-smi_l.txt").read_text("utf-8")
        card, chip = arguments[arguments.index("-i") + 1], arguments[arguments.index("-c") + 1]
        return keys(("NPU ID", card), ("Chip ID", chip), ("HBM Temperature(C)", 40 + int(card) + int(chip)))

    assert values(own_tool(Canned(out), "npu-smi-details")) == {
        "npu2.chip0.memory.temperature_celsius": 42,
        "npu2.chip1.memory.temperature_celsius": 43,
        "npu7.memory.temperature_celsius": 47,
    }


def test_a_hung_call_ends_the_round() -> None:
    canned = Canned(details)
    source = own_tool(canned, "npu-smi-details")
    assert source.probe().ok
    canned.hung, canned.problem = True, "gave no complete answer in 10 s"
    canned.calls.clear()
    assert {reading.missing for reading in source.read()} == {Missing.TIMEOUT}
    assert len(canned.calls) == 1


def test_a_row_that_mixes_two_cards_is_refused() -> None:
    text = (OUTPUTS / "npu-smi_info_910b.txt").read_text("utf-8")
    canned = Canned(text)
    source = own_tool(canned, "npu-smi")
    assert source.probe().ok
    lines = text.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("| 0     910B2"))
    # The second line of card 0 and the first of card 1 are lost, and the border between them.
    del lines[first + 1 : first + 4]
    canned.out = "".join(lines)
    readings = read(source)
    for card in ("npu0", "npu1"):
        assert readings[f"{card}.temperature_celsius"].missing is Missing.NOT_UNDERSTOOD
    assert readings["npu2.temperature_celsius"].value == 58


def test_one_card_less_moves_no_other() -> None:
    text = (OUTPUTS / "npu-smi_info_910b.txt").read_text("utf-8")
    canned = Canned(text)
    source = own_tool(canned, "npu-smi")
    assert source.probe().ok
    lines = text.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("| 1     910B2"))
    del lines[first : first + 3]
    canned.out = "".join(lines)
    readings = read(source)
    assert readings["npu1.temperature_celsius"].missing is Missing.ABSENT
    assert readings["npu2.temperature_celsius"].value == 58
    assert readings["npu5.temperature_celsius"].value == 40


def test_nameless_cards_are_refused_when_one_is_missing() -> None:
    text = (OUTPUTS / "npu-smi_info_950.txt").read_text("utf-8").replace("0000:01:00.0", "NA          ")
    canned = Canned(text)
    source = own_tool(canned, "npu-smi")
    assert values(source)["npu1.temperature_celsius"] == 63
    lines = text.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("| 0      |"))
    del lines[first : first + 3]
    canned.out = "".join(lines)
    assert {reading.missing for reading in source.read()} == {Missing.NOT_UNDERSTOOD}


def test_a_call_that_fails_is_told_of_its_own_card_alone() -> None:
    broken: set[str] = set()

    def out(arguments: Sequence[str]) -> str:
        card = arguments[arguments.index("-i") + 1] if "-i" in arguments else ""
        return "dcmi get power failed. ret is -8012\n" if card in broken else details(arguments)

    source = own_tool(Canned(out), "npu-smi-details")
    assert source.probe().ok
    broken.add("4")
    readings = read(source)
    assert readings["npu1.power_watts"].value == 31
    assert readings["npu4.power_watts"].missing is Missing.DEVICE_ERROR
    assert "-8012" in readings["npu4.power_watts"].detail
