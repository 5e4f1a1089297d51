"""Burns accelerators by products of large matrices: ``torch_burner --device cuda|npu|mlu|musa|cpu --limit SECONDS``.

One process for all cards, or those of ``--cards 0,2``: products are queued without waiting, so that each card has
work. What a card computes has to stay the same: a product that does not is a fault of the card, and is told.
With ``--bursts`` it burns on command: see `burn_bursts`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from pytest_thermal.load.burning import burn_bursts, say

ADAPTERS = {"cuda": None, "npu": "torch_npu", "mlu": "torch_mlu", "musa": "torch_musa", "cpu": None}
"""The package beside torch that teaches it a kind of device."""

_BATCH_SECONDS = 0.2
_TELL_SECONDS = 10.0
_LARGEST, _SMALLEST, _STEP = 16384, 256, 256
_CPU_SIZE = 512
_SHARE_OF_FREE = 0.6
_TENSORS = 4  # two factors, the product, and what it has to be
_MOST_PRODUCTS = 10_000
CANNOT, FAULTY = 2, 3


class NoDevice(Exception):  # noqa: N818 - it is told to a person, in these words
    """Why nothing can be burned."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Burn until the limit; 2 where there is nothing to burn, 3 where products were wrong."""
    parser = argparse.ArgumentParser(prog="torch_burner")
    parser.add_argument("--device", choices=sorted(ADAPTERS), required=True)
    parser.add_argument("--cards", default="")
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--bursts", action="store_true")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + options.limit
    try:
        cards = [int(card) for card in options.cards.split(",") if card]
        burners = _open(options.device, cards)
    except NoDevice as reason:
        say(str(reason))
        return CANNOT
    fire = _Fire(burners)
    if options.bursts:
        burn_bursts(fire.burn, sys.stdin, deadline=deadline)
    else:
        fire.burn(deadline)
    return FAULTY if any(burner.wrong for burner in burners) else 0


class _Fire:
    """All cards at once."""

    def __init__(self, burners: Sequence[_Card]) -> None:
        self._burners = burners
        self._told_at = time.monotonic()
        self._products = 0

    def burn(self, until: float) -> None:
        while time.monotonic() < until:
            for burner in self._burners:
                burner.queue()
            for burner in self._burners:
                burner.settle()
            self._tell()

    def _tell(self) -> None:
        now = time.monotonic()
        seconds = now - self._told_at
        if seconds < _TELL_SECONDS:
            return
        self._told_at = now
        parts = []
        for burner in self._burners:
            teraflops = burner.take_products() * 2 * burner.size**3 / seconds / 1e12
            parts.append(f"{burner.name} {teraflops:.1f} Tflop/s, {burner.wrong} wrong")
        say("; ".join(parts))


class _Card:
    """One card: its matrices, and the product that they must have."""

    def __init__(self, torch: Any, kind: str, index: int) -> None:
        self.name = f"{kind}{index}" if kind != "cpu" else "cpu"
        self.wrong = 0
        """Products that were not what they have to be."""
        self._torch = torch
        self._backend = getattr(torch, kind) if kind != "cpu" else None
        self._index = index
        self._device = f"{kind}:{index}" if kind != "cpu" else "cpu"
        self._queued = 1
        self._products = 0
        self.size = self._allocate()
        self._exact = self._is_repeatable()
        say(
            f"{self.name}: products of {self.size} × {self.size}, compared "
            + ("bit by bit" if self._exact else "within rounding: this device does not repeat them bit by bit")
        )

    def queue(self) -> None:
        """Give the card work for a fraction of a second, without waiting for it."""
        self._begin = time.monotonic()
        for _ in range(self._queued):
            self._torch.matmul(self._left, self._right, out=self._out)

    def settle(self) -> None:
        """Wait for the work, and look at its last product."""
        self._synchronize()
        seconds = max(1e-6, time.monotonic() - self._begin)
        self._products += self._queued
        wanted = self._queued * _BATCH_SECONDS / seconds
        self._queued = min(_MOST_PRODUCTS, max(1, math.ceil(min(wanted, 4.0 * self._queued))))
        different = self._different()
        if different:
            self.wrong += 1
            say(
                f"FAULT: {self.name} computes wrongly: {different} of {self.size**2} elements of a product differ "
                f"from what the same product was before"
            )

    def take_products(self) -> int:
        """Products since the last call."""
        products, self._products = self._products, 0
        return products

    def _allocate(self) -> int:
        size = self._fitting_size()
        while True:
            try:
                self._fill(size)
            except RuntimeError as error:  # torch's out of memory is one, whatever the device
                if size // 2 < _SMALLEST:
                    text = f"{self.name}: there is no memory left on it for two matrices of {size} × {size}: {error}"
                    raise NoDevice(text) from error
                size //= 2
            else:
                return size

    def _fitting_size(self) -> int:
        if self._backend is None:
            return _CPU_SIZE
        if not hasattr(self._backend, "mem_get_info"):
            return _LARGEST // 2
        free_bytes, _ = self._backend.mem_get_info(self._index)
        size = int(math.sqrt(free_bytes * _SHARE_OF_FREE / (_TENSORS * 2)))
        return max(_SMALLEST, min(_LARGEST, size // _STEP * _STEP))

    def _fill(self, size: int) -> None:
        torch = self._torch
        kind = torch.float32 if self._backend is None else torch.float16
        torch.manual_seed(0)
        # Not larger than ±1: a sum of thousands of products has to stay within half precision.
        self._left = torch.rand(size, size, device=self._device, dtype=kind) - 0.5
        self._right = torch.rand(size, size, device=self._device, dtype=kind) - 0.5
        self._out = torch.matmul(self._left, self._right)
        self._expected = self._out.clone()
        self._synchronize()

    def _is_repeatable(self) -> bool:
        for _ in range(2):
            torch = self._torch
            torch.matmul(self._left, self._right, out=self._out)
            self._synchronize()
            if int((self._out != self._expected).sum().item()):
                return False
        return True

    def _different(self) -> int:
        if self._exact:
            return int((self._out != self._expected).sum().item())
        # Rounding differs by about one step of half precision, relative to the largest element.
        largest = float(self._expected.abs().max().item())
        # Turned round, so that what is no number counts as different too.
        near = (self._out - self._expected).abs() <= 0.01 * largest
        return int((~near).sum().item())

    def _synchronize(self) -> None:
        if self._backend is not None:
            self._backend.synchronize(self._index)


def _open(kind: str, cards: Sequence[int]) -> list[_Card]:
    torch = _import("torch")
    adapter = ADAPTERS[kind]
    if adapter is not None:
        _import(adapter)
    if kind == "cpu":
        return [_Card(torch, kind, 0)]
    backend = getattr(torch, kind, None)
    if backend is None or not backend.is_available():
        version = getattr(torch, "__version__", "of unknown version")
        raise NoDevice(
            f"torch {version} sees no {kind} device\n"
            "likely: this torch was built for another kind of device, or its driver does not answer\n"
            f"try: python -c 'import torch; print(torch.{kind}.is_available())'"
        )
    count = backend.device_count()
    absent = [card for card in cards if not 0 <= card < count]
    if absent:
        raise NoDevice(f"there is no {kind} card {absent[0]}: torch sees {count}")
    return [_Card(torch, kind, index) for index in (cards or range(count))]


def _import(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise NoDevice(
            f"{package} cannot be imported by {sys.executable}: {error}\n"
            f"try: install {package} there, or give the bench a burner of its own"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
