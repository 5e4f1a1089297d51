"""The torch burner, with a torch that computes what a test wants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_thermal.load.work import own_environ
from tests.load.fakes import fake_torch


def burn(
    tmp_path: Path,
    *arguments: str,
    given: bytes = b"",
    adapters: tuple[str, ...] = (),
    environ: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Exit code and words of a burner that has a fake torch."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_thermal.load.torch_burner", "--limit", "9", *arguments],
        input=given,
        capture_output=True,
        env={**os.environ, **own_environ({"PYTHONPATH": str(fake_torch(tmp_path, *adapters))}), **(environ or {})},
        check=False,
    )
    assert done.stderr == b""
    return done.returncode, done.stdout.decode()


def test_all_cards_are_burned(tmp_path: Path) -> None:
    code, said = burn(tmp_path, "--device", "cuda")
    assert code == 0
    assert said.splitlines() == [
        "cuda0: products of 16384 × 16384, compared bit by bit",
        "cuda1: products of 16384 × 16384, compared bit by bit",
    ]


@pytest.mark.parametrize("kind", ["npu", "mlu", "musa"])
def test_other_kinds_are_taught_to_torch(kind: str, tmp_path: Path) -> None:
    code, said = burn(tmp_path, "--device", kind, "--cards", "1", adapters=(f"torch_{kind}",))
    assert code == 0
    size = 8192 if kind == "musa" else 16384  # what has no way to ask for free memory gets a middling size
    assert said.splitlines() == [f"{kind}1: products of {size} × {size}, compared bit by bit"]


def test_the_cpu_needs_no_device(tmp_path: Path) -> None:
    code, said = burn(tmp_path, "--device", "cpu")
    assert (code, said) == (0, "cpu: products of 512 × 512, compared bit by bit\n")


def test_where_memory_is_short_matrices_are_smaller(tmp_path: Path) -> None:
    code, said = burn(tmp_path, "--device", "cuda", "--cards", "0", environ={"FAKE_TORCH_LARGEST": "5000"})
    assert (code, said) == (0, "cuda0: products of 4096 × 4096, compared bit by bit\n")


def test_a_product_that_changes_is_a_fault(tmp_path: Path) -> None:
    code, said = burn(tmp_path, "--device", "cpu", environ={"FAKE_TORCH_WRONG_AFTER": "20"})
    assert code == 3
    fault = next(line for line in said.splitlines() if line.startswith("FAULT"))
    assert fault == (
        "FAULT: cpu computes wrongly: 1 of 262144 elements of a product differ from what the same product was before"
    )


def test_a_device_that_does_not_repeat_itself_is_compared_within_rounding(tmp_path: Path) -> None:
    code, said = burn(tmp_path, "--device", "cpu", environ={"FAKE_TORCH_UNREPEATABLE": "1"})
    assert code == 0
    assert "within rounding" in said
    code, said = burn(
        tmp_path,
        *("--device", "cpu"),
        environ={"FAKE_TORCH_UNREPEATABLE": "1", "FAKE_TORCH_WRONG_AFTER": "20"},
    )
    assert code == 3
    assert "FAULT: cpu" in said


@pytest.mark.parametrize(
    "arguments, environ, words",
    [
        (("--device", "cuda"), {"FAKE_TORCH_ABSENT": "cuda"}, "torch 0.0-fake sees no cuda device\nlikely: "),
        (("--device", "cuda", "--cards", "5"), {}, "there is no cuda card 5: torch sees 2"),
        (("--device", "npu"), {}, "torch_npu cannot be imported by"),
        (("--device", "cuda"), {"FAKE_TORCH_LARGEST": "100"}, "cuda0: there is no memory left on it"),
    ],
)
def test_what_is_missing_is_told(
    arguments: tuple[str, ...], environ: dict[str, str], words: str, tmp_path: Path
) -> None:
    code, said = burn(tmp_path, *arguments, environ=environ)
    assert code == 2
    assert said.startswith(words)


def test_without_torch_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.12: cannot open')", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest_thermal.load.torch_burner", "--device", "cuda", "--limit", "1"],
        capture_output=True,
        env={**os.environ, **own_environ({"PYTHONPATH": str(tmp_path)})},
        check=False,
    )
    assert done.returncode == 2
    assert b"torch cannot be imported by" in done.stdout
    assert b"libcudart.so.12: cannot open" in done.stdout


def test_bursts_come_on_command(tmp_path: Path) -> None:
    code, said = burn(tmp_path, "--device", "cpu", "--bursts", given=b"0.01\n0.01\n")
    assert code == 0
    assert said.splitlines()[1:] == ["ready", "done", "done"]
