from __future__ import annotations

import math
import random

import numpy as np
import pytest

from pytest_thermal.recording.decimals import cells_of


def parse_decimals(content: bytes) -> tuple[list[float], list[int]]:
    """All numbers of a text, and the places of what is none."""
    numbers: list[float] = []
    wrong: list[int] = []
    for cells in cells_of(content):
        found, bad = cells.numbers(slice(None))
        wrong += [len(numbers) + index for index in bad]
        numbers += found.tolist()
    return numbers, wrong


def _anywhere(random_: random.Random) -> str:
    """1 to 20 digits with a dot before, after or among them, or without one."""
    digits = "".join(random_.choices("0123456789", k=random_.randint(1, 20)))
    place = random_.randint(0, len(digits))
    return random_.choice(["", "-"]) + digits[:place] + random_.choice(["", "."]) + digits[place:]


def test_numbers_are_exactly_what_float_makes_of_them() -> None:
    random_ = random.Random(5)
    texts = [
        random_.choice(
            [
                f"{random_.uniform(-1e6, 1e6):.{random_.randrange(7)}f}",
                f"{random_.uniform(0, 2e9):.6f}",
                str(random_.randrange(10**15)),
                f"{random_.uniform(-1, 1):.3e}",
                repr(random_.random()),
                f".{random_.randrange(10**6)}",
                f"{random_.randrange(1000)}.",
                _anywhere(random_),
                f"{random_.uniform(1e9, 3e9):.7f}",
            ]
        )
        for _ in range(20_000)
    ]
    content = "".join(text + random_.choice([",", "\n", "\r\n"]) for text in texts) + "0\n"
    numbers, wrong = parse_decimals(content.encode())
    assert wrong == []
    assert numbers == [*map(float, texts), 0.0]


def test_empty_cells_are_missing_and_no_mistake() -> None:
    numbers, wrong = parse_decimals(b",1,\n,,2\r\n,\r\n\n")
    nan = math.nan
    assert np.array_equal(numbers, [nan, 1, nan, nan, nan, 2, nan, nan, nan], equal_nan=True)
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "-",
        ".",
        "-.",
        "1.2.3",
        "1-2",
        "--1",
        "x",
        "1 2",
        "0x1f",
        "\0",
        "1e",
        "١",
        "1.2345678.",
        ".1234567.8",
        "12345678.1234567.8",
        "1234567x12345678",
        "x2345678901.23456",
        "12-4567890",
    ],
)
def test_what_is_no_number_is_told_by_its_place(text: str) -> None:
    numbers, wrong = parse_decimals(f"1,{text},3\n".encode())
    assert wrong == [1]
    assert np.array_equal(numbers, [1, math.nan, 3], equal_nan=True)


def test_places_count_on_over_the_chunks_that_it_is_read_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_thermal.recording.decimals._CHUNK_BYTES", 16)
    lines = [f"{number},{'x' if number == 700 else number + 0.5}\n" for number in range(1000)]
    numbers, wrong = parse_decimals("".join(lines).encode())
    assert wrong == [1401]
    assert len(numbers) == 2000
    assert numbers[1999] == 999.5


def test_nothing_is_no_numbers() -> None:
    numbers, wrong = parse_decimals(b"")
    assert (numbers, wrong) == ([], [])
