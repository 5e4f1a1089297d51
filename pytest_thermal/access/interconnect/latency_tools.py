"""What latency tests print, read by the names in their headers: perftest, nccl-tests, hccl_test, OSU, or one figure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath

from pytest_thermal.model.said import joined, say


class Kind(str, Enum):
    """What a test's time is the time of. A collective's holds many messages and a kernel's launch: it is no link's."""

    LINK = "one message over a link"
    MESSAGE = "one message between two processes"
    COLLECTIVE = "a whole collective operation"
    FIGURE = "what the command measures"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The figure to judge: ``statistic`` of the smallest message, the worst where it was printed more than once."""

    tool: str
    statistic: str
    microseconds: float
    size_bytes: int | None = None
    kind: Kind = Kind.FIGURE
    others_us: Mapping[str, float] = field(default_factory=dict)
    """The further times of the same row, by the test's own names."""
    rows: int = 1
    """How many rows there were for this size."""
    wrong: str = ""
    """What the test says of data that arrived wrong."""

    @property
    def plausible(self) -> bool:
        """Whether it can be a latency at all."""
        return plausible(self.microseconds)

    @property
    def words(self) -> str:
        """``3.9 µs measured by ib_write_lat (t_typical, 2 bytes)``."""
        details = [self.statistic] if self.statistic else []
        if self.size_bytes is not None:
            details.append(say("1 byte") if self.size_bytes == 1 else say("{size} bytes", size=self.size_bytes))
        if self.rows > 1:
            details.append(say("the worst of {rows}", rows=self.rows))
        return say("{us_text} measured by {tool}", us_text=us_text(self.microseconds), tool=self.tool) + (
            say(" ({names})", names=joined(", ", details)) if details else ""
        )


class NotUnderstood(ValueError):  # noqa: N818 - what happened, as in the messages
    """The output holds no latency, or more than one to choose from; the text says why."""


def plausible(microseconds: float) -> bool:
    """Whether it can be a latency: no test measures nothing, less, or no number."""
    return math.isfinite(microseconds) and microseconds > 0


def us_text(microseconds: float) -> str:
    """``3.9 µs``: two decimals, or three digits below one."""
    if not math.isfinite(microseconds):
        return f"{microseconds} µs"
    if 0 < abs(microseconds) < 1:
        return f"{microseconds:.3g} µs"
    return f"{microseconds:.2f}".rstrip("0").rstrip(".") + " µs"


def read_latency(text: str, *, argv: Sequence[str] = ()) -> Figure:
    """The latency that a test printed. ``argv``, its command, helps to name a test that does not name itself.

    Raises:
        NotUnderstood: no latency in it, a table without a whole row, or several tests.
    """
    lines = _plain_lines(text)
    tables = [table for dialect in _DIALECTS if (table := _read_table(lines, dialect)) is not None]
    if len(tables) > 1:
        raise NotUnderstood(
            say("it holds several tests: {names}", names=joined(", ", (table.dialect.name for table in tables)))
        )
    if tables:
        return tables[0].dialect.figure(tables[0], lines, argv)
    if any(re.search(r"#bytes\s+#iterations\s+BW", line) or "Bandwidth (MB/s)" in line for line in lines):
        raise NotUnderstood(say("it is a bandwidth test, not a latency test"))
    return _bare_figure(lines, argv)


# --- text ----------------------------------------------------------------------------------------------------

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]")
_RANK_LABEL = re.compile(r"^\s*(?:\[\d+,\d+\]<std(?:out|err)>:|\d+:(?=\s))\s?")
"""What ``mpirun --tag-output`` and ``srun --label`` put before each line."""


def _plain_lines(text: str) -> list[str]:
    lines = [_RANK_LABEL.sub("", _ESCAPES.sub("", line)) for line in text.splitlines(keepends=True)]
    return [line.rstrip() if line.endswith(("\n", "\r")) else f"{line.rstrip()}{_UNFINISHED}" for line in lines]


_UNFINISHED = "\x00"
"""Ends a line that no line end ends: its last cell may be cut."""


# --- tables --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Dialect:
    name: str
    columns: Callable[[str], list[str] | None]
    """The names of the columns, where the line is this test's header."""
    cells: Callable[[str], list[str]]
    figure: Callable[[_Table, Sequence[str], Sequence[str]], Figure]


@dataclass(frozen=True, kw_only=True)
class _Table:
    dialect: _Dialect
    columns: list[str]
    rows: list[list[str]]

    def column(self, *patterns: str, nth: int = 0) -> int | None:
        """Index of the ``nth`` column whose name matches the first pattern that matches any."""
        for pattern in patterns:
            found = [index for index, name in enumerate(self.columns) if re.fullmatch(pattern, name)]
            if len(found) > nth:
                return found[nth]
        return None


