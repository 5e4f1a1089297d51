"""Stand-ins: a torch with as much of its interface as the burner uses, and tools as small scripts."""

from __future__ import annotations

from pathlib import Path

TORCH = '''
"""Matrices are one number each; what a card computes wrongly, and how often, stands in the environment."""

import os
import sys
import time
import types

__version__ = "0.0-fake"
float16, float32 = "float16", "float32"
WRONG_AFTER = int(os.environ.get("FAKE_TORCH_WRONG_AFTER", "0"))
UNREPEATABLE = os.environ.get("FAKE_TORCH_UNREPEATABLE") == "1"
LARGEST = int(os.environ.get("FAKE_TORCH_LARGEST", "1000000"))
made = 0
# From here on time passes by what is computed, and by nothing else.
clock = time.monotonic()
time.monotonic = lambda: clock


class Tensor:
    def __init__(self, value, size):
        self.value, self.size = value, size

    def __sub__(self, other):
        return Tensor(self.value - (other.value if isinstance(other, Tensor) else other), self.size)

    def __ne__(self, other):
        return Tensor(float(self.value != other.value), self.size)

    def __le__(self, limit):
        return Tensor(float(self.value <= limit), self.size)

    def __invert__(self):
        return Tensor(1.0 - self.value, self.size)

    def abs(self):
        return Tensor(abs(self.value), self.size)

    def max(self):
        return self

    def sum(self):
        return self

    def item(self):
        return self.value

    def clone(self):
        return Tensor(self.value, self.size)


def manual_seed(seed):
    pass


def rand(rows, columns, device, dtype):
    if rows > LARGEST:
        raise RuntimeError("out of memory")
    return Tensor(2.0, rows)


def matmul(left, right, out=None):
    global made, clock
    made += 1
    clock += 0.02
    value = left.value * right.value
    if WRONG_AFTER and made > WRONG_AFTER:
        value += 1.0
    elif UNREPEATABLE:
        value += 0.0001 * (made % 2)
    if out is None:
        return Tensor(value, left.size)
    out.value = value
    return out


def backend(name):
    found = types.SimpleNamespace(
        is_available=lambda: os.environ.get("FAKE_TORCH_ABSENT") != name,
        device_count=lambda: 2,
        synchronize=lambda index: None,
    )
    if name != "musa":
        found.mem_get_info = lambda index: (8 * 1024 ** 3, 16 * 1024 ** 3)
    return found


cuda = backend("cuda")
'''

ADAPTER = "import torch\ntorch.{kind} = torch.backend('{kind}')\n"


def fake_torch(folder: Path, *adapters: str) -> Path:
    """A folder for PYTHONPATH with a torch in it, and what teaches it other devices."""
    (folder / "torch.py").write_text(TORCH, encoding="utf-8")
    for adapter in adapters:
        text = ADAPTER.format(kind=adapter.removeprefix("torch_"))
        (folder / f"{adapter}.py").write_text(text, encoding="utf-8")
    return folder


def script(path: Path, text: str) -> Path:
    """A program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
