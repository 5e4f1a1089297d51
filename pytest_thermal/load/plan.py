"""Which loads a bench wants, by its ``[stress] mode``, and what of that this machine cannot make."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pytest_thermal.bench import Bench, is_loopback
from pytest_thermal.load.accelerator import accelerator_works, torch_device
from pytest_thermal.load.cpu import Which, cpu_work
from pytest_thermal.load.inference_work import inference_work
from pytest_thermal.load.work import Work, own_environ, own_program
from pytest_thermal.model.said import say
from pytest_thermal.recording import RunClock

DEMO_CARDS = (0, 1)


def plan_works(
    bench: Bench,
    *,
    run: Path | None,
    clock: RunClock,
    limit_seconds: float,
    environ: Mapping[str, str],
    accelerator_command: str | None = None,
    profile: str = "chat",
    rate: float | None = None,
    which: Which = shutil.which,
) -> tuple[list[Work], list[str]]:
    """The works of the bench's mode, and what is not loaded and why, in words.

    ``environ`` is added to the environment of what is started. Each ends by itself after ``limit_seconds``.

    Raises:
        LoadError: A setting makes no sense.
    """
    stress = bench.stress
    works: list[Work] = []
    lacking: list[str] = []
    if stress.mode == "gpu" or (stress.mode == "mixed" and _cards_need_a_burn(bench)):
        burning, why_not = burn_works(
            bench, limit_seconds=limit_seconds, environ=environ, accelerator_command=accelerator_command, which=which
        )
        works += burning
        lacking += [why_not] if why_not else []
    if stress.mode == "gpu":
        return works, lacking
    if stress.mode in ("cpu", "mixed"):
        works.append(
            cpu_work(
                workers=stress.cpu_workers,
                limit_seconds=limit_seconds,
                environ=environ,
                secrets=bench.secrets(),
                which=which,
            )
        )
    if stress.mode in ("inference", "mixed"):
        ratio = stress.inference_ratio if stress.mode == "mixed" else 1.0
        burner: tuple[str, ...] = ()
        if ratio < 1:
            burner, why_cpu = _burst_program(limit_seconds, demo=bench.demo)
            lacking += [why_cpu] if why_cpu else []
        works.append(
            inference_work(
                domains=bench.domains,
                inference=bench.inference,
                stress=stress,
                timeouts=bench.timeouts,
                run=run,
                clock=clock,
                profile=profile,
                rate_per_second=rate,
                limit_seconds=limit_seconds,
                environ=environ,
                secrets=bench.secrets(),
                inference_ratio=ratio,
                burner=burner,
            )
        )
    return works, lacking


def _cards_need_a_burn(bench: Bench) -> bool:
    """Whether requests alone leave this machine's cards idle in a mixed load: the model is served elsewhere.

    ``gpu_workers`` of the bench file has the last word: 0 never, more always.
    """
    if bench.stress.gpu_workers is not None:
        return bench.stress.gpu_workers > 0
    return not any(is_loopback(domain.base_url) for domain in bench.domains)


def burn_works(
    bench: Bench,
    *,
    limit_seconds: float,
    environ: Mapping[str, str],
    accelerator_command: str | None = None,
    which: Which = shutil.which,
) -> tuple[tuple[Work, ...], str]:
    """The works that burn the bench's accelerators, whatever its mode (the limit phase), and why there are none.

    Raises:
        LoadError: The command cannot be read.
    """
    if bench.demo and not accelerator_command:
        cards = bench.monitor.gpu_indices if bench.monitor.gpu_indices is not None else DEMO_CARDS
        return tuple(
            Work(
                kind="accelerator",
                tool=f"demo accelerator {card}",
                command=own_program(
                    "pytest_thermal.demo.accelerator", "--card", str(card), "--limit", f"{limit_seconds + 1:g}"
                ),
                environ=own_environ(environ),
                limit_seconds=limit_seconds,
                secrets=bench.secrets(),
            )
            for card in cards[: bench.stress.gpu_workers]
        ), ""
    return accelerator_works(
        command=accelerator_command,
        cards=bench.monitor.gpu_indices,
        workers=bench.stress.gpu_workers,
        limit_seconds=limit_seconds,
        environ=environ,
        secrets=bench.secrets(),
        which=which,
    )


def _burst_program(limit_seconds: float, *, demo: bool) -> tuple[tuple[str, ...], str]:
    """What takes the compute bursts, and why it is the CPU where it is."""
    limit = ("--bursts", "--limit", f"{limit_seconds + 1:g}")
    device = None if demo else torch_device()
    if device is not None:
        return own_program("pytest_thermal.load.torch_burner", "--device", device, *limit), ""
    why = "" if demo else say("compute bursts go to the CPU: torch, or an accelerator that it knows, is not there")
    return own_program("pytest_thermal.load.cpu_burner", *limit), why
