"""What the fixtures `sensors`, `recorder` and `load` hand out, for tests of a user's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin.active_bench import active_bench
from pytest_thermal.plugin.evidence.node import node_environ
from pytest_thermal.plugin.sources import bench_sources
from pytest_thermal.plugin.thermal_checks.shared_discovery import discovered

if TYPE_CHECKING:
    from typing_extensions import Self

    from pytest_thermal.load import Loads, RunningLoad, Work
    from pytest_thermal.model.readings import Reading, Sensor
    from pytest_thermal.recording import Recording
    from pytest_thermal.sensors import Source


class _Closing:
    """Gives back what it took, in reverse."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


class BenchSensors(_Closing):
    """What a bench can measure."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__()
        self._config = config
        self._open: list[Source] = []

    def __iter__(self) -> Iterator[Sensor]:
        return iter(discovered(self._config))

    def __len__(self) -> int:
        return len(discovered(self._config))

    def read(self) -> dict[str, Reading]:
        """One reading of each sensor, by its id: a value, or the reason there is none."""
        if not self._open:
            from pytest_thermal.sensors import discover, open_source

            for spec in discover(bench_sources(self._config)).specs:
                source = open_source(spec)
                self._stack.callback(source.close)
                if source.probe().ok:
                    source.sensors()
                    self._open.append(source)
        return {reading.sensor_id: reading for source in self._open for reading in source.read()}


class OwnRecording:
    """A recording under way, and what it holds once it has ended."""

    def __init__(self, run: Path) -> None:
        self.run = run
        """The run directory."""

    def read(self) -> Recording:
        """What was recorded so far."""
        from pytest_thermal.recording import read_run

        return read_run(self.run)


class RecorderFactory(_Closing):
    """Records stretches of time, each into a run directory of its own below the test's folder."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        super().__init__()
        self._config = config
        self._folder = folder

    @contextlib.contextmanager
    def __call__(self, *, period_seconds: float | None = None) -> Iterator[OwnRecording]:
        """Record every sensor of the bench until the block ends.

        Raises:
            RecordingError: The recorder could not be started, or found no place to write to.
        """
        from pytest_thermal.recording import SourceOrder, create_run, start_recorder

        active = active_bench(self._config)
        bench = active.bench
        run = create_run(self._folder / "runs", facts={"bench": bench.name, "simulated": bench.demo})
        with start_recorder(
            run,
            sources=[SourceOrder(source=source) for source in bench_sources(self._config)],
            period_seconds=period_seconds or bench.monitor.sample_interval_seconds,
            secrets=bench.secrets(),
            environ=active.environ,
        ) as recorder:
            recorder.wait_ready()
            yield OwnRecording(run)


class LoadFactory(_Closing):
    """Loads that are stopped with the test, whatever happens. The first one takes the machine's lock."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        super().__init__()
        self._config = config
        self._folder = folder
        self._loads: Loads | None = None

    def cpu(self, *, workers: int | None = None, limit_seconds: float = 600.0) -> RunningLoad:
        """Burn the CPU, all cores or so many.

        Raises:
            BenchBusyError: Another run loads this machine.
            LoadError: It cannot be started.
        """
        from pytest_thermal.load import cpu_work

        stress = active_bench(self._config).bench.stress
        given = workers if workers is not None else stress.cpu_workers
        return self._start(cpu_work(workers=given, limit_seconds=limit_seconds, environ=self._additions()))

    def accelerator(self, *, command: str | None = None, limit_seconds: float = 600.0) -> list[RunningLoad]:
        """Burn the accelerators; raises as `cpu`, and LoadError where there is nothing to burn them with."""
        from pytest_thermal.load import LoadError, burn_works

        bench = active_bench(self._config).bench
        works, why_not = burn_works(
            bench, limit_seconds=limit_seconds, environ=self._additions(), accelerator_command=command
        )
        if not works:
            raise LoadError(
                say("the accelerators cannot be loaded: {why_not}", why_not=why_not),
                remedy=say("name a command that burns them"),
            )
        return [self._start(work) for work in works]

    def inference(self, *, concurrent_requests: int | None = None, limit_seconds: float = 600.0) -> RunningLoad:
        """Inference requests in a closed loop; raises as `cpu`."""
        return self._planned("inference", concurrent_requests, limit_seconds)[-1]

    def mixed(self, *, concurrent_requests: int | None = None, limit_seconds: float = 600.0) -> list[RunningLoad]:
        """CPU, accelerators and inference as the bench file's mixed mode has them; raises as `cpu`."""
        return self._planned("mixed", concurrent_requests, limit_seconds)

    def _planned(self, mode: str, concurrent_requests: int | None, limit_seconds: float) -> list[RunningLoad]:
        from pytest_thermal.load import plan_works
        from pytest_thermal.recording import RunClock, create_run

        bench = active_bench(self._config).bench
        change: dict[str, object] = {"mode": mode}
        if concurrent_requests is not None:
            change["concurrent_requests"] = concurrent_requests
        bench = bench.model_copy(update={"stress": bench.stress.model_copy(update=change)})
        run = create_run(self._folder / "loads", facts={"bench": bench.name, "simulated": bench.demo})
        works, _ = plan_works(
            bench, run=run, clock=RunClock.start(), limit_seconds=limit_seconds, environ=self._additions()
        )
        return [self._start(work) for work in works]

    def _additions(self) -> Mapping[str, str]:
        return active_bench(self._config).load_environ

    def _start(self, work: Work) -> RunningLoad:
        from pytest_thermal.load import Loads

        if self._loads is None:
            from pytest_thermal.experiment import BenchLock, lock_folder

            folder = lock_folder(node_environ(self._config))
            lock = BenchLock(folder, what=f"bench {active_bench(self._config).bench.name}, a test")
            self._stack.enter_context(lock)
            self._loads = self._stack.enter_context(Loads())
        return self._loads.add(work)
