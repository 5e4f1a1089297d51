"""The experiment as a state machine: whoever needs a phase asks for it, and what leads there is run once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_thermal.bench import Bench, Redactor
from pytest_thermal.experiment.errors import ExperimentBrokenError
from pytest_thermal.experiment.idle import WAITS_SECONDS, IdleCheck, busiest_processes
from pytest_thermal.experiment.lock import BenchLock
from pytest_thermal.experiment.plan import Plan
from pytest_thermal.experiment.progress import Notice, Progress
from pytest_thermal.experiment.together import Together
from pytest_thermal.experiment.watcher import DISK_PATIENCE_SECONDS, Watcher
from pytest_thermal.load import LoadError, Loads, Work
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.phases import LOADED_PHASES
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.recording import (
    Offer,
    RecorderError,
    RecordingError,
    RunClock,
    RunningRecorder,
    SourceOrder,
    copied_settings,
    create_run,
    start_recorder,
)
from pytest_thermal.recording.layout import read_run_json
from pytest_thermal.recording.room import free_bytes, needed_bytes

if TYPE_CHECKING:
    from pytest_thermal.model import Sensor
    from pytest_thermal.sensors import SourceSpec

_LOOK_SECONDS = 0.2
_READY_SECONDS = 90.0
_NOTED_SECONDS, _NOTED_LOOK_SECONDS = 30.0, 0.02
FIRST_ANSWER_SECONDS = 30.0
"""Since the load's start: until then a request may be without its answer, however short the ramp is."""
_MARGIN_SECONDS = 120.0
"""What a load may outlive its plan by on its own, should everything that takes it off have died."""


@dataclass(frozen=True, kw_only=True)
class PhaseRecord:
    """A phase that was gone through."""

    name: str
    planned_seconds: float
    start_seconds: float
    """Unix time by the run's clock."""
    end_seconds: float
    loads: tuple[str, ...] = ()
    """What made the heat in it."""


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """How to make the loads of a run, once its folder and clock are known."""

    works: Callable[[Path, RunClock, float], tuple[Sequence[Work], Sequence[str]]]
    """(run, clock, limit_seconds) → what runs from ramp to the end of the load, and notes on what does not."""
    limit_works: Callable[[Path, RunClock, float], tuple[Sequence[Work], Sequence[str]]] | None = None
    """What comes on top in the limit phase."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Kind and parameters, for ``run.json``: what makes runs comparable."""