def _read_table(lines: Sequence[str], dialect: _Dialect) -> _Table | None:
    """All rows below headers of this dialect; None where there is no such header."""
    columns: list[str] | None = None
    rows: list[list[str]] = []
    for line in lines:
        header = dialect.columns(line.removesuffix(_UNFINISHED))
        if header is not None:
            if columns is not None and header != columns:
                raise NotUnderstood(
                    say("it holds several tables of {dialect_name}, with different columns", dialect_name=dialect.name)
                )
            columns = header
        elif columns is not None and not line.endswith(_UNFINISHED):
            cells = dialect.cells(line)
            if len(cells) == len(columns) and cells[0].isdigit():
                rows.append(cells)
    return None if columns is None else _Table(dialect=dialect, columns=columns, rows=rows)


def _choose(table: _Table, value: int | None, *, statistic: str = "", tool: str, kind: Kind, wrong: str = "") -> Figure:
    """The figure to judge: the worst of the smallest size, and before it any that can be no latency."""
    if value is None:
        raise NotUnderstood(say("its table has no time in it (columns: {names})", names=joined(", ", table.columns)))
    rows = [(row, number) for row in table.rows if (number := _number(row[value])) is not None]
    if not rows:
        raise NotUnderstood(say("its table has a header and no whole row: the test broke off"))
    smallest = min(int(row[0]) for row, _ in rows)
    same = [(row, number) for row, number in rows if int(row[0]) == smallest]
    row, worst = next((pair for pair in same if not plausible(pair[1])), max(same, key=lambda pair: pair[1]))
    return Figure(
        tool=tool,
        kind=kind,
        statistic=statistic or table.columns[value],
        microseconds=worst,
        size_bytes=smallest,
        rows=len(same),
        wrong=wrong,
        others_us=_others(table, row, value),
    )


_TIME_NAME = re.compile(r"t_\w+|[\d.]+%\w*|in-place|.*lat(ency)?", re.IGNORECASE)


def _others(table: _Table, row: Sequence[str], judged: int) -> dict[str, float]:
    found = {}
    for index, name in enumerate(table.columns):
        number = _number(row[index])
        if index != judged and number is not None and _TIME_NAME.fullmatch(name):
            found[name] = number
    return found


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _program(argv: Sequence[str], pattern: str) -> str | None:
    """The word of the command that names the test: it may stand behind an mpirun and its options."""
    names = [PurePath(word).name for word in argv]
    return next((name for name in names if re.fullmatch(pattern, name)), None)


# --- perftest ------------------------------------------------------------------------------------------------

_PERFTEST_TITLES = (
    ("RDMA_Write Latency", "ib_write_lat"),
    ("RDMA_Read Latency", "ib_read_lat"),
    ("Send Latency", "ib_send_lat"),
    ("Atomic", "ib_atomic_lat"),
)


def _perftest_columns(line: str) -> list[str] | None:
    if not re.match(r"\s*#\s?bytes\s+#\s?iterations\s+.*t_", line):
        return None
    # Names of two words, which nothing but spaces parts from the next.
    line = re.sub(r"#\s", "#", line).replace("tps average", "tps_average")
    line = re.sub(r"%\s+percentile", "%", line)
    units = set(re.findall(r"\[(\w+)\]", line))
    if units - {"usec", "%"}:
        raise NotUnderstood(say("its times are in {names}: leave out -C", names=joined(", ", sorted(units))))
    return [re.sub(r"\[\w+\]", "", name) for name in line.split()]


def _perftest(table: _Table, lines: Sequence[str], argv: Sequence[str]) -> Figure:
    headings = [line for line in lines if line.rstrip().endswith("Test")]
    titles = {tool for line in headings for title, tool in _PERFTEST_TITLES if title in line}
    if len(titles) > 1:
        raise NotUnderstood(say("it holds several tests: {names}", names=joined(", ", sorted(titles))))
    named = titles.pop() if titles else _program(argv, r"(ib|raw_ethernet)_\w*lat") or "perftest"
    # With --duration there is no typical time.
    return _choose(table, table.column("t_typical", "t_avg"), tool=named, kind=Kind.LINK)


# --- nccl-tests, rccl-tests and those made like them ---------------------------------------------------------


def _nccl_columns(line: str) -> list[str] | None:
    words = line.lstrip("# \t").split()
    if words[:2] != ["size", "count"] or not {"time", "cputime"} & set(words) or "algbw" not in words:
        return None
    names: list[str] = []
    for word in words:
        # The second of each is in-place; a time stamp is two words in the rows.
        name = "in-place" if word in ("time", "cputime") and word in names else word
        names += ["date", "clock"] if name == "timestamp" else [name]
    return names


