"""Asking a tool: which of its ways works here, once; then the same way again, for every reading."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from pytest_thermal.model import Missing
from pytest_thermal.sensors.tools.answer import Answer, Problem, Row
from pytest_thermal.sensors.tools.command import Caller, Ran
from pytest_thermal.sensors.tools.devices import folded, one_number_each, telling
from pytest_thermal.sensors.tools.figures import figure
from pytest_thermal.sensors.tools.loop import Loop, LoopBrokenError
from pytest_thermal.sensors.tools.places import stands_in
from pytest_thermal.sensors.tools.printed import printed
from pytest_thermal.sensors.tools.tool import Field, Query, Tool

_MOST_ADAPTIONS = 25
"""An old driver may not know this many fields, each found out by a call of its own."""
_MOST_FIRST_ANSWERS = 4
"""Of which two have to tell of the same devices: one alone may be damaged, and its damage would stay for the run."""
_LOOPS_FROM_READING = 2
"""A list of sensors reads once, and needs no process that goes on."""
_MOST_LOOPS = 3
"""Broken ones in a row: after that each reading is a call of its own."""
_GOOD_LOOP = 10
"""Answers of one that was worth its start."""
_LEAST_SECONDS = 0.1
"""Left for the last calls of a round whose time is up."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to ask, and whose fields the answer has."""

    tool: Tool
    query: Query


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a round of calls gave."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...] = ()
    """Why rows are lacking, where the tool or its end says so."""
    hung: bool = False
    cut: bool = False
    """Whether some of the answer is not whole."""


