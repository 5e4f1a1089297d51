"""The pre-production gate: tests and findings in, decision out. Pure.

One rule: *go* is said only where every critical check was measured on the machine itself and passed. What was measured
and found bad is *no-go*; whatever else is missing (skipped, blocked, inconclusive, not run, simulated) leaves it *not
decided*. A person may accept that a check is skipped, by name and with a reason; nothing else can be accepted.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.said import joined, say
from pytest_thermal.reporting.observed import How, Observed

CLOCKS_APART_SECONDS = 3600.0
"""How far in the future a run may end by another machine's clock."""


class Decision(str, Enum):
    """What the gate says."""

    GO = "go"
    NO_GO = "no-go"
    NOT_DECIDED = "not decided"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why a run as a whole can prove nothing, or not all: interrupted, a worker lost, nothing collected."""

    seen: str
    likely: str = ""
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Need:
    """A check that must have been asked for the gate to be decided."""

    check: str
    subject: str = ""
    """Empty: whatever it is about."""

    @property
    def name(self) -> str:
        """``rise[gpu0.temperature_celsius]``."""
        return f"{self.check}[{self.subject}]" if self.subject else self.check


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """A person's word that a check may be skipped."""

    pattern: str
    """``check`` or ``check[subject]``, of a test of one's own its name; each may hold ``*``."""
    reason: str
    origin: str

    def covers(self, check: str, subject: str) -> bool:
        """Whether it is about that check of that subject."""
        wanted, _, of = self.pattern.partition("[")
        return fnmatchcase(check, wanted) and (not of or fnmatchcase(subject, of.removesuffix("]")))


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing that stands in the way."""

    kind: str
    """``failed``, ``inconclusive``, ``broken``, ``blocked``, ``skipped``, ``expected failure``, ``simulated``,
    ``not run``, ``deselected``, ``not asked``, ``run``."""
    decides: Decision
    """What it makes of the gate."""
    seen: str
    likely: str = ""
    advice: str = ""
    test: str = ""
    check: str = ""
    layer: str = ""
    subject: str = ""
    simulated: bool = False

    @property
    def name(self) -> str:
        """What to call it in a list: check and subject, else the test's own name."""
        if not self.check:
            return self.test.rsplit("/", 1)[-1] or say("the run")
        return f"{self.check}[{self.subject}]" if self.subject else self.check


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A check that was skipped, and that a person accepted."""

    item: Item
    acceptance: Acceptance


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The decision and everything that it rests on."""

    decision: Decision
    because: str
    """In one line."""
    blocking: tuple[Item, ...]
    accepted: tuple[Accepted, ...]
    passed: int
    """Critical checks that were measured on the machine and passed."""
    critical: int
    """Critical checks in all, those that nobody asked included."""


def decide(
    observed: Sequence[Observed],
    *,
    needs: Sequence[Need] = (),
    besides: Sequence[Finding] = (),
    troubles: Sequence[Trouble] = (),
    acceptances: Sequence[Acceptance] = (),
) -> Verdict:
    """Decide.

    Args:
        observed: Every test of the run, those that did not run included.
        needs: What must have been asked by a critical test.
        besides: Findings of no test: third parties' criteria.
        troubles: What happened to the run as a whole.
        acceptances: Skips that a person accepts.
    """
    items: list[Item] = [_of_run(trouble) for trouble in troubles]
    accepted: list[Accepted] = []
    passed = critical = 0
    for one in observed:
        critical += one.critical and not one.advisory
        item = _item(one)
        if item is None:
            passed += one.critical and not one.advisory
            continue
        acceptance = _accepting(item, acceptances)
        if acceptance is None:
            items.append(item)
        else:
            accepted.append(Accepted(item=item, acceptance=acceptance))
    shown = _shown(observed)
    not_shown = [_not_shown(need, observed) for need in needs if (need.check, need.subject) not in shown]
    items += [item for item in map(_of_third_party, besides) if item is not None]
    items += not_shown
    critical += len(not_shown)
    if not items and not passed:
        items.append(_of_run(Trouble(seen=say("no critical check was measured"), advice=say("pytest suites --gate"))))
    items.sort(key=lambda item: item.decides is not Decision.NO_GO)  # stable: what failed comes first
    decision = items[0].decides if items else Decision.GO
    return Verdict(
        decision=decision,
        because=_because(decision, items, passed=passed, critical=critical, accepted=len(accepted)),
        blocking=tuple(items),
        accepted=tuple(accepted),
        passed=passed,
        critical=critical,
    )


def counts(observed: Sequence[Observed]) -> dict[str, int]:
    """How many tests ended in each way."""
    return {str(how): sum(one.how is how for one in observed) for how in How}