class Experiment:
    """One run of the phases on one bench.

    ``ensure`` runs what is missing up to a phase; the first failure breaks the experiment for good. A thread watches
    sensors and loads from the first phase to ``close``, also while tests judge in between.
    """

    def __init__(
        self,
        *,
        bench: Bench,
        plan: Plan,
        sources: Sequence[SourceSpec],
        loads: LoadPlan,
        archive: Path,
        environ: Mapping[str, str],
        locks: Path,
        tell: Callable[[Progress | Notice], None],
        preflight: Callable[[], None] | None = None,
        facts: Mapping[str, Any] | None = None,
        node: str | None = None,
        together: Together | None = None,
    ) -> None:
        self.bench = bench
        self.plan = plan
        self._sources = tuple(sources)
        self._load_plan = loads
        self._archive = archive
        self._environ = environ
        self._lock = BenchLock(locks, what=f"bench {bench.name}")
        self._tell = tell
        self._preflight = preflight
        self._facts = dict(facts or {})
        self._node = node
        self._together = together
        self._met: dict[str, dict[str, Any]] = {}
        self._redactor = Redactor(bench.secrets())
        self._stack = contextlib.ExitStack()
        self._records: dict[str, PhaseRecord] = {}
        self._broken: ExperimentBrokenError | None = None
        self._stop = threading.Event()
        self._why_stopped = say("stopped before its end")
        self._run: Path | None = None
        self._recorder: RunningRecorder | None = None
        self._watcher: Watcher | None = None
        self._loads: Loads | None = None
        self._phase: tuple[str, float] | None = None
        self._works: list[Work] = []
        self._closed = False
        self._orphaned = False
        self._because = "done"

    # ------------------------------------------------------------------------------------------------- asked by tests

    @property
    def run(self) -> Path | None:
        """The run directory, once there is one."""
        return self._run

    @property
    def broken(self) -> ExperimentBrokenError | None:
        """What ended it, if anything did."""
        return self._broken

    @property
    def done(self) -> tuple[str, ...]:
        """The phases gone through so far."""
        return tuple(self._records)

    @property
    def finished(self) -> bool:
        """Whether the recording has ended."""
        return self._closed

    def ensure(self, phase: str) -> PhaseRecord:
        """Go through the phases up to this one, those that are missing.

        Raises:
            ExperimentBrokenError: The bench could not be brought there, now or earlier.
            PlanError: The plan has no such phase.
        """
        for name in self.plan.until(phase):
            if name not in self._records:
                if self._broken is not None:
                    raise self._broken
                if self._closed:
                    raise ExperimentBrokenError(
                        say("the run has ended, and its {name} was not gone through", name=name),
                        remedy=say("ask for it in a test, while the run goes on"),
                    )
                self._go_through(name)
        return self._records[phase]

    def stop(self) -> None:
        """Ask a phase that is under way to end: from another thread, or from a signal handler."""
        self._stop.set()

    def abandon(self, because: str, *, orphaned: bool = False) -> None:
        """Take the load off at once and end the phase that is under way: from another thread.

        ``orphaned`` where whoever wanted the run is gone: it is then cut off.
        """
        self._why_stopped = because
        self._orphaned = orphaned
        self._stop.set()
        self._end_loads(because)

    def close(self, because: str = "done") -> None:
        """Take the load off, end the recording, give the machine back. Never raises, and may be called twice."""
        if self._closed:
            return
        self._closed = True
        if set(self.plan.names) - set(self._records):
            because = say(
                "{because}; phases gone through: {names}",
                because=because,
                names=joined(", ", self._records) or say("none"),
            )
        self._because = self._redactor.text(because)
        self._stack.close()

    # ---------------------------------------------------------------------------------------------------- the machine

    def _go_through(self, name: str) -> None:
        try:
            if self._recorder is None:
                self._begin()
            self._records[name] = self._one_phase(name)
        except ExperimentBrokenError as error:
            self._break(error, name)
        except (RecordingError, LoadError) as error:
            self._break(ExperimentBrokenError(error.seen, likely=error.likely, remedy=error.remedy, phase=name), name)
        except BaseException as error:  # Ctrl-C, a timeout of pytest's: a phase that was left cannot be gone on with
            why = say("interrupted by {name}", name=type(error).__name__)
            self._broken = ExperimentBrokenError(why, remedy=say("run it again; what was recorded is kept"), phase=name)
            self.close(why)
            raise
        if name == self.plan.names[-1]:
            self.close()

    def _break(self, error: ExperimentBrokenError, phase: str) -> None:
        text = self._redactor.text(str(error))
        self._broken = error
        if self._recorder is not None:
            with contextlib.suppress(RecorderError):
                self._recorder.event("broken", text=text, phase=phase)
        self.close(say("broken: {seen}", seen=error.seen))
        raise error

    def _begin(self) -> None:
        """Lock, run directory, recorder, watcher; then the idle check."""
        self._lock.acquire()
        self._stack.callback(self._lock.release)
        offsets = self._come_together()
        if self._preflight is not None:
            self._preflight()
        clock = RunClock.start()
        self._run = run = create_run(
            self._archive,
            facts=self._run_facts(),
            settings=copied_settings(self.bench),
            clock=clock,
            node=self._node,
            clock_offsets=offsets,
        )
        self._recorder = recorder = start_recorder(
            run,
            sources=[SourceOrder(source=source) for source in self._sources],
            period_seconds=self.plan.period_seconds,
            secrets=self.bench.secrets(),
            environ=self._environ,
            limit_seconds=self.plan.timeout_seconds + _MARGIN_SECONDS,
        )
        self._stack.callback(self._end_recording)
        offers = recorder.wait_ready(_READY_SECONDS)
        sensors = [sensor for offer in offers.values() for sensor in offer.sensors]
        if not sensors:
            raise _no_sensors(offers)
        self._check_room(len(sensors))
        late = why_late(offers)
        if late and not self.bench.demo:
            self._notice(late, "note")
        self._loads = loads = Loads()
        self._stack.callback(self._end_loads)
        self._watcher = Watcher(
            run=run, recorder=recorder, loads=loads, sensors=sensors, bench=self.bench, plan=self.plan, tell=self._tell
        )
        self._watcher.start()
        self._stack.callback(self._watcher.stop)
        self._check_sight(sensors)
        self._wait_until_idle(sensors)

    def _run_facts(self) -> dict[str, Any]:
        bench = self.bench
        facts: dict[str, Any] = cast(
            "dict[str, Any]",
            self._redactor.data(
                {
                    "bench": bench.name,
                    "simulated": bench.demo,
                    "time_scale": self.plan.time_scale,
                    "plan": {
                        "seconds": dict(self.plan.seconds),
                        "origins": dict(self.plan.origins),
                        "period_seconds": self.plan.period_seconds,
                    },
                    "load": dict(self._load_plan.facts),
                    "monitor": bench.monitor.model_dump(mode="json"),
                    "monitor_origins": {
                        name: origin for name, origin in bench.origins.items() if name.startswith("monitor.")
                    },
                    "gateways": {domain.name: domain.base_url for domain in bench.domains},
                    **self._facts,
                }
            ),
        )
        return facts

    def _check_sight(self, sensors: Sequence[Sensor]) -> None:
        """What the bench file counts on must be seen before anything is loaded."""
        monitor = self.bench.monitor
        kinds = {kind_of(sensor.device) for sensor in sensors if sensor.unit is Unit.CELSIUS}
        for setting, kind, value in (
            ("critical_threshold_cpu", Kind.CPU, monitor.critical_threshold_cpu_celsius),
            ("critical_threshold_gpu", Kind.ACCELERATOR, monitor.critical_threshold_gpu_celsius),
        ):
            if value is not None and kind not in kinds:
                raise ExperimentBrokenError(
                    say(
                        "{setting} is set, and no temperature of that kind is measured: it would protect nothing",
                        setting=setting,
                    ),
                    likely=say("a driver is missing, or the bench file is another machine's"),
                    remedy=say("pytest --sensors says why for each source; remove the setting to go without it"),
                )
        cards = {sensor.device for sensor in sensors if kind_of(sensor.device) is Kind.ACCELERATOR}
        wanted = monitor.gpu_indices
        if wanted is not None and len(cards) < len(wanted):
            raise ExperimentBrokenError(
                say(
                    "gpu_indices names {count} accelerators, and {count_2} can be measured",
                    count=len(wanted),
                    count_2=len(cards),
                )
                + (say(": {names}", names=joined(", ", sorted(cards))) if cards else ""),
                likely=say("a card is lost, its driver is missing, or the bench file is another machine's"),
                remedy=say("pytest --sensors says why for each source"),
            )

    def _check_room(self, sensors: int) -> None:
        """A disk that will be full before the end is full enough to say so now."""
        plan = self.plan
        free = free_bytes(self._archive)
        needed = needed_bytes(
            seconds=plan.timeout_seconds if plan.time_scale == 1 else plan.total_seconds,
            period_seconds=plan.period_seconds,
            sensors=sensors,
        )
        if free is not None and free < needed:
            raise ExperimentBrokenError(
                say(
                    "the disk of {archive} has {free:,.0f} MB left, and this run may need {needed:,.0f} MB",
                    archive=self._archive,
                    free=free / 1e6,
                    needed=needed / 1e6,
                ),
                likely=say("the disk is full"),
                remedy=say("remove what is not needed there, or --runs DIR on another disk"),
            )

    # ------------------------------------------------------------------------------------------------ the other nodes

    def _come_together(self) -> Mapping[str, Any] | None:
        together = self._together
        if together is None:
            return None
        together.begin()
        self._stack.callback(self._leave_the_others)
        clock = together.clock
        if clock is None:
            return None
        return {"shared_disk": {"offset_seconds": clock.offset_seconds, "within_seconds": clock.within_seconds}}

    def _leave_the_others(self) -> None:
        if self._together is not None:
            unfinished = set(self.plan.names) - set(self._records)
            self._together.leave(self._because if unfinished else "")

    def _wait_for_the_others(self, phase: str) -> None:
        together = self._together
        if together is None:
            return
        meeting = together.meet(phase, pause=self._pause, tell=lambda text: self._notice(text, "together"))
        self._met[phase] = {
            "waited_seconds": meeting.waited_seconds,
            "nodes": list(meeting.here),
            "missing": [*meeting.missing, *meeting.left],
        }
        self._recording().event("together", what="entered", phase=phase, text=meeting.text, **self._met[phase])
        self._keep_met()
        if meeting.text:
            self._tell(Notice(text=self._redactor.text(meeting.text), kind="warning"))

    def _note_starts(self, phase: str) -> None:
        """By how much the nodes began a phase at different times, once it is over."""
        if self._together is None or phase not in self._met:
            return
        starts = self._together.starts(phase)
        self._met[phase] |= {"starts_seconds": dict(starts.seconds), "starts_differ_seconds": starts.differ_seconds}
        self._recording().event(
            "together",
            what="starts",
            phase=phase,
            starts_seconds=dict(starts.seconds),
            differ_seconds=starts.differ_seconds,
            text=starts.why_not,
        )
        self._keep_met()

    def _keep_met(self) -> None:
        together = self._together
        if together is not None:
            self._recording().add_facts(
                together={
                    "node": together.node,
                    "count": together.count,
                    "names": list(together.names),
                    "wait_seconds": together.wait_seconds,
                    "phases": self._met,
                }
            )

    # --------------------------------------------------------------------------------------------------------- phases

    def _wait_until_idle(self, sensors: Sequence[Sensor]) -> None:
        check = IdleCheck(sensors, time_scale=self.plan.time_scale)
        if not check.possible:
            self._notice(say("no device tells its utilisation: whether the bench is idle is not known"), "warning")
            return
        watcher = self._watched()
        watcher.listen(check.add)
        deadline = time.monotonic() + WAITS_SECONDS
        told = False
        try:
            while not (check.answered() and not check.busy()):
                self._pause(_LOOK_SECONDS)
                busy = check.busy()
                if busy and not told and check.answered():
                    told = True
                    self._notice(say("waiting for the bench to be idle: {spoken}", spoken=_spoken(busy)), "warning")
                if time.monotonic() > deadline:
                    silent = check.silent()
                    if busy or not check.heard:
                        raise self._not_idle(check)
                    self._notice(
                        say("whether these are idle is not known: {names}", names=joined(", ", silent)), "warning"
                    )
                    break
        finally:
            watcher.unlisten(check.add)

    def _not_idle(self, check: IdleCheck) -> ExperimentBrokenError:
        busy = check.busy()
        if not busy:
            return ExperimentBrokenError(
                say(
                    "no utilisation was read for {waits_seconds:.0f} s, so whether the bench is idle is not known",
                    waits_seconds=WAITS_SECONDS,
                ),
                likely=say("the tool that tells it hangs"),
                remedy=say("pytest --sensors"),
            )
        processes = busiest_processes()
        who = joined(", ", (process.text for process in processes)) or say(
            "a process on the accelerator, or of a container"
        )
        return ExperimentBrokenError(
            say(
                "the bench is not idle after waiting for {waits_seconds:.0f} s: {spoken}",
                waits_seconds=WAITS_SECONDS,
                spoken=_spoken(busy),
            ),
            likely=say("something else runs on it: {who}", who=who),
            remedy=say("end it, or wait for it; a baseline under load would make every rise too small"),
        )

    def _one_phase(self, name: str) -> PhaseRecord:
        recorder = self._recording()
        seconds = self.plan.seconds[name]
        if self._phase is None or self._phase[0] != name:
            self._enter(name)
        if name == "ramp":
            self._load_up(self._load_plan.works, self.plan.loaded_most_seconds)
        elif name == "limit" and self._load_plan.limit_works is not None:
            self._load_up(self._load_plan.limit_works, seconds + self.plan.wait_seconds)
        _, start_seconds = self._phase or (name, recorder.clock.now())
        while (left_seconds := start_seconds + seconds - recorder.clock.now()) > 0:
            self._pause(min(_LOOK_SECONDS, left_seconds))
            if name == "ramp":
                self._check_loads(name)
        if name == "ramp":
            self._wait_for_answers(name, start_seconds)
            self._check_requests(name)
        self._note_starts(name)
        names = self.plan.names
        following = names[names.index(name) + 1] if name != names[-1] else None
        if name in LOADED_PHASES and following not in LOADED_PHASES:
            # The cooldown begins with the load's end, not when somebody asks for it.
            end_seconds = self._enter(following)
            self._end_loads(say("end of {name}", name=name))
        elif following is not None and name in LOADED_PHASES:
            end_seconds = self._enter(following)
        else:
            end_seconds = self._enter(None)
        self._wait_until_noted(name)
        return PhaseRecord(
            name=name,
            planned_seconds=seconds,
            start_seconds=start_seconds,
            end_seconds=end_seconds,
            loads=tuple(work.tool for work in self._works) if name in LOADED_PHASES else (),
        )

    def _wait_until_noted(self, name: str) -> None:
        """The recorder writes ``run.json`` when its disk lets it; who judges the phase now should find its end."""
        deadline = time.monotonic() + _NOTED_SECONDS
        while time.monotonic() < deadline:
            told = read_run_json(self._recording().run).get("phases", [])
            if any(phase["name"] == name and phase["end_seconds"] is not None for phase in told):
                return
            self._pause(_NOTED_LOOK_SECONDS)

    def _enter(self, name: str | None) -> float:
        if name is not None:
            self._wait_for_the_others(name)
        began_seconds = self._recording().phase(name)
        if name is not None and self._together is not None:
            self._together.entered(name)
        self._phase = None if name is None else (name, began_seconds)
        self._watched().enter(name, began_seconds)
        if name in LOADED_PHASES:  # what is still asked while the load goes belongs to the phase before
            self._loaded().phase(name)
        return began_seconds

    def _load_up(
        self, make: Callable[[Path, RunClock, float], tuple[Sequence[Work], Sequence[str]]], seconds: float
    ) -> None:
        recorder, loads = self._recording(), self._loaded()
        works, notes = make(recorder.run, recorder.clock, seconds + _MARGIN_SECONDS)
        for note in notes:
            self._notice(note, "note")
        if not works and not self._works:
            raise ExperimentBrokenError(
                say(
                    "there is nothing to load this bench with: {names}",
                    names=joined("; ", notes) or say("no load is planned"),
                ),
                likely=say("[stress] mode asks for what this machine does not have"),
                remedy=say("another mode, or --accelerator-cmd with a command that burns the accelerators"),
                phase=self._phase[0] if self._phase else "",
            )
        phase = self._phase[0] if self._phase else ""
        watcher = self._watched()
        for work in works:
            if watcher.critical():
                self._notice(
                    say("{tool} stays off: {critical}", tool=work.tool, critical=watcher.critical()), "critical"
                )
                continue
            loads.add(work)
            if watcher.critical():  # it came up while the others were taken off
                loads.stop()
            self._works.append(work)
            recorder.event("load", what="started", load=work.kind, tool=work.tool, phase=phase, notes=list(work.notes))
            for note in work.notes:
                self._notice(note, "note")
        loads.phase(phase)
        recorder.add_facts(works=[{"kind": w.kind, "tool": w.tool, "notes": list(w.notes)} for w in self._works])

    def _check_loads(self, phase: str) -> None:
        lost = self._watched().lost_loads
        if lost:
            name, ended = lost[0]
            raise ExperimentBrokenError(
                say("the {name} load was lost: {ended}", name=name, ended=ended),
                likely=say("its tool cannot run here, or it was ended by somebody"),
                remedy=say("run it by hand and read what it says; the run directory's events.jsonl has its last words"),
                phase=phase,
            )

    def _wait_for_answers(self, phase: str, start_seconds: float) -> None:
        """A ramp that is shorter than the load generator takes to come up lasts until its first answer."""
        last_seconds = start_seconds + FIRST_ANSWER_SECONDS
        clock = self._recording().clock
        while clock.now() < last_seconds and any(
            work.kind == "inference" and status.alive and status.requests == 0
            for work, status in self._loaded().statuses()
        ):
            self._pause(_LOOK_SECONDS)
            self._check_loads(phase)

    def _check_requests(self, phase: str) -> None:
        """At the end of the ramp: an inference load that nobody answers is none."""
        for work, status in self._loaded().statuses():
            if work.kind != "inference" or status.ok > 0:
                continue
            if status.requests:
                worst = max(status.errors, key=lambda text: status.errors[text], default=say("no answer"))
                what = say(
                    "none of {requests} inference requests succeeded: {worst}", requests=status.requests, worst=worst
                )
                likely = say("the key, the model or the gateway; the load would not be one")
            elif status.in_flight:
                seconds = max(self.plan.seconds[phase], FIRST_ANSWER_SECONDS)
                what = say(
                    "none of {in_flight} inference requests was answered within {seconds:g} s",
                    in_flight=status.in_flight,
                    seconds=seconds,
                )
                likely = say("the gateway hangs, or the model is slower than the ramp is long")
            else:
                what = say("no inference request was made: {status}", status=status.text)
                likely = say("the load generator does not come up on this machine")
            raise ExperimentBrokenError(
                what,
                likely=likely,
                remedy=say("pytest suites/supernode says at which layer; a longer --ramp for a model that is so slow"),
                phase=phase,
            )

    def _pause(self, seconds: float) -> None:
        """Wait, and give up where there is nothing left to wait for."""
        self._stop.wait(seconds)
        if self._stop.is_set():
            raise ExperimentBrokenError(self._why_stopped, remedy=say("run it again; what was recorded is kept"))
        watcher = self._watcher
        if watcher is not None and watcher.failure:
            raise ExperimentBrokenError(
                say("what watches over the load failed: {failure}", failure=watcher.failure),
                likely=say("a fault of this plugin, or a disk that gives back what was not written"),
                remedy=say("run it again; the load was taken off"),
            )
        if watcher is not None and (watcher.disk_failure or self._is_stuck(watcher)):
            raise ExperimentBrokenError(
                watcher.disk_failure
                or say("the disk did not answer for {seconds:.0f} s", seconds=watcher.silent_seconds),
                likely=say("the disk of {archive} is full, or hangs", archive=self._archive),
                remedy=say(
                    "make room, and run it again; what was recorded until then is kept, and the load was taken off"
                ),
                phase=self._phase[0] if self._phase else "",
            )
        recorder = self._recording()
        if not recorder.alive:
            ended = recorder.stop()
            raise ExperimentBrokenError(
                ended.because,
                likely=say("it was killed, or the machine ran out of memory"),
                remedy=say("the run is readable up to its last tick: --replay {run}", run=self._run),
                phase=self._phase[0] if self._phase else "",
            )

    def _is_stuck(self, watcher: Watcher) -> bool:
        """Whether nobody watches, since the disk hangs; not where this whole process was stopped for a while."""
        if watcher.silent_seconds <= DISK_PATIENCE_SECONDS:
            return False
        self._stop.wait(2.0)
        return watcher.silent_seconds > DISK_PATIENCE_SECONDS

    def _end_loads(self, because: str = say("the run ends")) -> None:
        if self._loads is None:
            return
        for work, ended in self._loads.stop():
            if self._recorder is not None:
                with contextlib.suppress(RecorderError):
                    self._recorder.event("load", what="stopped", load=work.kind, because=because, detail=ended.because)

    def _end_recording(self) -> None:
        if self._recorder is not None:
            self._recorder.stop(self._because, orphaned=self._orphaned)

    def _notice(self, text: str, kind: str) -> None:
        text = self._redactor.text(text)
        if self._recorder is not None:
            with contextlib.suppress(RecorderError):
                self._recorder.event("warning" if kind == "warning" else kind, text=text)
        self._tell(Notice(text=text, kind=kind))

    def _recording(self) -> RunningRecorder:
        return _there(self._recorder)

    def _watched(self) -> Watcher:
        return _there(self._watcher)

    def _loaded(self) -> Loads:
        return _there(self._loads)