def _nccl(table: _Table, lines: Sequence[str], argv: Sequence[str]) -> Figure:
    told = (re.search(r"test starting:\s*(\S+)", line) for line in lines)
    named = next((PurePath(match[1]).name for match in told if match), None)
    wrong = sum(
        int(count)
        for row in table.rows
        for name, cell in zip(table.columns, row, strict=True)
        if name == "#wrong" and math.isfinite(count := _number(cell) or 0.0)
    )
    return _choose(
        table,
        table.column("time", "cputime"),
        statistic="time, out of place",
        tool=named or _program(argv, r"\w+_perf") or "nccl-tests",
        kind=Kind.COLLECTIVE,
        wrong=say("{wrong} wrong values", wrong=wrong) if wrong else "",
    )


# --- hccl_test -----------------------------------------------------------------------------------------------


def _hccl_columns(line: str) -> list[str] | None:
    names = [cell.strip().rstrip(":") for cell in line.split("|")]
    if len(names) == 1 or not names[0].startswith("data_size"):
        return None
    # A time in another unit keeps it in its name, and so is not taken for microseconds.
    return [name.removesuffix("(us)") for name in names]


def _hccl(table: _Table, _lines: Sequence[str], argv: Sequence[str]) -> Figure:
    checked = table.column(r"check_result")
    wrong = sum(1 for row in table.rows if checked is not None and row[checked].lower().startswith("fail"))
    return _choose(
        table,
        table.column(r"(aveg|avg|average)_time"),
        tool=_program(argv, r"\w+_test") or "hccl_test",
        kind=Kind.COLLECTIVE,
        wrong=say("check_result: failed in {wrong} of {count} rows", wrong=wrong, count=len(table.rows))
        if wrong
        else "",
    )


# --- OSU micro-benchmarks ------------------------------------------------------------------------------------


_COLLECTIVE = re.compile(r"all|bcast|broadcast|barrier|gather|scatter|reduce|neighbo|exchange", re.IGNORECASE)


def _osu_columns(line: str) -> list[str] | None:
    names = re.split(r"\s{2,}", line.strip().removeprefix("#").strip())
    if names[0] != "Size" or not any("Lat" in name for name in names[1:]):
        return None
    if not any(re.search(r"Lat\w*\s?\(us\)", name) for name in names):
        raise NotUnderstood(say("its times are not in microseconds: {strip}", strip=line.strip()))
    return ["size", *(re.sub(r"\s?\(us\)", "", name) for name in names[1:])]


def _osu(table: _Table, lines: Sequence[str], argv: Sequence[str]) -> Figure:
    titles = {match[1] for line in lines if (match := re.search(r"OSU (.+? Latency) Test", line))}
    if len(titles) > 1:
        raise NotUnderstood(say("it holds several tests: {names}", names=joined(", ", sorted(titles))))
    title = titles.pop() if titles else ""
    return _choose(
        table,
        table.column("Latency", "Avg Latency"),
        tool=_program(argv, r"osu_\w+") or (f"OSU {title}" if title else say("an OSU benchmark")),
        kind=Kind.COLLECTIVE if not title or _COLLECTIVE.search(title) else Kind.MESSAGE,
    )


def _by_spaces(line: str) -> list[str]:
    return line.split()


def _by_bars(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


_DIALECTS = (
    _Dialect(name="perftest", columns=_perftest_columns, cells=_by_spaces, figure=_perftest),
    _Dialect(name="nccl-tests", columns=_nccl_columns, cells=_by_spaces, figure=_nccl),
    _Dialect(name="hccl_test", columns=_hccl_columns, cells=_by_bars, figure=_hccl),
    _Dialect(name="OSU", columns=_osu_columns, cells=_by_spaces, figure=_osu),
)


# --- one figure ----------------------------------------------------------------------------------------------

_US_PER_UNIT = {
    **dict.fromkeys(("n", "nano"), 0.001),
    **dict.fromkeys(("u", "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}", "micro"), 1.0),
    **dict.fromkeys(("m", "milli"), 1000.0),
}
_BARE = re.compile(
    r"(?:[\w .()/-]*\blatency\b[\w .()/-]*?\s*[:=]?\s*)?"
    r"([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf))\s*"
    rf"({'|'.join(_US_PER_UNIT)})s(?:ec|ecs|econds?)?\.?",
    re.IGNORECASE,
)


def _bare_figure(lines: Sequence[str], argv: Sequence[str]) -> Figure:
    matches = [_BARE.fullmatch(line.removesuffix(_UNFINISHED).strip()) for line in lines]
    found = {float(match[1]) * _US_PER_UNIT[match[2].lower()] for match in matches if match}
    if not found:
        raise NotUnderstood(say("it is no table of a test that is known here, and no line is a latency with its unit"))
    if len(found) > 1:
        raise NotUnderstood(say("it holds {count} latencies, and nothing says which counts", count=len(found)))
    return Figure(tool=PurePath(argv[0]).name if argv else say("the command"), statistic="", microseconds=found.pop())