class Asker:
    """One tool's ways, one of which works."""

    def __init__(
        self, command: Caller, ways: Sequence[Way], *, only: frozenset[str], deadline_seconds: float | None
    ) -> None:
        self._command = command
        self._ways = tuple(ways)
        self._only = only
        self._deadline_seconds = deadline_seconds
        self._arguments: tuple[str, ...] = ()
        self._roster: tuple[Row, ...] = ()
        self._useful: tuple[Query, ...] = ()
        self._loop: Loop | None = None
        self._loop_rows = 0
        self._loop_answers = 0
        self._broken_loops = 0
        self._readings = 0
        self._numbers: frozenset[str] | None = None
        self._register: dict[str, Row] = {}
        self._register_helps = True
        self.way: Way | None = None
        self.lost: dict[str, Problem] = {}
        """By identity: devices that the tool cannot be asked about, and that hide the others."""

    def start(self) -> Asked:
        """Find the first way that gives rows; without one, the most telling of their problems."""
        outputs: dict[tuple[str, ...], tuple[Ran, Answer]] = {}
        told: list[Asked] = []
        for way in self._ways:
            self._arguments = way.query.arguments
            asked = self._first(way, outputs)
            if asked.rows:
                self.way = way
                return asked
            told.append(asked)
            if asked.hung:
                break
        with_words = [one for one in told if any(why.missing is not Missing.NOT_UNDERSTOOD for why in one.problems)]
        return (with_words or told or [Asked(rows=())])[0]

    def again(self, known: Sequence[Sequence[str]]) -> Asked:
        """Ask the way that works. ``known`` has the identities of each device, the best first."""
        if self.way is None:
            return Asked(rows=())
        seconds = self._deadline_seconds or self.way.tool.deadline_seconds
        if self.way.tool.roster:
            return self._round(self.way, seconds)
        looped = self._from_loop(self.way)
        if looped is not None:
            return looped
        ran, answer = self._call(self.way, self._arguments, seconds)
        ran, answer = self._adapted(self.way, ran, answer, known, seconds)
        self._readings += 1
        if self._loop is None and ran.status == 0 and not _cut(ran, answer) and not answer.problem:
            self._begin_loop(self.way, len(answer.rows))
        return self._asked(self.way, ran, answer)

    def limits(self) -> list[Row]:
        """What is asked only once."""
        rows: list[Row] = []
        for query in self.way.tool.at_start if self.way else ():
            way = replace(self.way, query=query) if self.way else None
            if way is not None:
                rows += self._call(way, query.arguments, way.tool.start_seconds)[1].rows
        return telling(self._named(self.way, rows) if self.way else rows)

    # ------------------------------------------------------------------------------------------------------

    def _begin_loop(self, way: Way, rows: int) -> None:
        """After a call that went well: have the same printed again and again."""
        if way.query.loop and rows and self._readings >= _LOOPS_FROM_READING and self._broken_loops < _MOST_LOOPS:
            self._loop = self._command.follow([*self._arguments, *way.query.loop])
            self._loop_rows, self._loop_answers = rows, 0

    def _from_loop(self, way: Way) -> Asked | None:
        """What the tool printed by itself since the last reading; None where it has to be called."""
        if self._loop is None:
            return None
        ran, answer = Ran(out=printed(b""), err=printed(b"")), Answer()
        with contextlib.suppress(LoopBrokenError):
            block = self._loop.newest(self._loop_rows)
            if block is None:
                return None
            ran = Ran(out=printed(block), err=printed(b""), status=0)
            answer = self._understood(way, self._arguments, ran)
        if answer.rows and not answer.problem and len({row.key for row in answer.rows}) == self._loop_rows:
            self._loop_answers += 1
            if self._loop_answers >= _GOOD_LOOP:
                self._broken_loops = 0
            return self._asked(way, ran, answer)
        # A call of its own tells what is wrong, and with which device.
        self._command.end_loop()
        self._loop = None
        self._broken_loops += 1
        return None

    def _first(self, way: Way, outputs: dict[tuple[str, ...], tuple[Ran, Answer]]) -> Asked:
        seconds = self._deadline_seconds or way.tool.start_seconds
        if way.tool.roster:
            asked = Asked(rows=())
            for query in way.tool.roster:
                ran, answer = self._call(replace(way, query=query), query.arguments, seconds)
                self._roster = answer.rows
                if answer.rows:
                    return self._round(way, seconds)
                asked = self._asked(way, ran, answer)
            return asked
        begun = time.monotonic()
        # Several layouts may be what one command prints: it is run once.
        if self._arguments in outputs:
            ran = outputs[self._arguments][0]
            answer = self._understood(way, self._arguments, ran)
        else:
            ran, answer = outputs[self._arguments] = self._call(way, self._arguments, seconds)
        known = [(identity,) for identity in way.tool.census()] if way.tool.census else []
        ran, answer = self._adapted(way, ran, answer, known, seconds)
        return self._confirmed(way, self._asked(way, ran, answer), begun=begun, seconds=seconds)

    def _confirmed(self, way: Way, first: Asked, *, begun: float, seconds: float) -> Asked:
        """An answer that another agrees with: which devices there are, and what each offers.

        A whole answer is preferred to one that is not. Where no two agree in what is offered, such as by a sensor that
        comes and goes, two have to agree in the devices; else there is none. All of it takes at most ``seconds`` since
        it was ``begun``: of a tool too slow to be asked again, one whole answer has to do.
        """
        if not first.rows:
            return first
        took = time.monotonic() - begun
        until = begun + seconds
        answers = [first]
        while len(answers) < _MOST_FIRST_ANSWERS and time.monotonic() + took < until:
            ran, answer = self._call(way, self._arguments, max(_LEAST_SECONDS, until - time.monotonic()))
            newest = self._asked(way, ran, answer)
            alike = any(_shape(one, way.tool) == _shape(newest, way.tool) for one in answers)
            answers.append(newest)
            if newest.hung or (alike and newest.rows and not newest.cut):
                break
        for least, agree in ((2, _shape), (2, _devices), (1, _devices)):
            # One alone counts only where no other was to be had.
            told = [one for one in reversed(answers) if one.rows and (least > 1 or not (one.cut or len(answers) > 2))]
            shapes = [agree(one, way.tool) for one in told]
            sure = [one for one, shape in zip(told, shapes, strict=True) if shapes.count(shape) >= least]
            if sure:
                return min(sure, key=lambda one: one.cut)
        said = f"its answers do not agree in what devices there are: {', then '.join(map(_named, answers[:2]))}"
        if len(answers) == 1:
            said = f"its answer is not whole, and it is too slow to be asked again: {first.problems[0].said}"
        return Asked(rows=(), problems=(Problem(missing=Missing.NOT_UNDERSTOOD, said=said),))

    def _round(self, way: Way, seconds: float) -> Asked:
        """One call for each device of the roster, whose time together is ``seconds``."""
        until = time.monotonic() + seconds
        names = {name for field in way.tool.fields for name in field.names}
        queries = self._useful or way.tool.queries
        rows: list[Row] = []
        problems: list[Problem] = []
        useful: list[Query] = []
        calls = [(one, *call) for one in queries for call in one.calls(self._roster).items()]
        for query, arguments, key in calls:
            left = max(_LEAST_SECONDS, until - time.monotonic())
            ran, answer = self._call(replace(way, query=query), arguments, left)
            if ran.hung:
                problems = [answer.problem] if answer.problem else []
                return replace(self._asked(way, None, Answer(rows=tuple(rows))), problems=tuple(problems), hung=True)
            if answer.problem:
                about = key if "{chip}" in query.arguments else key.partition("/")[0]
                problems.append(replace(answer.problem, identity=f"{way.tool.device} {about}"))
            # Asked about one card by its number, an answer about another is none.
            mine = [row for row in answer.rows if row.key.partition("/")[0] == key.partition("/")[0]]
            rows += [replace(row, identities=(f"{way.tool.device} {row.key}",)) for row in mine]
            useful += [query] if any(names & set(row.cells) for row in mine) else []
        # What no device answers is not asked again.
        self._useful = self._useful or tuple(query for query in queries if query in useful)
        return replace(self._asked(way, None, Answer(rows=tuple(rows))), problems=tuple(problems))

    def _call(self, way: Way, arguments: Sequence[str], seconds: float) -> tuple[Ran, Answer]:
        ran = self._command.run(arguments, seconds=seconds)
        return ran, self._understood(way, arguments, ran)

    def _understood(self, way: Way, arguments: Sequence[str], ran: Ran) -> Answer:
        if ran.hung or ran.not_found:
            missing = Missing.TIMEOUT if ran.hung else Missing.ABSENT
            return Answer(problem=Problem(missing=missing, said=ran.problem))
        answer = way.query.layout(ran.out, arguments) or Answer()
        problem = answer.problem or way.tool.problem(ran.out) or way.tool.problem(ran.err)
        if problem is None and ran.problem:
            problem = Problem(missing=Missing.UNREADABLE, said=ran.problem)
        if problem is None and answer.refused:
            problem = Problem(missing=Missing.NOT_UNDERSTOOD, said=f"printed {answer.refused[0][:160]!r}")
        if problem is None and answer.rows and ran.out.torn and not answer.ended:
            said = f"the output ends in the middle of a line: {ran.out.torn[-80:]!r}"
            problem = Problem(missing=Missing.NOT_UNDERSTOOD, said=said)
        if problem is None and not answer.rows:
            status = f", exit status {ran.status}" if ran.status else ""
            seen = ran.out.head or ran.err.head
            said = f"printed {seen!r}{status}" if seen else f"printed nothing{status}"
            problem = Problem(missing=Missing.NOT_UNDERSTOOD, said=said)
        return replace(answer, problem=problem)

    def _adapted(
        self, way: Way, ran: Ran, answer: Answer, known: Sequence[Sequence[str]], seconds: float
    ) -> tuple[Ran, Answer]:
        """The answer to other arguments, where the tool refused these for what can be left out of them."""
        for _ in range(_MOST_ADAPTIONS):
            if answer.rows or ran.hung or way.query.adapt is None:
                break
            if answer.problem and answer.problem.identity:
                self.lost.setdefault(answer.problem.identity, answer.problem)
            working = [names[0] for names in known if names and not set(names) & set(self.lost)]
            said = ran.out if ran.out.head else ran.err
            arguments = way.query.adapt(self._arguments, said, working)
            if arguments is None or tuple(arguments) == self._arguments:
                break
            self._arguments = tuple(arguments)
            ran, answer = self._call(way, self._arguments, seconds)
        return ran, answer

    def _named(self, way: Way, rows: Sequence[Row]) -> list[Row]:
        """Rows that show numbers only, with what the register says which devices these are; and those it says broke.

        It is asked again when other numbers are shown than before: a card that went may have moved the others up. One
        that did not help at the start never does, since the devices are known by their numbers then.
        """
        numbers = frozenset(row.key for row in rows if not row.identities)
        if not (way.tool.register and numbers and self._register_helps):
            return list(rows)
        if numbers != self._numbers:
            self._register = self._registered(way, numbers)
            self._register_helps = bool(self._register) or self._numbers is not None
            self._numbers = numbers
        named = [
            row if row.identities or row.key not in self._register
            else replace(row, identities=self._register[row.key].identities)
            for row in rows
        ]  # fmt: skip
        shown = {row.key for row in rows}
        return [*named, *(row for key, row in self._register.items() if row.fault and key not in shown)]

    def _registered(self, way: Way, numbers: frozenset[str]) -> dict[str, Row]:
        """By number: the register's row; nothing where it does not know all of these numbers."""
        for query in way.tool.register:
            _, answer = self._call(replace(way, query=query), query.arguments, way.tool.deadline_seconds)
            found = {row.key: row for row in telling(answer.rows) if row.identities}
            if numbers <= set(found):
                return found
        return {}

    def _asked(self, way: Way, ran: Ran | None, answer: Answer) -> Asked:
        rows = self._named(way, answer.rows)
        rows = [way.tool.amend(row) if way.tool.amend else row for row in rows]
        rows, twice = one_number_each(telling(folded(rows, last=answer.stream)))
        wanted = tuple(row for row in rows if not self._only or row.key.partition("/")[0] in self._only)
        problem = answer.problem
        if problem is None and twice:
            problem = Problem(missing=Missing.NOT_UNDERSTOOD, said=twice)
        if rows and not wanted:
            problem = Problem(missing=Missing.ABSENT, said=f"shows none of the cards asked for: {sorted(self._only)}")
        return Asked(
            rows=wanted,
            problems=(problem,) if problem else (),
            hung=bool(ran and ran.hung),
            cut=bool(twice or (ran and _cut(ran, answer))),
        )


def _devices(asked: Asked, _tool: Tool) -> Hashable:
    """Which devices an answer tells of."""
    return frozenset((row.key, row.identities) for row in asked.rows)


def _shape(asked: Asked, tool: Tool) -> Hashable:
    """Which devices an answer tells of, and in which cells each has a figure or says that it has none."""
    return frozenset(
        (row.key, row.identities, bool(row.fault), tuple(_offer(field, row) for field in tool.fields))
        for row in asked.rows
    )


def _offer(field: Field, row: Row) -> tuple[str, Missing | None] | None:
    (name, *_) = stands_in(field, row)
    raw = row.cells.get(name)
    return (name, figure(raw, field.unit, assumed=field.scale).missing) if raw else None


def _named(asked: Asked) -> str:
    return ", ".join(row.key for row in asked.rows) or (asked.problems[0].said if asked.problems else "none")


def _cut(ran: Ran, answer: Answer) -> bool:
    return bool(answer.refused or ran.problem or (ran.out.torn and not answer.ended))
