"""A thermal run that is made now, on the bench."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.model.said import say, words_of
from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import ActiveBench, active_bench
from pytest_thermal.plugin.evidence.node import node_environ, own_node
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.sources import bench_sources
from pytest_thermal.plugin.thermal_checks.metrics import check_metrics, serve_metrics
from pytest_thermal.plugin.thermal_checks.session import STOP_FILE, ThermalEnding, ThermalSession, archive, ending_of

if TYPE_CHECKING:
    from pytest_thermal.experiment import Experiment, LoadPlan, Notice, Plan, Progress, Together
    from pytest_thermal.load import Work
    from pytest_thermal.model.readings import Sensor
    from pytest_thermal.plugin.thermal_checks.live_view import LiveView
    from pytest_thermal.recording import Recording, RunClock
    from pytest_thermal.reporting.live_metrics import Endpoint

WAY_IN = ("name", "connection", "tls", "http", "key", "models", "chat")
"""From outside in: the first that is not good is the one to tell of."""


class LiveSession(ThermalSession):
    """A run that is made now."""

    def __init__(self, config: pytest.Config) -> None:
        self._active = active_bench(config)
        super().__init__(config, demo=self._active.bench.demo)
        self._together = _together(config)
        self.plan = _plan(config, self._active, self._together)
        # A slip in one of these ends the run now, and not after an hour.
        _accelerator_command(config)
        _check_against(config)
        check_metrics(config)
        self._experiment: Experiment | None = None
        self._view: LiveView | None = None
        self._metrics: Endpoint | None = None
        self._closed = False

    @property
    def phases(self) -> Sequence[str]:
        """Of its plan."""
        return self.plan.names

    @property
    def sensors(self) -> Sequence[Sensor]:
        """What was discovered."""
        from pytest_thermal.plugin.thermal_checks.shared_discovery import discovered

        return discovered(self.config)

    @property
    def path(self) -> Path | None:
        """The run directory, once there is one."""
        return self._experiment.run if self._experiment is not None else None

    @property
    def inference(self) -> bool:
        """By the bench's mode."""
        return self._active.bench.stress.mode in ("inference", "mixed")

    def state(self) -> object:
        """Which phases are done."""
        return None if self._experiment is None else (self._experiment.done, self._experiment.finished)

    def ensure(self, phase: str) -> None:
        """Go through the phases up to this one.

        Raises:
            ExperimentBrokenError: the bench could not be brought there.
        """
        try:
            self.experiment().ensure(phase)
        finally:
            if self._view is not None:
                self._view.pause()

    def broken(self) -> str:
        """What ended the experiment."""
        error = self._experiment.broken if self._experiment is not None else None
        return "" if error is None else error.message

    def recording(self) -> Recording:
        """Read from the run directory."""
        from pytest_thermal.recording import read_run

        run = self.experiment().run
        if run is None:
            raise self.experiment().broken or RuntimeError(say("no phase was gone through"))
        return read_run(run)

    def experiment(self) -> Experiment:
        """The experiment, made when first asked for."""
        if self._experiment is None:
            from pytest_thermal.experiment import Experiment, lock_folder
            from pytest_thermal.plugin.thermal_checks.live_view import live_view
            from pytest_thermal.plugin.thermal_checks.termination import end_on_signals

            self._active.start()
            self._view = live_view(self.config)
            self._experiment = Experiment(
                bench=self._active.bench,
                plan=self.plan,
                sources=bench_sources(self.config),
                loads=_load_plan(self.config, self._active),
                archive=archive(self.config),
                environ=self._active.environ,
                locks=lock_folder(node_environ(self.config)),
                tell=self._told,
                preflight=self._preflight if self.inference else None,
                facts=_metadata(self.config),
                node=own_node(self.config),
                together=self._together,
            )
            self.config.add_cleanup(end_on_signals())
            self._metrics = serve_metrics(
                self.config, bench=self._active.bench, run=lambda: self.path, tell=self._view.tell
            )
        return self._experiment

    def close(self, because: str = "done") -> None:
        """Take the load off and end the recording."""
        if self._experiment is None or self._closed:
            return
        self._closed = True
        self._experiment.close(because)
        if self._metrics is not None:
            self._metrics.close()
        if self._view is not None:
            self._view.close()

    def conclude(self, *, interrupted: bool) -> None:
        """End the run, write its summary and its page; one that was interrupted gets its page, and no summary."""
        from pytest_thermal.findings import finding_as_json
        from pytest_thermal.recording import RecordingError, write_summary

        self.close("interrupted" if interrupted else "done")
        run = self.path
        if run is None:
            return
        try:
            if interrupted:  # what it concludes is no verdict on the bench, so it is not sealed with the run
                self._write_page(self.judgement().summary(), judged_now=True)
                return
            more = self.third_parties()
            self.noted += more
            summary = self.judgement().summary()
            summary["findings"] += [finding_as_json(found) for found in more]
            write_summary(run, summary)
        except RecordingError as error:
            self._warn(error.message)
            return
        self._write_page(summary)
        self._write_history()

    def _write_page(self, summary: Mapping[str, Any], *, judged_now: bool = False) -> None:
        """The page is a view of what is kept already: whatever it runs into, the run stands."""
        from pytest_thermal.bench import Redactor
        from pytest_thermal.reporting.run_page import judged_subject, write_page

        redactor = Redactor(self._active.bench.secrets())
        try:
            subject = judged_subject(
                self.judgement().recording, summary, judged_now=judged_now, told=catalogue(self.config)
            )
            self.report = write_page(subject, redact=redactor.text)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - it must not take the run's findings along
            self._warn(
                say(
                    "the run's report.html could not be written: {name}: {error}\ntry: python -m "
                    "pytest_thermal.reporting.run_page {path} --out FILE",
                    name=type(error).__name__,
                    error=error,
                    path=self.path,
                )
            )

    def _write_history(self) -> None:
        """All runs of the archive beside this one: a view too."""
        from pytest_thermal.bench import Redactor
        from pytest_thermal.reporting.history import history_file, read_archive, write_history

        runs = archive(self.config)
        try:
            redact = Redactor(self._active.bench.secrets()).text
            self.history = write_history(
                read_archive(runs), history_file(runs), redact=redact, told=catalogue(self.config)
            )
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - see above
            self._warn(
                say(
                    "the bench's history.html could not be written: {name}: {error}\ntry: python -m "
                    "pytest_thermal.reporting.history {runs} --out FILE",
                    name=type(error).__name__,
                    error=error,
                    runs=runs,
                )
            )

    def _warn(self, text: str) -> None:
        self.config.issue_config_time_warning(
            pytest.PytestWarning(catalogue(self.config)(say("thermal: {text}", text=text))), stacklevel=3
        )

    def ending(self, node: str) -> ThermalEnding | None:
        """What to tell of this run."""
        if self._experiment is None:
            return None
        return ending_of(self, node, self.header())

    def _told(self, news: Progress | Notice) -> None:
        """From the experiment: show it; and see whether the session that this xdist worker belongs to is over."""
        if self._view is not None:
            self._view.tell(news)
        worker = getattr(self.config, "workerinput", {})
        folder = worker.get("thermal_folder")
        if folder is None or self._experiment is None or not Path(folder).is_dir():
            return  # no worker, or one on another machine
        if (Path(folder) / STOP_FILE).exists():
            self._experiment.abandon(say("another test failed, and the session ends with that"))
        elif os.getppid() != worker.get("thermal_controller"):
            self._experiment.abandon(say("the pytest that this worker belongs to is gone"), orphaned=True)

    def _preflight(self) -> None:
        """The way in must be good before an hour is spent on it."""
        from pytest_thermal.experiment import ExperimentBrokenError
        from pytest_thermal.model import Outcome
        from pytest_thermal.plugin.access_checks.session import access_session

        access = access_session(self.config)
        for domain in self._active.bench.domains:
            for check in WAY_IN:
                found = access.finding(domain.name, check)
                if found.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.BLOCKED):
                    raise ExperimentBrokenError(
                        say(
                            "the way in to {domain_name} is not good: {layer}: {seen}",
                            domain_name=domain.name,
                            layer=found.layer,
                            seen=found.seen,
                        ),
                        likely=found.likely,
                        remedy=found.advice or say("pytest suites/supernode"),
                        phase="preflight",
                    )


