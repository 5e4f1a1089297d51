"""`--gate`: the pre-production gate of this run, as `reports/gate.json`, the exit code, and the last words.

The file says *not decided* from the first moment on, so that no earlier answer is ever taken for this run's. Only the
process that sees the whole run writes it: pytest itself, or xdist's controller.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.model.said import joined, say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.columns import wrapped
from pytest_thermal.plugin.evidence.gate_file import GATE_FILE, GOES_ON, GateFile
from pytest_thermal.plugin.language import catalogue

if TYPE_CHECKING:
    from pytest_thermal.plugin.evidence.observing import Observer
    from pytest_thermal.reporting.gate import Acceptance, Item, Trouble, Verdict

_SHOWN_NAMES = 12
_DECISIONS: Mapping[str, str] = {"go": say("GO"), "no-go": say("NO-GO"), "not decided": say("NOT DECIDED")}
_KINDS: Mapping[str, str] = {
    "failed": say("failed"),
    "inconclusive": say("inconclusive"),
    "broken": say("broken"),
    "blocked": say("blocked"),
    "expected failure": say("expected failure"),
    "simulated": say("simulated"),
    "not run": say("not run"),
    "deselected": say("deselected"),
    "not asked": say("not asked"),
}
_MARKUP: dict[str, dict[str, bool]] = {
    "go": {"green": True, "bold": True},
    "no-go": {"red": True, "bold": True},
    "not decided": {"yellow": True, "bold": True},
}


class GateRun:
    """The gate of one run."""

    def __init__(self, config: pytest.Config) -> None:
        """Replace what an earlier run left.

        Raises:
            pytest.UsageError: the file cannot be written, or another option stops before anything is run.
        """
        self._config = config
        self._file = GateFile(config)
        self._decide: Callable[[Sequence[Trouble]], Verdict] | None = None
        """The decision with more troubles than were known."""
        self._observer: Observer | None = None
        self.verdict: Verdict | None = None
        self.trouble = ""
        """Why the answer could not be written."""
        self.say(GOES_ON)
        try:
            self.acceptances = _acceptances(config)
            oldest(config)
        except pytest.UsageError as error:
            self.say(str(error))
            raise

    def say(self, because: str) -> None:
        """Let the file say that nothing is decided, and why.

        Raises:
            pytest.UsageError: it cannot be written.
        """
        try:
            self._file.say(because)
        except OSError as error:
            raise pytest.UsageError(
                say("--gate: {unwritable}", unwritable=unwritable(self._file.path, error))
            ) from None

    def finish(self, session: pytest.Session, observer: Observer, exitstatus: int) -> None:
        """Decide, write, and let pytest fail unless the answer is go. Never raises."""
        from pytest_thermal.reporting.gate import decide

        try:
            observed = observer.observed()
            told = list(troubles(self._config, observer, exitstatus))

            def verdict(more: Sequence[Trouble]) -> Verdict:
                return decide(
                    observed,
                    needs=observer.needs(),
                    besides=observer.third_parties,
                    troubles=[*told, *more],
                    acceptances=self.acceptances,
                )

            self._decide, self._observer = verdict, observer
            self._conclude([])
            if self.is_go and session.exitstatus != pytest.ExitCode.OK:
                # Somebody else lets this run fail, for a reason that is in no test.
                self._conclude([_ends_with(int(session.exitstatus))])
        except OSError as error:
            self.trouble = unwritable(self._file.path, error)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the answer is not go
            self.trouble = say("the gate could not be decided: {name}: {error}", name=type(error).__name__, error=error)
        if not self.is_go and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def is_go(self) -> bool:
        """Whether the answer is go, and written down."""
        return self.verdict is not None and not self.verdict.blocking and not self.trouble

    def settle(self, code: int | None) -> int | None:
        """Pytest's last word: its exit code, or None where it ends by an exception. 0 is go, and nothing else is.

        Other plugins have the last word in a run's own hooks; whatever they let pytest end with after the gate was
        decided, file and exit code say the same.
        """
        if self.is_go and code != 0:
            try:
                self._conclude([_ends_with(code)])
            except Exception as error:  # noqa: BLE001 - as above
                self.trouble = say(
                    "the gate could not be decided: {name}: {error}", name=type(error).__name__, error=error
                )
                with contextlib.suppress(OSError):
                    self._file.path.unlink(missing_ok=True)
            told = catalogue(self._config)
            because = self.verdict.because if self.verdict is not None else ""
            head = say("{decision}: {because}", decision=_DECISIONS["not decided"], because=self.trouble or because)
            sys.stderr.write(told(head) + "\n")
        return int(pytest.ExitCode.TESTS_FAILED) if code == 0 and not self.is_go else code

    def _conclude(self, more: Sequence[Trouble]) -> None:
        """Decide and write."""
        from pytest_thermal.reporting.gate_document import ended

        if self._decide is None or self._observer is None:
            return
        self.verdict = self._decide(more)
        circumstances = self._file.circumstances(self._observer, checkout=checkout(Path(__file__).parents[3]))
        self._file.write(ended(circumstances, self.verdict, self._observer.observed()))

    def write_summary(self, terminal: Any) -> None:
        """The decision in one line, and what stands in the way."""
        told = catalogue(self._config)
        terminal.section(told(say("gate")), sep="=", blue=True)
        # Whatever could not be written down is not decided, though it be go.
        decision = "not decided" if self.verdict is None or self.trouble else str(self.verdict.decision)
        because = self.trouble or (self.verdict.because if self.verdict is not None else "")
        head = say("{decision}: {because}", decision=_DECISIONS[decision], because=because)
        for line in _wrap(told(head)):
            terminal.write_line(line, **_MARKUP[decision])
        if self.verdict is not None:
            for line in item_lines(self.verdict.blocking, told):
                terminal.write_line(line)
            for one in self.verdict.accepted:
                accepted = say(
                    "accepted: {name}: {seen} ({reason})",
                    name=one.item.name,
                    seen=one.item.seen,
                    reason=one.acceptance.reason,
                )
                for line in _wrap(told(accepted), "  "):
                    terminal.write_line(line)
        if not self.trouble:
            terminal.write_line(told(say("{gate_file} says it in full", gate_file=GATE_FILE)))


def _ends_with(code: int | None) -> Trouble:
    from pytest_thermal.reporting.gate import Trouble

    return Trouble(
        seen=say("pytest ends by an exception although no test failed")
        if code is None
        else say("pytest ends with exit code {exitstatus} although no test failed", exitstatus=code),
        advice=say("see the warnings above"),
    )


def troubles(config: pytest.Config, observer: Observer, exitstatus: int) -> Iterator[Trouble]:
    """What happened to the run as a whole."""
    from pytest_thermal.reporting.gate import Trouble, doubts, few_of_a_kind, twins, unseen

    if config.option.collectonly:
        yield Trouble(
            seen=say("tests were only listed (--collect-only): nothing was run"),
            advice=say("pytest suites --gate, without it"),
        )
        return
    if observer.collection_errors:
        yield Trouble(
            seen=say(
                "{count} could not be collected: {collection_errors}",
                count=len(observer.collection_errors),
                collection_errors=observer.collection_errors[0],
            ),
            likely=say("a test file with a mistake in it, or a path that is not there"),
            advice=say("see ERRORS above"),
        )
    elif observer.interrupted or exitstatus == pytest.ExitCode.INTERRUPTED or exitstatus > 128:
        reason = observer.interrupted or say("Ctrl-C or a signal")
        yield Trouble(seen=say("interrupted: {reason}", reason=reason), advice=say("let it run to its end"))
    elif exitstatus == pytest.ExitCode.INTERNAL_ERROR:
        yield Trouble(
            seen=say("pytest itself, or a plugin, failed: INTERNALERROR"), advice=say("see INTERNALERROR above")
        )
    elif exitstatus == pytest.ExitCode.USAGE_ERROR:
        yield Trouble(seen=say("the run was refused: a usage error"), advice=say("see ERROR above"))
    for lost in observer.lost_workers:
        yield Trouble(
            seen=say("xdist's worker {lost}: what it had to tell is lost", lost=lost),
            likely=say("a test ended its process, or the machine ran out of memory"),
            advice=say("pytest suites --gate, without -n"),
        )
    if config.getoption("lf", False):
        yield Trouble(
            seen=say("only what failed last time was to be run (--lf)"), advice=say("pytest suites --gate, without it")
        )
    if sys.flags.optimize:
        yield Trouble(
            seen=say("Python was started with -O, which leaves asserts out"),
            advice=say("without -O, and without $PYTHONOPTIMIZE"),
        )
    for kind, folder in (("access", "suites/supernode"), ("thermal", "suites/thermal")):
        # What a fleet's nodes brought back are thermal runs, judged one by one.
        known = {kind, "fleet"} if kind == "thermal" else {kind}
        if not known & observer.kinds and not observer.lost_workers:
            yield Trouble(
                seen=say("no {kind} check was collected", kind=kind),
                likely=say("{folder} was not named, or could not be collected", folder=folder),
                advice=say("pytest suites --gate"),
            )
    named = next((bench["name"] for bench in observer.benches if not bench["simulated"]), None)
    now_seconds, oldest_seconds = time.time(), oldest(config)
    found = [
        doubt
        for run in observer.runs
        for doubt in doubts(run, named, now_seconds=now_seconds, oldest_seconds=oldest_seconds)
    ]
    yield from few_of_a_kind(found)
    yield from twins(observer.runs)
    yield from unseen(observer.benches, observer.runs, fleet_nodes=observer.fleet_nodes)


def item_lines(items: Sequence[Item], told: Callable[[str], str] = str) -> Iterator[str]:
    """Everything that stands in the way, those of one kind, cause and remedy together; good at 80 columns."""
    groups: dict[tuple[str, str, str, str], list[Item]] = {}
    for item in items:
        own = item.seen if item.kind in ("failed", "inconclusive", "broken", "run", "blocked") else ""
        cause, advice = ("", "") if item.kind == "skipped" else (item.likely, item.advice)
        groups.setdefault((item.kind, own, cause, advice), []).append(item)
    for (kind, seen, likely, advice), same in groups.items():
        if kind == "run":
            yield from _wrap(told(say("the run: {seen}", seen=seen)), "  ")
        elif kind == "skipped":
            for item in same:
                yield from _wrap(told(say("skipped: {name}: {seen}", name=item.name, seen=item.seen)), "  ")
            remedy = say("make them apply, or accept each with a reason in the ini file:")
            yield from _wrap(told(say("try: {remedy}", remedy=remedy)), "    ")
            yield "    thermal_gate_accept ="
            why = told(say("why, and who says so"))
            yield from (f"        {name} = {why}" for name in _names_to_accept(same))
            continue
        else:
            names: str = joined(", ", [item.name for item in same][:_SHOWN_NAMES])
            if len(same) > _SHOWN_NAMES:
                names += say(" and {count} more", count=len(same) - _SHOWN_NAMES)
            head = say("{kind}: {names}", kind=_KINDS[kind], names=names)
            yield from _wrap(told(say("{head}: {seen}", head=head, seen=seen) if seen else head), "  ")
        if likely:
            yield from _wrap(told(say("likely: {likely}", likely=likely)), "    ")
        if advice:
            yield from _wrap(told(say("try: {remedy}", remedy=advice)), "    ")


def _names_to_accept(items: Sequence[Item]) -> list[str]:
    names = dict.fromkeys(item.check or item.test.rsplit("::", 1)[-1].partition("[")[0] for item in items)
    return list(names)[:_SHOWN_NAMES]


def unwritable(path: Path, error: OSError) -> str:
    """What to tell of a gate file that cannot be written."""
    return say(
        "{filename}: cannot be written: {strerror}\nlikely: the folder belongs to another user, "
        "is read-only, or its disk is full\ntry: start pytest in a folder where {gate_file} can "
        "be written",
        filename=error.filename or path,
        strerror=error.strerror or error,
        gate_file=GATE_FILE,
    )


def checkout(folder: Path) -> tuple[str | None, bool | None]:
    """Commit of the checkout whose top is ``folder``, and whether it was changed since; None where it is none."""
    if not (folder / ".git").exists():
        return None, None

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None, None


def oldest(config: pytest.Config) -> float:
    """How long ago a run may have ended that is judged again, in seconds.

    Raises:
        pytest.UsageError: the ini file's value is no duration.
    """
    from pytest_thermal.bench import parse_duration

    text = str(config.getini(options.GATE_OLDEST))
    try:
        return parse_duration(text)
    except ValueError as error:
        raise pytest.UsageError(
            say("ini key {gate_oldest}: {text!r}: {error}", gate_oldest=options.GATE_OLDEST, text=text, error=error)
        ) from None


def _acceptances(config: pytest.Config) -> tuple[Acceptance, ...]:
    """What a person accepts; a command line that could never be decided is refused here too."""
    from pytest_thermal.reporting.gate import Acceptance

    for other in ("sensors", "find-concurrency"):
        if options.value(config, other):
            raise pytest.UsageError(
                say("--gate and --{other} contradict each other: the latter runs no test", other=other)
            )
    found = []
    for line in config.getini(options.GATE_ACCEPT):
        pattern, equals, reason = (part.strip() for part in line.partition("="))
        if not (pattern and equals and reason):
            raise pytest.UsageError(
                say(
                    "ini key {gate_accept}: {line!r}\ntry: check = why it may be skipped, and who says so",
                    gate_accept=options.GATE_ACCEPT,
                    line=line,
                )
            )
        found.append(Acceptance(pattern=pattern, reason=reason, origin=f"ini key {options.GATE_ACCEPT}"))
    return tuple(found)


def _wrap(text: str, indent: str = "") -> list[str]:
    lines = []
    for number, part in enumerate(text.splitlines()):
        lines += wrapped(part, first=indent if number == 0 else indent + "  ", rest=indent + "  ")
    return lines
