"""The load of a simulated card: ``python -m pytest_thermal.demo.accelerator --card K``.

It is alive, and that is what the demo bench sees of it; so that it is no sham, it multiplies matrices a little and
compares the products, without taking the cores from those who measure.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence

from .state import FOLDER_VARIABLE

_SIZE = 12
_DUTY = 0.02
"""Share of the time that it computes."""
_REPORT_SECONDS = 1.0

Matrix = list[list[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Load the card until the limit.

    Returns:
        0 at the limit, 1 when two equal products differed, 2 when it was not started by the demo bench.
    """
    options = _parser().parse_args(arguments)
    if not os.environ.get(FOLDER_VARIABLE):
        sys.stderr.write(
            f"demo accelerator: {FOLDER_VARIABLE} is not set, so no simulated card gets warm\n"
            "try: let the demo bench start it (pytest -m thermal --demo)\n"
        )
        return 2
    which = "every card" if options.card is None else f"gpu{options.card}"
    left, right = _some_matrix(1), _some_matrix(2)
    expected = _product(left, right)
    begin = time.monotonic()
    told = begin - _REPORT_SECONDS
    rounds = 0
    while (now := time.monotonic()) - begin < options.limit:
        if _product(left, right) != expected:
            sys.stdout.write(f"{which}: a product was not what it was before: this computer cannot be trusted\n")
            return 1
        rounds += 1
        if now - told >= _REPORT_SECONDS:
            told = now
            sys.stdout.write(f"simulated load of {which}: {rounds} products\n")
            sys.stdout.flush()
        time.sleep((time.monotonic() - now) * (1 / _DUTY - 1))
    return 0


def _some_matrix(seed: int) -> Matrix:
    rng = random.Random(seed)  # noqa: S311 - numbers to multiply
    return [[rng.random() for _ in range(_SIZE)] for _ in range(_SIZE)]


def _product(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_thermal.demo.accelerator", description="Load a card of the simulated demo bench."
    )
    parser.add_argument("--card", type=int, metavar="K", help="the card's number (default: every card)")
    parser.add_argument(
        "--limit", type=float, default=3600.0, metavar="SECONDS", help="when it ends by itself (default 3600)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
