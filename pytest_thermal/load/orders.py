"""What the inference load is told on its standard input: one line of JSON, and commands after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from pydantic import SecretStr

from pytest_thermal.load.share import Share
from pytest_thermal.recording import RunClock

Profile = Literal["chat", "long-context", "agent"]
PROFILES: tuple[str, ...] = get_args(Profile)


@dataclass(frozen=True, kw_only=True)
class DomainOrders:
    """One way in."""

    base_url: str
    key: SecretStr | None
    model: str | None
    """None for the first that the gateway lists."""
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class InferenceOrders:
    """Everything that the process needs; `to_line` holds the keys, `repr` does not."""

    domains: tuple[DomainOrders, ...]
    """Slots are dealt out to them in turn."""
    connect_seconds: float
    read_seconds: float
    max_tokens: int
    temperature: float
    stream: bool
    profile: str
    concurrency: int
    interval_seconds: float
    rate_per_second: float | None
    """Of the open loop; None for the closed one."""
    most_in_flight: int
    """In the open loop; what is due beyond that is counted and not issued."""
    inference_ratio: float
    """Share of requests among the work items; the rest are compute bursts."""
    burner: tuple[str, ...]
    """The command of the burner that takes bursts; empty where the ratio is 1."""
    run: Path | None
    clock: RunClock
    limit_seconds: float
    calibration_seconds: float = 0.0
    """How long the engine is measured before its first request; 0 for not at all."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """What the burner needs beside this process's environment."""

    processes: int = 1
    """Among how many it is shared."""
    share: Share = field(default_factory=Share)
    """What of it is this process's own."""

    @property
    def parallel(self) -> int:
        """How many requests are to be expected in flight at once."""
        if self.rate_per_second is None:
            return self.concurrency
        return min(self.most_in_flight, max(1, round(self.rate_per_second)))  # as if each took a second

    def of_process(self, index: int, *, models: Sequence[str]) -> InferenceOrders:
        """For one of those that share it, which sends and writes nothing; ``models`` are the domains', now known."""
        return replace(
            self,
            domains=tuple(replace(domain, model=model) for domain, model in zip(self.domains, models, strict=True)),
            run=None,
            calibration_seconds=0.0,
            share=Share(index=index, of=self.processes),
        )

    def to_line(self) -> str:
        """For standard input, and for nothing else: the keys are in it."""
        return json.dumps(asdict(self), default=_plain)

    @classmethod
    def from_line(cls, line: str) -> InferenceOrders:
        """Read `to_line`."""
        data = json.loads(line)
        domains = tuple(
            DomainOrders(**{**domain, "key": SecretStr(domain["key"]) if domain["key"] is not None else None})
            for domain in data["domains"]
        )
        told = {
            **data,
            "domains": domains,
            "run": Path(data["run"]) if data["run"] is not None else None,
            "clock": RunClock(**data["clock"]),
            "burner": tuple(data["burner"]),
            "share": Share(**data["share"]),
        }
        return cls(**told)


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
