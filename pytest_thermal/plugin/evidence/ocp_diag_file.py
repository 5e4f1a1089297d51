"""`--ocp-diag FILE`: the findings of this run as OCP Test & Validation output, written once at the end."""

from __future__ import annotations

import importlib.util
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal import __version__
from pytest_thermal.model.said import say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.evidence.node import node_of
from pytest_thermal.plugin.keys import ACTIVE_BENCH

if TYPE_CHECKING:
    from pytest_thermal.plugin.evidence.observing import Observer


class OcpDiagFile:
    """The file of one run."""

    def __init__(
        self,
        config: pytest.Config,
        has: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None,
    ) -> None:
        """Empty the file, so that no earlier run's findings are taken for this one's.

        Raises:
            pytest.UsageError: it cannot be written, or the library is not installed.
        """
        given = Path(options.value(config, "ocp-diag")).expanduser()
        self._config = config
        self._started_seconds = time.time()
        self.path = config.invocation_params.dir / given
        self.trouble = ""
        if not has("ocptv"):
            raise pytest.UsageError(
                say("--ocp-diag needs ocptv, which is not installed\ntry: pip install 'pytest-thermal[ocp]'")
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(b"")
        except OSError as error:
            raise pytest.UsageError(
                say(
                    "--ocp-diag: {path}: cannot be written: {strerror}\ntry: a file in a folder of your own",
                    path=self.path,
                    strerror=error.strerror or error,
                )
            ) from None

    def finish(self, session: pytest.Session, observer: Observer, exitstatus: int) -> None:
        """Write. A file that was asked for and is not there lets the run fail."""
        from pytest_thermal.bench import Redactor
        from pytest_thermal.recording.layout import write_atomically
        from pytest_thermal.reporting.ocp_diag import ocp_lines

        active = self._config.stash.get(ACTIVE_BENCH, None)
        redactor = active.redactor if active is not None else Redactor()
        stopped = exitstatus not in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        )
        try:
            lines = ocp_lines(
                observer.observed(),
                version=__version__,
                host=node_of(self._config),
                command=redactor.text(shlex.join(["pytest", *map(str, self._config.invocation_params.args)])),
                bench=", ".join(dict.fromkeys(str(bench["name"]) for bench in observer.benches)),
                started_seconds=self._started_seconds,
                ended_seconds=time.time(),
                interrupted=(observer.interrupted or f"pytest ended with exit code {int(exitstatus)}")
                if stopped
                else "",
            )
            text = "".join(f"{redactor.text(line)}\n" for line in lines)
            write_atomically(self.path, text.encode("utf-8", "replace"))
        except Exception as error:  # noqa: BLE001 - it must not take the run's other words along
            self.trouble = say(
                "--ocp-diag: {path}: {name}: {error}", path=self.path, name=type(error).__name__, error=error
            )
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def write_summary(self, terminal: Any) -> None:
        """Only what went wrong."""
        if self.trouble:
            terminal.write_line(self.trouble, red=True, bold=True)
