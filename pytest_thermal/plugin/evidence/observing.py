"""Every test as it ended, gathered where the whole run is seen: in the one process, or in xdist's controller.

There only where the gate or another format asks for it. A worker's part travels with its reports and, at its end, with
what it tells the controller; all of it plain data.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.said import plain, say, unpacked
from pytest_thermal.plugin.keys import ACTIVE_BENCH, FINDINGS, FLEET, FLEET_NOT_ASKED, THERMAL
from pytest_thermal.recording.layout import SEAL
from pytest_thermal.reporting.gate import Need
from pytest_thermal.reporting.observed import How, Observed, finding_of, plain_finding

if TYPE_CHECKING:
    from pytest_thermal.bench import Bench
    from pytest_thermal.model import Finding
    from pytest_thermal.plugin.fleet_checks.session import FleetSession
    from pytest_thermal.plugin.thermal_checks.session import ThermalSession
    from pytest_thermal.recording import Recording

ACCESS_FIXTURES = frozenset({"access"})
THERMAL_FIXTURES = frozenset({"thermal", "thermal_run"})
BENCH_FIXTURES = frozenset({"access", "api", "async_api", "bench", "domain", "load", "recorder", "sensors"})
FLEET_FIXTURES = frozenset({"fleet"})
SUBJECTS = ("node", "temperature", "place", "domain", "phase", "sensor", "device")
TRIED_ON_REQUEST = frozenset({"quota_tried"})
"""Access checks that cost what nobody asked for: the gate does not need them."""
UNSEALED = "run.json: it has no checksum of its own"
_LONGEST_MESSAGE = 2000
_WORST_LAST = (How.PASSED, How.EXPECTED, How.SKIPPED, How.BROKEN, How.FAILED)


class Observer:
    """Sees every test of the run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._collected: dict[str, dict[str, Any]] = {}
        self._deselected: dict[str, dict[str, Any]] = {}
        self._found: list[pytest.Item] = []
        """Every test that was collected, until it is known which stay."""
        self._ended: dict[tuple[str, str], Observed] = {}
        self._tries: dict[str, tuple[How, str]] = {}
        """The worst that each test of this process came to in any try, and what it said: others may call it a pass."""
        self._unknown: dict[str, None] = {}
        """Tests that xdist's workers collected, for where no worker lives to tell which are critical."""
        self._needs: dict[Need, None] = {}
        self.kinds: set[str] = set()
        """``access``, ``thermal``: which of them tests of this run are about."""
        self.benches: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.third_parties: list[Finding] = []
        self.collection_errors: list[str] = []
        self.lost_workers: list[str] = []
        self.fleet_nodes: int | None = None
        """How many nodes the fleet that was judged has; None where none was."""
        self.interrupted = ""

    # ------------------------------------------------------------------------------------------- what the run comes to

    def observed(self) -> list[Observed]:
        """All tests: those that ended, those that did not run, those that were left out."""
        ran = {test for test, _ in self._ended}
        left = [_observed(known, How.NOT_RUN) for test, known in self._collected.items() if test not in ran]
        told = ran | self._collected.keys()
        left += [Observed(test=test, how=How.NOT_RUN, critical=True) for test in self._unknown if test not in told]
        left += [_observed(known, How.DESELECTED) for test, known in self._deselected.items() if test not in told]
        return [*self._ended.values(), *left]

    def needs(self) -> list[Need]:
        """What must have been asked, as far as this run knows its bench and its sensors."""
        return list(self._needs)

    def take(self, told: Mapping[str, Any]) -> None:
        """What a process of the run tells at its end."""
        for known in told["collected"]:
            self._collected.setdefault(known["test"], dict(known))
        for known in told["deselected"]:
            self._deselected.setdefault(known["test"], dict(known))
        for check, subject in told["needs"]:
            self._needs.setdefault(Need(check=check, subject=subject))
        self.kinds.update(told["kinds"])
        self.benches += [bench for bench in told["benches"] if bench not in self.benches]
        self.runs += [run for run in told["runs"] if run not in self.runs]
        if told["fleet_nodes"] is not None:
            self.fleet_nodes = max(self.fleet_nodes or 0, told["fleet_nodes"])
        self.third_parties += [finding_of(found) for found in told["third_parties"]]
        self.collection_errors += [error for error in told["collection_errors"] if error not in self.collection_errors]

    def told(self) -> dict[str, Any]:
        """What this process has to tell: plain data, for a worker's last words."""
        config = self._config
        thermal = config.stash.get(THERMAL, None)
        fleet = config.stash.get(FLEET, None)
        active = config.stash.get(ACTIVE_BENCH, None)
        kinds = {kind for known in (*self._collected.values(), *self._deselected.values()) for kind in known["kinds"]}
        needs = list(_access_needs(active)) if "access" in kinds and active is not None else []
        needs += list(_thermal_needs(thermal)) if "thermal" in kinds and thermal is not None else []
        needs += list(_fleet_needs(fleet)) if "fleet" in kinds and fleet is not None else []
        told: dict[str, Any] = {
            "collected": list(self._collected.values()),
            "deselected": list(self._deselected.values()),
            "needs": needs,
            "kinds": sorted(kinds),
            "benches": []
            if active is None or (active.is_fallback and kinds <= {"thermal", "fleet"})
            else [_bench(active)],
            "runs": ([] if thermal is None else _runs(thermal)) + ([] if fleet is None else _fleet_runs(fleet)),
            "fleet_nodes": None if fleet is None or "fleet" not in kinds else len(fleet.roster.nodes),
            "third_parties": [] if thermal is None else [plain_finding(found) for found in thermal.by_third_parties],
            "collection_errors": self.collection_errors,
        }
        # A worker's words reach a process that may not know the key.
        return cast("dict[str, Any]", plain(told if active is None else active.redactor.data(told)))

    # ---------------------------------------------------------------------------------------------------------- hooks

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Which tests there are, and which somebody took out without a word."""
        self._collected = {item.nodeid: _known(item) for item in session.items}
        staying = set(map(id, session.items))  # by identity: xdist gives tests other ids on the way
        told = self._collected.keys() | self._deselected.keys()
        gone = [item for item in self._found if id(item) not in staying and item.nodeid not in told]
        self._deselected |= {item.nodeid: _known(item) for item in gone}
        self._found.clear()

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Which tests were found, before anybody takes some out."""
        self._found.append(item)

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Which tests were left out."""
        self._deselected |= {item.nodeid: _known(item) for item in items}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """What could not be collected."""
        if report.failed and report.nodeid not in self.collection_errors:
            self.collection_errors.append(report.nodeid or "the arguments")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send along what the test found: redaction, which comes after, takes keys out of it."""
        report = yield
        if call.when == "call" or call.excinfo is not None:
            error = call.excinfo.value if call.excinfo is not None else None
            told = _known(item)
            told["findings"] = [plain_finding(found) for found in item.stash.get(FINDINGS, [])]
            told["simulated"] = _is_simulated(item, told["findings"])
            told["message"] = _message(error)
            told["measured_bad"] = call.when == "call" and _is_measured_bad(error)
            how = _raised(error, measured_bad=told["measured_bad"])
            worst = self._tries.get(item.nodeid, (How.PASSED, ""))
            if _WORST_LAST.index(how) > _WORST_LAST.index(worst[0]):
                worst = self._tries[item.nodeid] = how, told["message"]
            told["worst"] = [str(worst[0]), worst[1]]
            vars(report)["thermal"] = plain(told)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How a test ended; the worst of its phases counts."""
        if hasattr(self._config, "workerinput"):
            return
        told = getattr(report, "thermal", None)
        how = _how(report)
        if how in (None, How.PASSED) and told is not None:
            # Whoever rewrites a report or tries a test again until it passes changes nothing of what was measured.
            worst, message = told["worst"]
            if worst != How.PASSED:
                how, told = How(worst), {**told, "message": message}
        if how is None:
            return
        worker = str(getattr(report, "worker_id", ""))
        key = (report.nodeid, worker)
        before = self._ended.get(key)
        now = _ended(report, how, told, worker)
        if before is None or _WORST_LAST.index(now.how) > _WORST_LAST.index(before.how):
            self._ended[key] = now if now.findings or before is None else _with_findings(now, before)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C, or `pytest.exit`."""
        self.interrupted = str(excinfo.value) or excinfo.typename

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """What a worker collected: it may crash before it can tell more."""
        self._unknown |= dict.fromkeys(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker tells; a crashed one tells nothing."""
        told = (getattr(node, "workeroutput", None) or {}).get("thermal_observed")
        if told is not None:
            self.take(unpacked(told))
        if error:
            self.lost_workers.append(say("{gateway}: {error}", gateway=node.gateway.id, error=error))


# ---------------------------------------------------------------------------------------------------------------------


def _known(item: pytest.Item) -> dict[str, Any]:
    """What a test is about, as far as it can be told without running it."""
    names = set(getattr(item, "fixturenames", ()))
    kinds = ["access"] * bool(names & ACCESS_FIXTURES) + ["thermal"] * bool(names & THERMAL_FIXTURES)
    kinds += ["fleet"] * (bool(names & FLEET_FIXTURES) and not item.stash.get(FLEET_NOT_ASKED, False))
    check = subject = ""
    if kinds:
        callspec = getattr(item, "callspec", None)
        params: dict[str, Any] = dict(getattr(callspec, "params", {}))
        subject = next((str(params[name]) for name in SUBJECTS if name in params), "")
        function = getattr(item, "originalname", None) or item.name.partition("[")[0]
        more = [value for name, value in params.items() if name not in SUBJECTS and isinstance(value, str)]
        check = "_".join([function.removeprefix("test_"), *more])
    return {
        "test": item.nodeid,
        "critical": item.get_closest_marker("critical") is not None and not item.stash.get(FLEET_NOT_ASKED, False),
        "advisory": item.get_closest_marker("advisory") is not None,
        "check": check,
        "subject": subject,
        "kinds": kinds,
    }


def _observed(known: Mapping[str, Any], how: How, **more: Any) -> Observed:
    named = {name: known[name] for name in ("test", "critical", "advisory", "check", "subject")}
    return Observed(**named, how=how, **more)


def _ended(report: pytest.TestReport, how: How, told: Mapping[str, Any] | None, worker: str) -> Observed:
    if told is None:  # a worker crashed on it, or another plugin made the report
        return Observed(
            test=report.nodeid,
            how=how,
            critical=True,
            message=str(report.longrepr or "")[:_LONGEST_MESSAGE],
            worker=worker,
        )
    return _observed(
        known=told,
        how=how,
        simulated=told["simulated"],
        findings=tuple(map(finding_of, told["findings"])),
        message=told["message"],
        worker=worker,
        start_seconds=report.start if hasattr(report, "start") else 0.0,
        stop_seconds=report.stop if hasattr(report, "stop") else 0.0,
    )


def _with_findings(now: Observed, before: Observed) -> Observed:
    from dataclasses import replace

    return replace(now, findings=before.findings, simulated=before.simulated or now.simulated)


def _how(report: pytest.TestReport) -> How | None:
    """How a phase of a test ended; None where it decides nothing."""
    if report.skipped:
        return How.EXPECTED if hasattr(report, "wasxfail") else How.SKIPPED
    if report.failed:
        told = getattr(report, "thermal", None)
        return How.FAILED if told is not None and told["measured_bad"] else How.BROKEN
    return How.PASSED if report.passed and report.when == "call" else None


def _raised(error: BaseException | None, *, measured_bad: bool) -> How:
    """What a test came to by itself, whatever its report says."""
    if error is None:
        return How.PASSED
    if isinstance(error, pytest.xfail.Exception):
        return How.EXPECTED
    if isinstance(error, pytest.skip.Exception):
        return How.SKIPPED
    return How.FAILED if measured_bad else How.BROKEN


def _is_measured_bad(error: BaseException | None) -> bool:
    """Whether a test said that what it looked at is bad: an assertion, or `pytest.fail`; a timeout is neither."""
    if isinstance(error, pytest.fail.Exception):
        return "pytest-timeout" not in str(error)
    return isinstance(error, AssertionError)


def _message(error: BaseException | None) -> str:
    if error is None:
        return ""
    text = str(error)
    if not (isinstance(error, pytest.skip.Exception | pytest.fail.Exception) or hasattr(error, "remedy")):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text[:_LONGEST_MESSAGE]


def _is_simulated(item: pytest.Item, findings: Iterable[Mapping[str, Any]]) -> bool:
    names = set(getattr(item, "fixturenames", ()))
    active = item.config.stash.get(ACTIVE_BENCH, None)
    thermal = item.config.stash.get(THERMAL, None)
    return (
        any(found["evidence"].get("simulated") for found in findings)
        or bool(names & THERMAL_FIXTURES and thermal is not None and thermal.simulated)
        or bool(names & BENCH_FIXTURES and active is not None and active.bench.demo)
    )


def _access_needs(active: Any) -> Iterable[tuple[str, str]]:
    from pytest_thermal.access.checks import CHECKS

    checks = [check.id for check in CHECKS if not check.advisory and check.id not in TRIED_ON_REQUEST]
    for domain in active.bench.domains:
        yield from ((check, domain.name) for check in [*checks, "http_health"])


def _thermal_needs(session: ThermalSession) -> Iterable[tuple[str, str]]:
    from pytest_thermal.findings import CHECKS, subjects

    yield from (("phase", phase) for phase in session.phases)
    for check in CHECKS:
        found = subjects(check, session.sensors, inference=session.inference)
        yield from ((check, subject) for subject in found or ("",))


def _fleet_needs(session: FleetSession) -> Iterable[tuple[str, str]]:
    for check in ("node", "consistency", "place"):
        yield from ((check, subject) for subject in session.judgement.subjects(check))


def _fleet_runs(session: FleetSession) -> list[dict[str, Any]]:
    """The run of each node, as it was judged."""
    return [
        {
            "directory": str(run.path.resolve()),
            "source": "log" if run.state == "foreign" else "replayed",
            "state": run.state,
            "bench": run.bench,
            "host": node,
            "recorded": _utc(run.phases[0].start_seconds if run.phases else None),
            "ended": _utc(run.end_seconds),
            "simulated": run.simulated,
            "changed": [*run.changed, *([] if run.sealed or run.state != "finished" else [UNSEALED])],
            "samples": run.samples,
            "cards": len({card.device for card in run.cards if kind_of(card.device) is Kind.ACCELERATOR}),
        }
        for node, run in session.judgement.runs.items()
    ]


def _changed(recording: Recording) -> list[str]:
    unsealed = recording.state == "finished" and SEAL not in recording.facts
    return [*recording.changed, *([UNSEALED] if unsealed else [])]


def _utc(start: object) -> str | None:
    import datetime as dt

    if not isinstance(start, int | float):
        return None
    return dt.datetime.fromtimestamp(start, tz=dt.timezone.utc).isoformat(timespec="milliseconds")


def _bench(active: Any) -> dict[str, Any]:
    bench, clean = active.bench, active.redactor.text
    return {
        "name": clean(bench.name),
        "chosen_by": clean(active.chosen_by),
        "simulated": bool(bench.demo),
        "fault": active.fault or active.thermal_fault or "",
        **({} if bench.demo else _counted(bench)),  # the simulated machine has two cards, whatever its files say
        "domains": [
            {"name": domain.name, "gateway": "embedded demo gateway" if bench.demo else clean(domain.base_url)}
            for domain in bench.domains
        ],
    }


def _counted(bench: Bench) -> dict[str, int]:
    """How many accelerators a node has by the bench's files, and how many nodes there are."""
    found = {}
    cards = (
        len(bench.monitor.gpu_indices)
        if bench.monitor.gpu_indices is not None
        else bench.cluster and bench.cluster.gpu_per_node
    )
    if cards:
        found["cards"] = cards
    if bench.cluster is not None and bench.cluster.node_count:
        found["nodes"] = bench.cluster.node_count
    return found


def _runs(session: ThermalSession) -> list[dict[str, Any]]:
    """The thermal run that this process made or judged, without reading its samples again."""
    from pytest_thermal.findings.subjects import is_heated
    from pytest_thermal.plugin.thermal_checks.replay_session import ReplaySession
    from pytest_thermal.recording import RecordingError
    from pytest_thermal.recording.layout import read_run_json, samples_checksum

    path = session.path
    if path is None:
        return []
    recording = session.recording() if isinstance(session, ReplaySession) else None
    try:
        facts = recording.facts if recording is not None else read_run_json(path)
    except RecordingError:
        facts = {}
    foreign = recording is not None and recording.state == "foreign"
    start = recording.start_seconds if recording is not None and recording.absolute_time else facts.get("start_seconds")
    host = facts.get("host")
    return [
        {
            "directory": str(path.resolve()),
            "source": "made" if recording is None else "log" if foreign else "replayed",
            "state": recording.state if recording is not None else str(facts.get("state", "unknown")),
            "bench": str(facts.get("bench", "")),
            "host": str(host.get("name", "") if isinstance(host, dict) else host or ""),
            "recorded": _utc(start),
            "ended": _utc(facts.get("end_seconds")),
            "simulated": bool(session.simulated),
            "changed": _changed(recording) if recording is not None else [],
            "samples": samples_checksum(facts),
            "cards": len(
                {one.device for one in session.sensors if is_heated(one) and kind_of(one.device) is Kind.ACCELERATOR}
            ),
        }
    ]