_Part = TypeVar("_Part")


def _there(part: _Part | None) -> _Part:
    if part is None:
        raise ExperimentBrokenError(say("the experiment has not begun"))
    return part


def _spoken(busy: Mapping[str, float]) -> str:
    return joined(
        ", ", (say("{device} at {percent:.0f} %", device=device, percent=percent) for device, percent in busy.items())
    )


def why_late(offers: Mapping[str, Offer]) -> str:
    """Why samples may come late beside a load on all cores: they are taken at ordinary priority; empty where not."""
    reasons = [offer.priority for offer in offers.values() if offer.sensors and offer.priority.startswith("default: ")]
    if not reasons:
        return ""
    return say(
        "samples may come tens of milliseconds late under load: {removeprefix}",
        removeprefix=reasons[0].removeprefix("default: "),
    )


def _no_sensors(offers: Mapping[str, Offer]) -> ExperimentBrokenError:
    told = joined(
        "; ",
        (say("{name}: {reason}", name=name, reason=offer.reason) for name, offer in offers.items() if offer.reason),
    )
    return ExperimentBrokenError(
        "no source offers a single sensor: " + told[:400],
        likely=say("this is a virtual machine or a container that hides its hardware, or drivers are missing"),
        remedy=say("pytest --sensors says why for each source; --sysfs DIR where the host's /sys is mounted elsewhere"),
    )
