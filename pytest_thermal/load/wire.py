"""What a process that sends a share of the requests tells the one that counts and writes them, in lines of JSON."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import to_json

from pytest_thermal.load.answers import Answer
from pytest_thermal.load.ledger import Issued
from pytest_thermal.load.spread import STEPS, Counted

Count = Annotated[int, Field(ge=0)]
Step = Annotated[int, Field(ge=0, lt=STEPS)]
Seconds = Annotated[float, Field(ge=0)]


class Finished(NamedTuple):
    """One request that has its answer: what of an `Answer` is counted and written."""

    started_seconds: float
    ttft_seconds: float | None
    latency_seconds: Seconds
    status: int | None
    trouble: str
    detail: str
    prompt_tokens: int | None
    completion_tokens: int | None
    phase: str
    due_seconds: float | None
    domain: str = ""
    limit: str = ""

    @classmethod
    def of(cls, answer: Answer, *, phase: str, due_seconds: float | None) -> Finished:
        """Of an answer, whose gaps are told together with others'."""
        return cls(
            answer.started_seconds,
            answer.ttft_seconds,
            answer.latency_seconds,
            answer.status,
            _writable(answer.trouble),
            _writable(answer.detail),
            answer.prompt_tokens,
            answer.completion_tokens,
            phase,
            due_seconds,
            answer.domain,
            answer.limit,
        )

    @property
    def answer(self) -> Answer:
        """The answer, without its text and its gaps."""
        return Answer(
            started_seconds=self.started_seconds,
            ttft_seconds=self.ttft_seconds,
            latency_seconds=self.latency_seconds,
            status=self.status,
            trouble=self.trouble,
            detail=self.detail,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            domain=self.domain,
            limit=self.limit,
        )


class Beat(NamedTuple):
    """The figures of a `Pulse`."""

    observed_seconds: Seconds
    lag_p99_seconds: float | None
    cpu_share: float | None


class Burst(NamedTuple):
    """A compute burst that is asked for; the answer to it bears its number."""

    number: int
    seconds: Seconds


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))
class News:
    """What there is to tell."""

    issued: tuple[Count, Count, Count, Count]
    """`Issued` as it is now."""
    finished: list[Finished] = Field(default_factory=list)
    """Each request once."""
    gap_steps: list[tuple[Step, Count]] = Field(default_factory=list)
    """`Counted`, of the good ones among these."""
    gap_most_seconds: Seconds = 0.0
    troubles: list[str] = Field(default_factory=list)
    beat: Beat | None = None
    burst: Burst | None = None
    ready: bool = False
    """It can begin."""
    all_told: int | None = None
    """Its last words: how many requests it has told of in all."""

    @property
    def gaps(self) -> Counted:
        """Between tokens."""
        return Counted(self.gap_steps, most_seconds=self.gap_most_seconds)

    @property
    def sent(self) -> Issued:
        """What it sent up to now."""
        return Issued(*self.issued)


_NEWS = TypeAdapter(News)


def to_line(news: News) -> bytes:
    """For the pipe."""
    return to_json(news) + b"\n"


def from_line(line: bytes) -> News:
    """Read `to_line`. Raises ValueError for anything else, in words that quote nothing of it."""
    try:
        return _NEWS.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "line"
        raise ValueError(f"{where}: {first['msg']}") from None


def _writable(text: str) -> str:
    """Without halves of characters, which a gateway can put into JSON and which no UTF-8 holds."""
    return text.encode("utf-8", "replace").decode() if text else text
