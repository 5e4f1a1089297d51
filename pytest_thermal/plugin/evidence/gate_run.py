"""`--gate`: the pre-production gate of this run, as `reports/gate.json`, the exit code, and the last words.

The file says *not decided* from the first moment on, so that no earlier answer is ever taken for this run's. Only the
process that sees the whole run writes it: pytest itself, or xdist's controller.
"""

from __future__ import annotations

import platform
import subprocess
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal import __version__
from pytest_thermal.plugin import options
from pytest_thermal.plugin.evidence.node import own_node
from pytest_thermal.plugin.keys import ACTIVE_BENCH

if TYPE_CHECKING:
    from pytest_thermal.plugin.evidence.observing import Observer
    from pytest_thermal.reporting.gate import Acceptance, Item, Trouble, Verdict
    from pytest_thermal.reporting.gate_document import Circumstances

GATE_FILE = Path("reports") / "gate.json"
"""Below the folder that pytest was started in."""
GOES_ON = "the run goes on, or it ended without a word"
_WIDTH = 80
_SHOWN_NAMES = 12
_MARKUP: dict[str, dict[str, bool]] = {
    "go": {"green": True, "bold": True},
    "no-go": {"red": True, "bold": True},
    "not decided": {"yellow": True, "bold": True},
}


def gate_path(config: pytest.Config) -> Path:
    """Where the gate's answer goes."""
    return config.invocation_params.dir / GATE_FILE


class GateRun:
    """The gate of one run."""

    def __init__(self, config: pytest.Config) -> None:
        """Replace what an earlier run left.

        Raises:
            pytest.UsageError: the file cannot be written, or another option stops before anything is run.
        """
        self._config = config
        self._started_seconds = time.time()
        self.verdict: Verdict | None = None
        self.trouble = ""
        """Why the answer could not be written."""
        self.say(GOES_ON)
        try:
            self.acceptances = _acceptances(config)
        except pytest.UsageError as error:
            self.say(str(error))
            raise

    def say(self, because: str) -> None:
        """Let the file say that nothing is decided, and why.

        Raises:
            pytest.UsageError: it cannot be written.
        """
        from pytest_thermal.reporting.gate_document import running

        try:
            self._write(running(self._circumstances(None), because))
        except OSError as error:
            raise pytest.UsageError(f"--gate: {unwritable(gate_path(self._config), error)}") from None

    def finish(self, session: pytest.Session, observer: Observer, exitstatus: int) -> None:
        """Decide, write, and let pytest fail unless the answer is go. Never raises."""
        from pytest_thermal.reporting.gate import Decision, Trouble, decide
        from pytest_thermal.reporting.gate_document import ended

        try:
            observed = observer.observed()

            def verdict(told: Sequence[Trouble]) -> Verdict:
                return decide(
                    observed,
                    needs=observer.needs(),
                    besides=observer.third_parties,
                    troubles=told,
                    acceptances=self.acceptances,
                )

            told = list(troubles(self._config, observer, exitstatus))
            self.verdict = verdict(told)
            if self.verdict.decision is Decision.GO and session.exitstatus != pytest.ExitCode.OK:
                # Somebody else lets this run fail, for a reason that is in no test.
                ends = f"pytest ends with exit code {int(session.exitstatus)} although no test failed"
                self.verdict = verdict([*told, Trouble(seen=ends, advice="see the warnings above")])
            self._write(ended(self._circumstances(observer), self.verdict, observed))
        except OSError as error:
            self.trouble = unwritable(gate_path(self._config), error)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the answer is not go
            self.trouble = f"the gate could not be decided: {type(error).__name__}: {error}"
        undecided = self.verdict is None or bool(self.verdict.blocking) or bool(self.trouble)
        if undecided and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def write_summary(self, terminal: Any) -> None:
        """The decision in one line, and what stands in the way."""
        terminal.section("gate", sep="=", blue=True)
        # Whatever could not be written down is not decided, though it be go.
        decision = "not decided" if self.verdict is None or self.trouble else str(self.verdict.decision)
        because = self.trouble or (self.verdict.because if self.verdict is not None else "")
        for line in _wrap(f"{decision.upper()}: {because}"):
            terminal.write_line(line, **_MARKUP[decision])
        if self.verdict is not None:
            for line in item_lines(self.verdict.blocking):
                terminal.write_line(line)
            for one in self.verdict.accepted:
                for line in _wrap(f"accepted: {one.item.name}: {one.item.seen} ({one.acceptance.reason})", "  "):
                    terminal.write_line(line)
        if not self.trouble:
            terminal.write_line(f"{GATE_FILE} says it in full")

    # ---------------------------------------------------------------------------------------------------------------

    def _circumstances(self, observer: Observer | None) -> Circumstances:
        from pytest_thermal.reporting.gate_document import Circumstances

        commit, modified = (None, None) if observer is None else checkout(Path(__file__).parents[3])
        return Circumstances(
            started_seconds=self._started_seconds,
            ended_seconds=None if observer is None else time.time(),
            version=__version__,
            commit=commit,
            modified=modified,
            pytest=pytest.__version__,
            python=platform.python_version(),
            host=own_node(self._config),
            command=list(map(str, self._config.invocation_params.args)),
            benches=[] if observer is None else observer.benches,
            runs=[] if observer is None else observer.runs,
        )

    def _write(self, document: Mapping[str, Any]) -> None:
        from pytest_thermal.bench import Redactor
        from pytest_thermal.recording.layout import write_atomically
        from pytest_thermal.reporting.gate_document import as_text

        active = self._config.stash.get(ACTIVE_BENCH, None)
        redactor = active.redactor if active is not None else Redactor()
        clean: Any = redactor.data(dict(document))
        path = gate_path(self._config)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, as_text(clean).encode("utf-8", "replace"))