def doubts(
    run: Mapping[str, object], bench: str | None, *, now_seconds: float = 0.0, oldest_seconds: float = math.inf
) -> list[Trouble]:
    """Why a recording that is judged again may be no evidence of the bench under test as it is now.

    Args:
        run: As in ``thermal_runs`` of `gate_document`.
        bench: The bench that was named for this run; None where none was.
        now_seconds: Unix time.
        oldest_seconds: How long ago it may have ended.
    """
    where, changed = run["directory"], run["changed"]
    if run["source"] == "log":
        return [
            Trouble(
                seen=say("{where}: nothing says of which machine this log is, or that it is whole", where=where),
                likely=say("it was recorded by another program"),
                advice=say("a run directory, or a run on the bench"),
            )
        ]
    found = []
    if run["state"] != "finished":
        found.append(
            Trouble(
                seen=say("{where}: the run that is judged again is {state}", where=where, state=run["state"]),
                advice=say("a run that went to its end"),
            )
        )
    if isinstance(changed, Sequence) and changed:
        found.append(
            Trouble(
                seen=say(
                    "{where}: {count} of its files are not as they were when the run ended: {changed}",
                    where=where,
                    count=len(changed),
                    changed=changed[0],
                ),
                likely=say("they were edited, or copied in part"),
                advice=say("the run directory as it was written"),
            )
        )
    if run["source"] == "replayed" and bench is not None and run["bench"] != bench:
        found.append(
            Trouble(
                seen=say(
                    "{where}: it was recorded on bench {bench}, and this gate is about {bench_2}",
                    where=where,
                    bench=run["bench"] or say("unknown"),
                    bench_2=bench,
                ),
                advice=say("a run of this bench"),
            )
        )
    if run["source"] == "replayed":
        found += _of_another_time(run, now_seconds, oldest_seconds)
    return found


def _of_another_time(run: Mapping[str, object], now_seconds: float, oldest_seconds: float) -> Iterator[Trouble]:
    where, ended = run["directory"], _unix_seconds(run.get("ended"))
    if ended is None:
        if math.isfinite(oldest_seconds):
            yield Trouble(seen=say("{where}: it does not say when it ended", where=where), advice=say("a run of today"))
    elif now_seconds - ended > oldest_seconds:
        yield Trouble(
            seen=say(
                "{where}: it ended {hours:,.0f} h ago, and this gate takes none older than {most:,.3g} h",
                where=where,
                hours=(now_seconds - ended) / 3600,
                most=oldest_seconds / 3600,
            ),
            likely=say("it says how the machine was then, and not how it is now"),
            advice=say("a run of today, or another thermal_gate_oldest in the ini file"),
        )
    elif ended - now_seconds > CLOCKS_APART_SECONDS:
        yield Trouble(
            seen=say("{where}: it ends {hours:,.1f} h from now", where=where, hours=(ended - now_seconds) / 3600),
            likely=say("the clock of one of the two machines is wrong"),
            advice=say("set the clocks, then a new run"),
        )


def few_of_a_kind(troubles: Sequence[Trouble]) -> list[Trouble]:
    """The first of those that have one cause, with how many more there are: a fleet has a run for each node."""
    kinds: dict[tuple[str, str], list[Trouble]] = {}
    for one in troubles:
        kinds.setdefault((one.likely, one.advice), []).append(one)
    return [
        replace(first, seen=say("{seen}; {count} more like this", seen=first.seen, count=len(more))) if more else first
        for first, *more in kinds.values()
    ]


def twins(runs: Sequence[Mapping[str, object]]) -> list[Trouble]:
    """Runs under several names that hold the same samples: one machine was measured, not several."""
    by_samples: dict[object, list[Mapping[str, object]]] = {}
    for run in runs:
        if run.get("samples"):
            by_samples.setdefault(run["samples"], []).append(run)
    return [
        Trouble(
            seen=say(
                "{directory} holds the same samples as {other}, under another name",
                directory=same[1]["directory"],
                other=same[0]["directory"],
            ),
            likely=say("a run was copied, and stands for a machine that was not measured"),
            advice=say("a run of each machine"),
        )
        for same in by_samples.values()
        if len({run["host"] for run in same}) > 1
    ]