def _together(config: pytest.Config) -> Together | None:
    """The other nodes of this run: by `--nodes`, else those of the Slurm step that this process is a task of."""
    from pytest_thermal.experiment import Together, slurm_step
    from pytest_thermal.experiment.together import WAIT_SECONDS

    node = own_node(config)
    folder = options.value(config, "together")
    given = options.value(config, "nodes")
    try:
        step = slurm_step(os.environ)
    except ValueError as error:
        raise pytest.UsageError(
            say("$SLURM_STEP_NODELIST: {error}\ntry: --nodes with their number", error=words_of(error))
        ) from None
    if given is None and step is not None:
        # By names only where this node goes by Slurm's.
        given = (len(step.nodes), step.nodes if node in step.nodes else ())
    if given is None and folder is not None:
        raise pytest.UsageError(
            say(
                "--together {folder}: how many nodes meet there is not known\n"
                "likely: this is no task of a Slurm step, which would tell\n"
                "try: --nodes with their number, or their names",
                folder=folder,
            )
        )
    if given is None or given[0] == 1:
        return None
    count, names = given
    if names and node not in names:
        raise pytest.UsageError(
            say(
                "--nodes {names}: this node is called {node}, which is none of these\n"
                "likely: its host's name is another\ntry: $THERMAL_NODE with the name that it goes by here",
                names=",".join(names[:8]),
                node=node,
            )
        )
    if folder is not None:
        meeting_place = config.invocation_params.dir / Path(folder).expanduser()
    elif step is not None:
        meeting_place = archive(config) / ".together" / step.name
    else:
        raise pytest.UsageError(
            say(
                "--nodes {count}: where these nodes meet is not known\n"
                "try: --together with a folder that all of them see, a new one for each run",
                count=count,
            )
        )
    wait_seconds = options.value(config, "together-wait")
    return Together(
        meeting_place,
        node=node,
        count=count,
        names=names,
        wait_seconds=WAIT_SECONDS if wait_seconds is None else wait_seconds,
    )