def troubles(config: pytest.Config, observer: Observer, exitstatus: int) -> Iterator[Trouble]:
    """What happened to the run as a whole."""
    from pytest_thermal.reporting.gate import Trouble, doubts

    if config.option.collectonly:
        yield Trouble(
            seen="tests were only listed (--collect-only): nothing was run", advice="pytest suites --gate, without it"
        )
        return
    if observer.collection_errors:
        yield Trouble(
            seen=f"{len(observer.collection_errors)} could not be collected: {observer.collection_errors[0]}",
            likely="a test file with a mistake in it, or a path that is not there",
            advice="see ERRORS above",
        )
    elif observer.interrupted or exitstatus == pytest.ExitCode.INTERRUPTED or exitstatus > 128:
        reason = observer.interrupted or "Ctrl-C or a signal"
        yield Trouble(seen=f"interrupted: {reason}", advice="let it run to its end")
    elif exitstatus == pytest.ExitCode.INTERNAL_ERROR:
        yield Trouble(seen="pytest itself, or a plugin, failed: INTERNALERROR", advice="see INTERNALERROR above")
    elif exitstatus == pytest.ExitCode.USAGE_ERROR:
        yield Trouble(seen="the run was refused: a usage error", advice="see ERROR above")
    for lost in observer.lost_workers:
        yield Trouble(
            seen=f"xdist's worker {lost}: what it had to tell is lost",
            likely="a test ended its process, or the machine ran out of memory",
            advice="pytest suites --gate, without -n",
        )
    for kind, folder in (("access", "suites/supernode"), ("thermal", "suites/thermal")):
        # What a fleet's nodes brought back are thermal runs, judged one by one.
        known = {kind, "fleet"} if kind == "thermal" else {kind}
        if not known & observer.kinds and not observer.lost_workers:
            yield Trouble(
                seen=f"no {kind} check was collected",
                likely=f"{folder} was not named, or could not be collected",
                advice="pytest suites --gate",
            )
    named = next((bench["name"] for bench in observer.benches if not bench["simulated"]), None)
    for run in observer.runs:
        yield from doubts(run, named)


def item_lines(items: Sequence[Item]) -> Iterator[str]:
    """Everything that stands in the way, those of one kind, cause and remedy together; good at 80 columns."""
    groups: dict[tuple[str, str, str, str], list[Item]] = {}
    for item in items:
        told = item.seen if item.kind in ("failed", "inconclusive", "broken", "run", "blocked") else ""
        cause, advice = ("", "") if item.kind == "skipped" else (item.likely, item.advice)
        groups.setdefault((item.kind, told, cause, advice), []).append(item)
    for (kind, seen, likely, advice), same in groups.items():
        if kind == "run":
            yield from _wrap(f"the run: {seen}", "  ")
        elif kind == "skipped":
            yield from (line for item in same for line in _wrap(f"skipped: {item.name}: {item.seen}", "  "))
            yield from _wrap("try: make them apply, or accept each with a reason in the ini file:", "    ")
            yield "    thermal_gate_accept ="
            yield from (f"        {name} = why, and who says so" for name in _names_to_accept(same))
            continue
        else:
            names = [item.name for item in same]
            more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
            head = f"{kind}: {', '.join(names[:_SHOWN_NAMES])}{more}"
            yield from _wrap(f"{head}: {seen}" if seen else head, "  ")
        for word, text in (("likely", likely), ("try", advice)):
            if text:
                yield from _wrap(f"{word}: {text}", "    ")


def _names_to_accept(items: Sequence[Item]) -> list[str]:
    names = dict.fromkeys(item.check or item.test.rsplit("::", 1)[-1].partition("[")[0] for item in items)
    return list(names)[:_SHOWN_NAMES]


def unwritable(path: Path, error: OSError) -> str:
    """What to tell of a gate file that cannot be written."""
    return (
        f"{error.filename or path}: cannot be written: {error.strerror or error}\n"
        "likely: the folder belongs to another user, is read-only, or its disk is full\n"
        f"try: start pytest in a folder where {GATE_FILE} can be written"
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


def _acceptances(config: pytest.Config) -> tuple[Acceptance, ...]:
    """What a person accepts; a command line that could never be decided is refused here too."""
    from pytest_thermal.reporting.gate import Acceptance

    for other in ("sensors", "find-concurrency"):
        if options.value(config, other):
            raise pytest.UsageError(f"--gate and --{other} contradict each other: the latter runs no test")
    found = []
    for line in config.getini(options.GATE_ACCEPT):
        pattern, equals, reason = (part.strip() for part in line.partition("="))
        if not (pattern and equals and reason):
            raise pytest.UsageError(
                f"ini key {options.GATE_ACCEPT}: {line!r}\ntry: check = why it may be skipped, and who says so"
            )
        found.append(Acceptance(pattern=pattern, reason=reason, origin=f"ini key {options.GATE_ACCEPT}"))
    return tuple(found)


def _wrap(text: str, indent: str = "") -> list[str]:
    lines = []
    for number, part in enumerate(text.splitlines()):
        lines += textwrap.wrap(
            part,
            _WIDTH,
            initial_indent=indent if number == 0 else indent + "  ",
            subsequent_indent=indent + "  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
    return lines
