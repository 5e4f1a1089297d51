"""However an output is damaged, a reading is right or missing: never wrong, never another card's, never 0."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from tests.sensors.canned import EXPECTED, canned_file, files, user_command, values

WHOLE = [name for name in files(with_readings=True) if not name.startswith("numbers")]
REPEATS = ("dmon", "watch", "dump")
"""Outputs that hold earlier readings too, which are right as well."""


WARNINGS = (
    b"WARNING: 3 of 4 cards at 42 C, 17 W\n",
    b"[WARNING] {json} [0] [] {}\n",
    b'{"card0": {}}\n',
    b"|  |\n",
    b"GPU  Temp\n0, 1, 2\n",
)


def wider(data: bytes, more: int) -> bytes:
    """The same table with more room in each column."""
    found = []
    for line in data.split(b"\n"):
        fill = line[1:2] if set(line) <= set(b"|+-=") else b" "
        framed = line.startswith((b"|", b"+"))
        found.append(re.sub(rb"([|+])(?=.)", rb"\g<1>" + fill * more, line) if framed else line)
    return b"\n".join(found)


def damaged(data: bytes, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    lines = data.splitlines(keepends=True)
    for end in sorted(chance.sample(range(len(data)), min(len(data), 16))):
        yield f"cut after {end} bytes", data[:end]
    yield "printed twice", data + data
    yield "with CRLF", data.replace(b"\n", b"\r\n")
    yield "in wider columns", wider(data, chance.randrange(1, 12))
    yield "with wider gaps", re.sub(rb"  +", lambda match: match[0] + b" " * chance.randrange(4), data)
    yield "indented", b"".join(b"  " + line for line in lines)
    yield "with decimal commas", re.sub(rb"(\d)\.(\d)", rb"\1,\2", data)
    for warning in WARNINGS:
        yield f"after {warning!r}", warning + data
    yield "coloured", b"\x1b[32m" + data.replace(b" ", b"\x1b[0m ") + b"\x1b[0m\n"
    yield "with a BOM", b"\xef\xbb\xbf" + data
    yield "with a title set", b"\x1b]0;monitor\x07" + data
    yield "as UTF-16", data.decode().encode("utf-16")
    for number in chance.sample(range(len(lines)), min(len(lines), 5)):
        yield f"without line {number}", b"".join(lines[:number] + lines[number + 1 :])
        yield f"line {number} twice", b"".join(lines[: number + 1] + lines[number:])
        warning = b"[WARNING] the package of 42 C is old, 99 % of 300 W\n"
        yield f"a warning before line {number}", b"".join((*lines[:number], warning, *lines[number:]))
        half = lines[number][: len(lines[number]) // 2] + b"\n"
        yield f"line {number} torn", b"".join((*lines[:number], half, *lines[number + 1 :]))
    for _ in range(6):
        place = chance.randrange(len(data))
        noise = bytes(chance.randrange(128, 256) for _ in range(chance.randrange(1, 12)))
        yield f"noise at {place}", data[:place] + noise + data[place:]


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_output_gives_nothing_wrong(name: str) -> None:
    canned = canned_file(name)
    data = canned.out
    assert isinstance(data, bytes)
    source = user_command(canned, EXPECTED[name]["command"])
    right = values(source)
    assert right
    wrong = []
    for what, out in damaged(data, random.Random(name)):
        canned.out = out
        for sensor, value in values(source).items():
            if value != right.get(sensor) and not any(word in name for word in REPEATS):
                wrong.append(f"{what}: {sensor} {value}, not {right.get(sensor)}")
        canned.out = data
        assert values(source) == right
    assert not wrong


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
