"""The accelerator load: a user's command, gpu_burn, or the torch burner."""

from __future__ import annotations

import importlib.util
import math
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from pytest_thermal.load.cpu import Which
from pytest_thermal.load.errors import LoadError
from pytest_thermal.load.torch_burner import ADAPTERS
from pytest_thermal.load.work import Work, own_environ, own_program
from pytest_thermal.model.said import say

_NODES = {
    "npu": ("davinci[0-9]*",),
    "mlu": ("cambricon_dev[0-9]*",),
    "musa": ("mtgpu.[0-9]*", "musa[0-9]*"),
    "cuda": ("nvidia[0-9]*", "kfd", "dxg"),
}
"""Device files by what torch calls the kind; ROCm's cards are `cuda` to torch, and so are WSL's."""

_KERNEL = "compare.ptx"


def accelerator_works(
    *,
    command: str | None,
    cards: Sequence[int] | None,
    workers: int | None,
    limit_seconds: float,
    environ: Mapping[str, str],
    secrets: Sequence[SecretStr] = (),
    which: Which = shutil.which,
    has_module: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None,
    devices: Path = Path("/dev"),
) -> tuple[tuple[Work, ...], str]:
    """What loads the accelerators, and the words for why nothing does.

    ``command`` is a user's own, run without a shell; ``{seconds}`` in it stands for the time limit, and ``{card}`` for
    each card in turn (it then needs ``cards``). ``cards`` are indices, None for all; ``workers`` the most of them.

    Raises:
        LoadError: The command cannot be read, or names ``{card}`` and no cards are known.
    """
    chosen = _chosen(cards, workers)
    common = _Common(limit_seconds=limit_seconds, environ=environ, secrets=tuple(secrets))
    if command:
        return _by_users(command, chosen, common), ""
    burner = which("gpu_burn") or which("gpu-burn")
    if burner:
        return _by_gpu_burn(Path(burner).resolve(), chosen, common), ""
    return _by_torch(chosen, common, has_module, devices)


def torch_device(
    *,
    has_module: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None,
    devices: Path = Path("/dev"),
) -> str | None:
    """What torch calls the accelerators of this machine, where it can reach them: ``cuda``; None otherwise."""
    for kind, found in _found(devices):
        adapter = ADAPTERS[kind]
        if found and has_module("torch") and (adapter is None or has_module(adapter)):
            return kind
    return None


@dataclass(frozen=True, kw_only=True)
class _Common:
    limit_seconds: float
    environ: Mapping[str, str]
    secrets: tuple[SecretStr, ...]

    def work(
        self,
        tool: str,
        command: tuple[str, ...],
        *,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        notes: tuple[str, ...] = (),
    ) -> Work:
        return Work(
            kind="accelerator",
            tool=tool,
            command=command,
            environ=dict(self.environ if environ is None else environ),
            folder=folder,
            limit_seconds=self.limit_seconds,
            notes=notes,
            secrets=self.secrets,
        )


def _chosen(cards: Sequence[int] | None, workers: int | None) -> tuple[int, ...] | None:
    if cards is not None:
        return tuple(cards)[:workers]
    return tuple(range(workers)) if workers is not None else None


def _by_users(command: str, cards: tuple[int, ...] | None, common: _Common) -> tuple[Work, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise LoadError(
            say("the accelerator command cannot be read: {error}", error=error),
            likely=say("a quotation mark is missing"),
            remedy=command,
        ) from error
    if not words:
        raise LoadError(say("the accelerator command is empty"), remedy=say("name a program, or leave the setting out"))
    words = [word.replace("{seconds}", str(math.ceil(common.limit_seconds))) for word in words]
    name = Path(words[0]).name
    if not any("{card}" in word for word in words):
        return (common.work(f"user command {name}", tuple(words)),)
    if not cards:
        raise LoadError(
            say("the accelerator command has {{card}} in it, and no cards are known: {command}", command=command),
            remedy=say("set gpu_indices or gpu_workers in config.toml"),
        )
    return tuple(
        common.work(f"user command {name} of card {card}", tuple(word.replace("{card}", str(card)) for word in words))
        for card in cards
    )


def _by_gpu_burn(burner: Path, cards: tuple[int, ...] | None, common: _Common) -> tuple[Work, ...]:
    seconds = str(math.ceil(common.limit_seconds) + 1)
    # It looks for its kernel in the working folder.
    has_kernel = (burner.parent / _KERNEL).is_file()
    settings: Any = {
        "folder": burner.parent if has_kernel else None,
        "notes": ()
        if has_kernel
        else (say("there is no {kernel} beside {burner}: it may not find it", kernel=_KERNEL, burner=burner),),
    }
    if cards is None:
        return (common.work("gpu_burn", (str(burner), seconds), **settings),)
    return tuple(
        common.work(f"gpu_burn of card {card}", (str(burner), "-i", str(card), seconds), **settings) for card in cards
    )


def _by_torch(
    cards: tuple[int, ...] | None, common: _Common, has_module: Callable[[str], bool], devices: Path
) -> tuple[tuple[Work, ...], str]:
    found = [(kind, nodes) for kind, nodes in _found(devices) if nodes]
    if not found:
        return (), say("no accelerator is found (nothing like {devices}/nvidia0, davinci0 or kfd)", devices=devices)
    kind = torch_device(has_module=has_module, devices=devices)
    if kind is None:
        first_kind, nodes = found[0]
        adapter = ADAPTERS[first_kind]
        missing = "torch" if not has_module("torch") else str(adapter)
        return (), (
            say(
                "there is an accelerator ({devices}/{nodes}) and nothing to load it with: neither "
                "gpu_burn nor {missing} is installed, and the bench names no command",
                devices=devices,
                nodes=nodes[0],
                missing=missing,
            )
        )
    arguments = ["--device", kind, "--limit", f"{common.limit_seconds + 1:g}"]
    if cards is not None:
        arguments += ["--cards", ",".join(map(str, cards))]
    command = own_program("pytest_thermal.load.torch_burner", *arguments)
    return (common.work(f"torch {kind}", command, environ=own_environ(common.environ)),), ""


def _found(devices: Path) -> Iterator[tuple[str, list[str]]]:
    for kind, patterns in _NODES.items():
        yield kind, sorted(path.name for pattern in patterns for path in devices.glob(pattern))
