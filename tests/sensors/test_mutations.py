"""However an output is damaged, a reading is right or missing: never wrong, never another card's, never 0."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, note

from tests.sensors.canned import EXPECTED, canned_file, files, user_command, values
from tests.sensors.damage import Damage, after, cheaply, damages

WHOLE = [name for name in files(with_readings=True) if not name.startswith("numbers")]
REPEATS = ("dmon", "watch", "dump")
"""Outputs that hold earlier readings too, which are right as well."""


BY_PLACE = ("nvidia-smi_query_temperature_only.txt",)
"""Cards are known by their places alone: a line lost and another twice, and nobody can tell."""


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_output_gives_nothing_wrong(name: str) -> None:
    canned = canned_file(name)
    data = canned.out
    assert isinstance(data, bytes)
    source = user_command(canned, EXPECTED[name]["command"])
    right = values(source)
    assert right
    repeats = any(word in name for word in REPEATS)

    @cheaply(examples=12)
    @given(damages(data.count(b"\n"), len(data), by_place=name in BY_PLACE))
    def holds(damage: list[Damage]) -> None:
        canned.out = after(data, damage)
        found = values(source)
        note(repr([what for what, _ in damage]))
        assert repeats or found.items() <= right.items()

    holds()
    canned.out = data
    assert values(source) == right


@pytest.mark.parametrize(
    "name",
    # What has no words cannot be in another language.
    [name for name in WHOLE if "noheader" not in EXPECTED[name]["command"] and name != "xpu-smi_m.txt"],
)
def test_a_tool_in_another_language_is_not_understood(name: str) -> None:
    canned = canned_file(name)
    source = user_command(canned, EXPECTED[name]["command"])
    assert source.probe().ok
    assert isinstance(canned.out, bytes)
    text = re.sub(r"[A-Za-z][A-Za-z ._-]{2,}", lambda match: "值" * len(match[0]), canned.out.decode())
    canned.out = text.encode()
    assert values(source) == {}


@pytest.mark.parametrize(
    "name, second",
    [
        ("cnmon_info.txt", "Card 1"),
        ("amd-smi_metric_text.txt", "GPU: 1"),
        ("efsmi_q.txt", "DEV ID 1"),
        ("mx-smi_temperature.txt", "GPU#1"),
        ("nvidia-smi_text_margins.txt", "GPU 0"),
    ],
)
def test_where_the_title_between_two_cards_is_lost_no_figure_is_anybodys(name: str, second: str) -> None:
    """Even where the first card's own figure is lost too, so that the second's stands in its block alone."""
    canned = canned_file(name)
    assert isinstance(canned.out, bytes)
    lines = canned.out.decode().splitlines(keepends=True)
    source = user_command(canned, EXPECTED[name]["command"])
    right = values(source)
    title = [number for number, line in enumerate(lines) if line.startswith(second)][-1]
    begin = next(number for number, line in enumerate(lines) if re.match(r"Card|GPU|DEV", line))
    for lost in range(begin + 1, title):
        canned.out = "".join(line for number, line in enumerate(lines) if number not in {lost, title})
        found = values(source)
        assert found.items() <= right.items(), lines[lost]