def unseen(
    benches: Sequence[Mapping[str, object]], runs: Sequence[Mapping[str, object]], *, fleet_nodes: int | None = None
) -> list[Trouble]:
    """What the bench files count and nothing shows: cards of a node, nodes of a fleet.

    Args:
        benches: As in ``benches`` of `gate_document`.
        runs: As in its ``thermal_runs``.
        fleet_nodes: How many nodes the fleet has that was judged; None where none was.
    """
    found = []
    nodes = _most(benches, "nodes")
    if fleet_nodes is not None and fleet_nodes < nodes:
        found.append(
            Trouble(
                seen=say(
                    "node_count of the bench is {nodes}; nodes of the fleet that was judged: {count}",
                    count=fleet_nodes,
                    nodes=nodes,
                ),
                likely=say("runs of the other nodes were not brought back yet, or lie elsewhere"),
                advice=say("--runs DIR with the folder that holds their run directories"),
            )
        )
    wanted = _most(benches, "cards")
    for run in runs:
        cards = run.get("cards")
        if isinstance(cards, int) and cards < wanted:
            found.append(
                Trouble(
                    seen=say(
                        "{where}: gpu_per_node of the bench is {wanted}; accelerators measured: {cards}",
                        where=run["directory"],
                        cards=cards,
                        wanted=wanted,
                    ),
                    likely=say("a card is lost, its driver is missing, or the bench file is another machine's"),
                    advice=say("pytest --sensors says why for each source"),
                )
            )
    return found


def _most(benches: Sequence[Mapping[str, object]], what: str) -> int:
    return max((count for bench in benches if isinstance(count := bench.get(what), int)), default=0)


def _unix_seconds(text: object) -> float | None:
    try:
        return dt.datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


# ---------------------------------------------------------------------------------------------------------------------

_WORDS: Mapping[How, tuple[str, str, str]] = {
    How.NOT_RUN: (
        say("the run ended before it"),
        say("-x, --maxfail, Ctrl-C, or a worker that crashed"),
        say("pytest suites --gate, without -x"),
    ),
    How.DESELECTED: (
        say("left out of this run"),
        say("-k, -m or --deselect"),
        say("pytest suites --gate, without them"),
    ),
    How.EXPECTED: (
        say("known to fail (xfail), so it proves nothing"),
        "",
        say("take the mark off, or mark it advisory if it must not block"),
    ),
}
_SIMULATED: Mapping[str, str] = {
    "likely": say("the demo bench stood in for the machine"),
    "advice": say("--bench DIR of the machine that goes into production"),
}


def _item(one: Observed) -> Item | None:
    """What of a test stands in the way; None where nothing does."""
    if one.advisory:
        return None
    found = one.decisive
    if one.how is How.FAILED:
        return _told(one, found, kind="failed", decides=Decision.NO_GO)
    if one.how is How.BROKEN:
        open_finding = found is not None and found.outcome is Outcome.INCONCLUSIVE
        return _told(one, found, kind="inconclusive" if open_finding else "broken", decides=Decision.NOT_DECIDED)
    if not one.critical:
        return None
    if one.how is How.PASSED:
        if not one.simulated:
            return None
        seen = say("simulated: {seen}", seen=found.seen) if found is not None else "simulated"
        return _told(one, found, kind="simulated", decides=Decision.NOT_DECIDED, seen=seen, **_SIMULATED)
    if one.how is How.SKIPPED:
        return _skipped(one, found)
    seen, likely, advice = _WORDS[one.how]
    return _told(one, None, kind=str(one.how), decides=Decision.NOT_DECIDED, seen=seen, likely=likely, advice=advice)


def _skipped(one: Observed, found: Finding | None) -> Item:
    blocked = found.outcome is Outcome.BLOCKED if found is not None else one.message.startswith("blocked: ")
    if blocked:
        return _told(
            one,
            found,
            kind="blocked",
            decides=Decision.NOT_DECIDED,
            advice=say("what blocks it first, then this run again"),
        )
    name = Need(check=one.check or _function(one.test), subject=one.subject).name
    return _told(
        one,
        found,
        kind="skipped",
        decides=Decision.NOT_DECIDED,
        advice=say(
            "make it apply, or accept it with a reason: thermal_gate_accept in the ini file, "
            "{name} = why, and who says so",
            name=name,
        ),
    )


def _told(
    one: Observed,
    found: Finding | None,
    *,
    kind: str,
    decides: Decision,
    seen: str = "",
    likely: str = "",
    advice: str = "",
) -> Item:
    """An item in the finding's own words, where it has some."""
    if found is not None and found.outcome is not Outcome.PASSED:
        own = (found.seen, found.likely, found.advice)
    else:
        own = _parts(one.message)
    return Item(
        kind=kind,
        decides=decides,
        seen=seen or own[0] or say("it gave no reason"),
        likely=likely or own[1],
        advice=advice or own[2],
        test=one.test,
        check=found.check if found is not None else one.check,
        layer=found.layer if found is not None else "",
        subject=found.subject if found is not None else one.subject,
        simulated=one.simulated,
    )


