"""`reports/gate.json`: replaced before anything else of a run, so that no earlier answer outlives what comes after.

Whatever ends a run early (an option that is refused, a conftest that fails, a kill) leaves *not decided*.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal import __version__
from pytest_thermal.model.said import say
from pytest_thermal.plugin.evidence.node import own_node
from pytest_thermal.plugin.keys import ACTIVE_BENCH

if TYPE_CHECKING:
    from pytest_thermal.plugin.evidence.observing import Observer
    from pytest_thermal.reporting.gate_document import Circumstances

GATE_FILE = Path("reports") / "gate.json"
"""Below the folder that pytest was started in."""
GOES_ON = say("the run goes on, or it ended without a word")
REFUSED = say("the run was refused before it began, or it ended without a word")
_ASKS = frozenset({"--gate", "--thermal-gate"})
_STOPS = frozenset({"-h", "--help", "-V", "--version"})


class GateFile:
    """The gate's answer on the disk."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._started_seconds = time.time()
        self.path = config.invocation_params.dir / GATE_FILE

    def say(self, because: str) -> None:
        """Let the file say that nothing is decided, and why.

        Raises:
            OSError: it cannot be written.
        """
        from pytest_thermal.reporting.gate_document import running

        self.write(running(self.circumstances(None), because))

    def circumstances(
        self, observer: Observer | None, *, checkout: tuple[str | None, bool | None] = (None, None)
    ) -> Circumstances:
        """When, where, with what; with an observer of a run that has ended."""
        from pytest_thermal.reporting.gate_document import Circumstances

        commit, modified = checkout
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

    def write(self, document: Mapping[str, Any]) -> None:
        """Write, without keys.

        Raises:
            OSError: it cannot be written.
        """
        from pytest_thermal.bench import Redactor
        from pytest_thermal.recording.layout import write_atomically
        from pytest_thermal.reporting.gate_document import as_text

        active = self._config.stash.get(ACTIVE_BENCH, None)
        redactor = active.redactor if active is not None else Redactor()
        clean: Any = redactor.data(dict(document))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, as_text(clean).encode("utf-8", "replace"))


def forget_earlier_answer(config: pytest.Config) -> None:
    """Before any option is read: where this command line asks for the gate, an earlier answer ends here.

    What cannot be written is told later, by whoever writes the file next.
    """
    words = set(_words(config))
    if not words & _ASKS or words & _STOPS or "PYTEST_XDIST_WORKER" in os.environ:
        return
    file = GateFile(config)
    try:
        file.say(REFUSED)
    except OSError:
        with contextlib.suppress(OSError):
            file.path.unlink(missing_ok=True)


def _words(config: pytest.Config) -> Iterator[str]:
    """All that pytest is about to read as its command line."""
    given: list[str] = [*map(str, config.invocation_params.args)]
    with contextlib.suppress(ValueError):
        given += shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    with contextlib.suppress(Exception):  # before the ini file is read there is none to ask
        given += config.getini("addopts")
    yield from _expanded(given, config.invocation_params.dir)


def _expanded(words: Sequence[str], folder: Path) -> Iterator[str]:
    """With the lines of each ``@file``, as argparse has it."""
    for word in words:
        if word.startswith("@"):
            with contextlib.suppress(OSError, ValueError):
                yield from _expanded((folder / word[1:]).read_text(encoding="utf-8").splitlines(), folder)
        else:
            yield word.partition("=")[0]
