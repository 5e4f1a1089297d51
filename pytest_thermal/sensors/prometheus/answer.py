"""What a Prometheus server answered: samples, or why there are none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_thermal.model import Missing
from pytest_thermal.model.said import say
from pytest_thermal.sensors.tools.answer import Problem
from pytest_thermal.transport import Exchange, Fault

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_NONE = {"nan": math.nan, "+inf": math.inf, "inf": math.inf, "-inf": -math.inf}
_TIMES = frozenset({Fault.SILENCE, Fault.SLOW, Fault.CONNECT_TIMEOUT})
_LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One series' value."""

    labels: Mapping[str, str] = field(hash=False)
    value: float
    """May be NaN or infinite."""
    text: str
    """As the server wrote it."""

    @property
    def name(self) -> str:
        """The metric's name; empty for what was computed."""
        return self.labels.get("__name__", "")

    @property
    def series(self) -> frozenset[tuple[str, str]]:
        """Its labels without the name: what PromQL tells series apart by."""
        return frozenset(pair for pair in self.labels.items() if pair[0] != "__name__")


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer: samples of ``kind`` (``vector``, ``scalar``), or a problem."""

    kind: str = ""
    at_seconds: float = 0.0
    """The moment that it is about, by the server's clock; 0 where there is no sample."""
    samples: tuple[Sample, ...] = ()
    moments: tuple[tuple[Mapping[str, str], tuple[float, ...]], ...] = ()
    """Of a ``matrix``: each series' labels, and when it was sampled."""
    problem: Problem | None = None
    refused: bool = False
    """Whether it was the query that the server did not take."""


def read_answer(exchange: Exchange) -> Answered:
    """What the server answered to a query."""
    if exchange.fault is not None:
        missing = Missing.TIMEOUT if exchange.fault in _TIMES else Missing.UNREADABLE
        return _none(missing, say("Prometheus does not answer: {status_line}", status_line=exchange.status_line))
    answer = exchange.json
    if isinstance(answer, dict) and answer.get("status") == "error":
        said = " ".join(f"{answer.get('errorType', 'error')}: {answer.get('error', '')}".split())[:_LONGEST]
        refused = answer.get("errorType") in ("bad_data", "execution") or exchange.status in (400, 422)
        missing = Missing.NOT_UNDERSTOOD if refused else Missing.UNREADABLE
        return _none(missing, say("Prometheus says {error}", error=said), refused=refused)
    if not exchange.ok:
        return _none(Missing.UNREADABLE, _http_problem(exchange))
    if not isinstance(answer, dict) or answer.get("status") != "success":
        seen = say("a page for people") if exchange.is_html else repr(exchange.text[:80])
        said = say("{request} answered {seen}, which is not Prometheus", request=exchange.line, seen=seen)
        return _none(Missing.NOT_UNDERSTOOD, said)
    try:
        return _read(answer["data"])
    except (KeyError, TypeError, ValueError, OverflowError):
        said = say(
            "{request} answered something that is like Prometheus, and is not whole: {text!r}",
            request=exchange.line,
            text=exchange.text[:120],
        )
        return _none(Missing.NOT_UNDERSTOOD, said)


def _http_problem(exchange: Exchange) -> str:
    hints = {
        401: say("; set $PROMETHEUS_TOKEN, or prometheus_user and $PROMETHEUS_PASSWORD"),
        403: say("; this user may not query"),
        404: say("; prometheus_url is to end where /api/v1/query begins"),
        503: say("; it is starting, or what stands before it has no server"),
    }
    status = exchange.status or 0
    target = exchange.headers.get("location", "")[:80]
    where = say(" to {target!r}: a login?", target=target) if 300 <= status < 400 else ""
    return say(
        "{request} answered {status_line}{where}{hint}",
        request=exchange.line,
        status_line=exchange.status_line,
        where=where,
        hint=hints.get(status, ""),
    )


def _none(missing: Missing, said: str, *, refused: bool = False) -> Answered:
    return Answered(problem=Problem(missing=missing, said=said), refused=refused)


def _read(data: Mapping[str, object]) -> Answered:
    kind, result = data["resultType"], data["result"]
    if not isinstance(kind, str) or not isinstance(result, list):
        raise TypeError
    if kind in ("scalar", "string"):
        at_seconds, sample = _pair(result, {}) if kind == "scalar" else (0.0, None)
        return Answered(kind=kind, at_seconds=at_seconds, samples=(sample,) if sample else ())
    if kind == "matrix":
        return Answered(kind=kind, moments=tuple((_labels(one), _moments(one)) for one in result))
    if kind != "vector":
        raise ValueError
    pairs = [_pair(one["value"], _labels(one)) for one in result]
    samples = tuple(sample for _, sample in pairs)
    if len({(sample.name, sample.series) for sample in samples}) != len(samples) or len({at for at, _ in pairs}) > 1:
        raise ValueError
    return Answered(kind=kind, at_seconds=pairs[0][0] if pairs else 0.0, samples=samples)


def _labels(one: Mapping[str, object]) -> dict[str, str]:
    labels = one["metric"]
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise TypeError
    return dict(labels)


def _pair(pair: object, labels: Mapping[str, str]) -> tuple[float, Sample]:
    if not isinstance(pair, list):
        raise TypeError
    at, text = pair
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not isinstance(text, str):
        raise TypeError
    value = float(text) if _NUMBER.fullmatch(text) else _NONE[text.casefold()]
    return float(at), Sample(labels=labels, value=value, text=text)


def _moments(one: Mapping[str, object]) -> tuple[float, ...]:
    values = one["values"]
    if not isinstance(values, list):
        raise TypeError
    return tuple(_pair(pair, {})[0] for pair in values)