def _parts(message: str) -> tuple[str, str, str]:
    """What was seen, ``likely:`` and ``try:`` of a message as errors are told."""
    lines = [line.strip() for line in message.strip().splitlines()]
    parts = {
        word: next((line.removeprefix(word).strip() for line in lines if line.startswith(word)), "")
        for word in ("likely:", "try:")
    }
    return next(iter(lines), "").removeprefix("blocked: "), parts["likely:"], parts["try:"]


def _of_run(trouble: Trouble) -> Item:
    return Item(
        kind="run",
        decides=Decision.NOT_DECIDED,
        seen=trouble.seen,
        likely=trouble.likely,
        advice=trouble.advice,
    )


def _of_third_party(found: Finding) -> Item | None:
    if found.outcome is Outcome.FAILED:
        kind, decides = "failed", Decision.NO_GO
    elif found.outcome is Outcome.INCONCLUSIVE:
        kind, decides = "inconclusive", Decision.NOT_DECIDED
    else:
        return None
    return Item(
        kind=kind,
        decides=decides,
        seen=found.seen,
        likely=found.likely,
        advice=found.advice,
        check=found.check,
        layer=found.layer,
        subject=found.subject,
    )


def _shown(observed: Sequence[Observed]) -> set[tuple[str, str]]:
    """Checks and subjects of which a critical test says how they stand; each check also without subject.

    A pass counts by what was found: a test may pass because somebody replaced it, its fixture or its report. A test
    that did not pass stands in the way by itself.
    """
    pairs: set[tuple[str, str]] = set()
    for one in observed:
        if not one.critical or one.advisory:
            continue
        pairs.update((found.check, found.subject) for found in one.findings if found.outcome is Outcome.PASSED)
        if one.how is not How.PASSED:
            pairs.add((one.check, one.subject))
            if one.decisive is not None:
                pairs.add((one.decisive.check, one.decisive.subject))
    return pairs | {(check, "") for check, _ in pairs}


def _not_shown(need: Need, observed: Sequence[Observed]) -> Item:
    """What stands in the way where a need is not met: what was found in spite of a pass, else that nobody looked."""
    passed = [one for one in observed if one.critical and not one.advisory and one.how is How.PASSED]
    for one in passed:
        for found in one.findings:
            if found.check == need.check and need.subject in ("", found.subject):
                bad = found.outcome is Outcome.FAILED
                seen = say("its test is told as passed, but {seen}", seen=found.seen)
                return _told(
                    one,
                    found,
                    kind="failed" if bad else "inconclusive",
                    decides=Decision.NO_GO if bad else Decision.NOT_DECIDED,
                    seen=seen,
                )
    test = next((one.test for one in passed if (one.check, one.subject) == (need.check, need.subject)), "")
    return Item(
        kind="not asked",
        decides=Decision.NOT_DECIDED,
        seen=say("its test passed, and nothing was measured in it")
        if test
        else say("no critical test of this run asked for it"),
        likely=say("a conftest.py or plugin replaced the test, or its fixture")
        if test
        else say("only a part of the suites was named"),
        advice=say("pytest suites --gate, without it") if test else say("pytest suites --gate"),
        test=test,
        check=need.check,
        subject=need.subject,
    )


def _accepting(item: Item, acceptances: Sequence[Acceptance]) -> Acceptance | None:
    if item.kind != "skipped":
        return None
    name = item.check or _function(item.test)
    return next((one for one in acceptances if one.covers(name, item.subject)), None)


def _function(test: str) -> str:
    return test.rsplit("::", 1)[-1].partition("[")[0]


def _because(decision: Decision, items: Sequence[Item], *, passed: int, critical: int, accepted: int) -> str:
    failed = sum(item.decides is Decision.NO_GO for item in items)
    still_open = sum(item.decides is Decision.NOT_DECIDED and item.kind != "run" for item in items)
    if decision is Decision.GO:
        skips = say("; {accepted} more skipped, as accepted", accepted=accepted) if accepted else ""
        return say("all {passed} critical checks were measured and passed{skips}", passed=passed, skips=skips)
    if decision is Decision.NO_GO:
        return say("{failed} failed", failed=failed) + (
            say(", {still_open} more of {critical} critical checks are open", still_open=still_open, critical=critical)
            if still_open
            else ""
        )
    whole = [item.seen for item in items if item.kind == "run"]
    if still_open:
        simulated = sum(item.kind == "simulated" for item in items)
        also = say(", {simulated} of them because they are simulated", simulated=simulated) if simulated else ""
        whole.append(
            say(
                "{still_open} of {critical} critical checks are open{also}",
                still_open=still_open,
                critical=critical,
                also=also,
            )
        )
    return joined("; ", whole)
