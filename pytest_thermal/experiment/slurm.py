"""What Slurm tells a task of the nodes that it runs on beside others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_PART = re.compile(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*")
_RANGES = re.compile(r"\[([^\]]*)\]")
_MOST_NODES = 100_000


@dataclass(frozen=True, kw_only=True)
class SlurmStep:
    """The job step of this task."""

    name: str
    """Of the step, and of nothing else ever run on this cluster."""
    nodes: tuple[str, ...]


def slurm_step(environ: Mapping[str, str]) -> SlurmStep | None:
    """The step of several nodes that this process is a task of; None outside of one.

    A batch script is none: it runs on the first node alone, whatever its job has allocated.
    """
    count, job, step = (environ.get(f"SLURM_{name}", "") for name in ("STEP_NUM_NODES", "JOB_ID", "STEP_ID"))
    if not (count.isdigit() and int(count) > 1 and job and step):
        return None
    nodes = expand_nodes(environ.get("SLURM_STEP_NODELIST", ""))
    restart = environ.get("SLURM_RESTART_COUNT", "0")
    cluster = environ.get("SLURM_CLUSTER_NAME", "slurm")
    return SlurmStep(name=f"{cluster}-{job}.{step}" + (f"-{restart}" if restart != "0" else ""), nodes=nodes)


def expand_nodes(text: str) -> tuple[str, ...]:
    """``n[1-3,08],m1`` as names: Slurm's hostlist expression, or plain names with commas between them.

    Raises:
        ValueError: A range in it is none.
    """
    found: dict[str, None] = {}
    for part in _PART.findall(text.replace(" ", "")):
        for name in _expanded(part):
            found[name] = None
            if len(found) > _MOST_NODES:
                raise ValueError(f"{text[:60]}: more than {_MOST_NODES} nodes")
    return tuple(found)


def _expanded(text: str) -> Iterator[str]:
    match = _RANGES.search(text)
    if match is None:
        yield text
        return
    head, tail = text[: match.start()], text[match.end() :]
    for piece in match[1].split(","):
        first, dash, last = piece.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last)):
            raise ValueError(f"{text}: {piece!r} is no range of numbers")
        for number in range(int(first), int(last) + 1):
            yield from (f"{head}{number:0{len(first)}d}{rest}" for rest in _expanded(tail))