def _plan(config: pytest.Config, active: ActiveBench, together: Together | None) -> Plan:
    from pytest_thermal.experiment import PlanError, plan_for

    given = {
        name: (seconds, f"command line --{option}")
        for name, option in (("baseline", "baseline"), ("limit", "limit-duration"), ("cooldown", "cooldown"))
        if (seconds := options.value(config, option)) is not None
    }
    try:
        return plan_for(
            active.bench,
            given,
            with_limit=bool(options.value(config, "limit-phase")) or "limit" in given,
            wait_seconds=0.0 if together is None else together.wait_seconds,
        )
    except PlanError as error:
        raise pytest.UsageError(*error.args) from None


def _load_plan(config: pytest.Config, active: ActiveBench) -> LoadPlan:
    from pytest_thermal.experiment import LoadPlan
    from pytest_thermal.load import plan_works

    command = _accelerator_command(config)
    profile = options.value(config, "load-profile") or "chat"
    rate = options.value(config, "request-rate")
    bench = active.bench

    def works(run: Path, clock: RunClock, limit_seconds: float) -> tuple[Sequence[Work], Sequence[str]]:
        found, notes = plan_works(
            bench,
            run=run,
            clock=clock,
            limit_seconds=limit_seconds,
            environ=active.load_environ,
            accelerator_command=command,
            profile=profile,
            rate=rate,
        )
        for more in config.hook.pytest_thermal_loads(config=config, bench=bench, limit_seconds=limit_seconds):
            found += _only_works(more or ())
        return found, notes

    def limit_works(_run: Path, _clock: RunClock, limit_seconds: float) -> tuple[Sequence[Work], Sequence[str]]:
        from pytest_thermal.load import burn_works

        found, why_not = burn_works(
            bench, limit_seconds=limit_seconds, environ=active.load_environ, accelerator_command=command
        )
        return found, [why_not] if why_not else []

    stress = bench.stress
    facts: Mapping[str, Any] = {
        "mode": stress.mode,
        "cpu_workers": stress.cpu_workers,
        "gpu_workers": stress.gpu_workers,
        "concurrent_requests": stress.concurrent_requests if rate is None else None,
        "request_interval_seconds": stress.request_interval_seconds if rate is None else None,
        "requests_per_second": rate,
        "inference_ratio": stress.inference_ratio if stress.mode == "mixed" else None,
        "profile": profile,
        "max_tokens": bench.inference.max_tokens,
        "stream": bench.inference.stream,
        "accelerator_command": command,
    }
    return LoadPlan(works=works, limit_works=limit_works, facts=facts)


def _only_works(given: object) -> list[Work]:
    from pytest_thermal.experiment import ExperimentBrokenError
    from pytest_thermal.load import Work

    if not isinstance(given, list | tuple) or not all(isinstance(work, Work) for work in given):
        raise ExperimentBrokenError(
            say(
                "the hook pytest_thermal_loads gave {given!r:.80}, and not a list of pytest_thermal.load.Work",
                given=given,
            ),
            likely=say("a conftest.py or plugin of yours"),
            remedy=say("return [Work(kind=…, tool=…, command=(…), limit_seconds=limit_seconds)]"),
        )
    return list(given)


def _check_against(config: pytest.Config) -> None:
    given = options.value(config, "against")
    if given in (None, "latest", "none"):
        return
    if not (archive(config) / given).exists() and not (config.invocation_params.dir / given).exists():
        raise pytest.UsageError(
            say(
                "--against {given}: there is no such run in {archive}, and no such path\nlikely: a slip "
                "in its name\ntry: the name of a run directory, latest, or none",
                given=given,
                archive=archive(config),
            )
        )


def _accelerator_command(config: pytest.Config) -> str | None:
    command: str | None = options.value(config, "accelerator-cmd")
    try:
        shlex.split(command or "")
    except ValueError as error:
        raise pytest.UsageError(
            say("--accelerator-cmd {command}: {error}\ntry: close its quotes", command=command, error=error)
        ) from None
    return command


def _metadata(config: pytest.Config) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    config.hook.pytest_thermal_metadata(config=config, metadata=metadata)
    return {
        "metadata": {
            name: value if isinstance(value, (int, float, bool)) else str(value) for name, value in metadata.items()
        }
    }
