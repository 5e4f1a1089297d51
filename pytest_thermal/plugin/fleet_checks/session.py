"""The fleet of this process: which nodes are expected, where they sit, and what their runs say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.model import Outcome
from pytest_thermal.model.said import say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import active_bench, is_explicit
from pytest_thermal.plugin.keys import FLEET
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.thermal_checks.extras import require_thermal_extra
from pytest_thermal.plugin.thermal_checks.session import archive

if TYPE_CHECKING:
    from pytest_thermal.bench.fleet_file import FleetFile
    from pytest_thermal.findings import Limits
    from pytest_thermal.findings.fleet.archive import Roster
    from pytest_thermal.findings.fleet.judgement import FleetJudgement
    from pytest_thermal.model import Finding

PAGE = Path("reports") / "fleet.html"
"""Below the folder that pytest was started in."""


@dataclass(frozen=True, kw_only=True)
class FleetEnding:
    """What a process tells of its fleet; plain data, since it travels from xdist's workers."""

    node: str
    head: Sequence[str]
    findings: Sequence[dict[str, Any]] = field(default_factory=list)
    rows: Sequence[dict[str, Any]] = field(default_factory=list)
    domains: Sequence[dict[str, Any]] = field(default_factory=list)
    uses: Sequence[dict[str, Any]] = field(default_factory=list)
    lines: Sequence[str] = field(default_factory=list)
    evidence: str = ""


def fleet_session(config: pytest.Config) -> FleetSession:
    """The fleet of this process.

    Raises:
        pytest.UsageError: the archive is not there, or ``fleet.toml`` cannot be used.
    """
    found = config.stash.get(FLEET, None)
    if found is None:
        require_thermal_extra()
        found = config.stash[FLEET] = FleetSession(config)
    return found


class FleetSession:
    """One fleet: its nodes, its judgement, and what tests asked of it."""

    def __init__(self, config: pytest.Config) -> None:
        from pytest_thermal.findings.fleet.archive import find_fleet
        from pytest_thermal.findings.fleet.judgement import FleetJudgement

        self.config = config
        active_bench(config)  # whose keys are taken out of what is told
        self.folder = archive(config)
        if not self.folder.is_dir():
            raise pytest.UsageError(
                say(
                    "--runs: {folder}: there is no such folder\n"
                    "likely: the nodes' runs were not brought back yet, or lie elsewhere\n"
                    "try: --runs DIR with the folder that holds their run directories",
                    folder=self.folder,
                )
            )
        self.places = _places(config, self.folder)
        self.noted: list[Finding] = []
        """What tests asked, in their order."""
        self.report: Path | None = None
        """The page, once it is written."""
        self.trouble = ""
        """Why the page could not be written."""
        count = (options.value(config, "nodes") or (0, ()))[0]
        self.roster: Roster = find_fleet(
            self.folder, expected=dict(_expected(config, self.places)), count=count, counted_by="--nodes"
        )
        explicit = is_explicit(config)
        self.judgement: FleetJudgement = FleetJudgement(
            self.roster,
            self._limits(),
            places=self.places,
            limits_of_runs=(lambda _: self._limits()) if explicit or _names_limits(config) else None,
            bench=active_bench(config).bench.name if explicit else "",
            with_drift=options.value(config, "against") != "none",
        )

    @property
    def simulated(self) -> bool:
        """Whether any of the runs is simulated. Reads the runs."""
        return self.judgement.is_simulated()

    def _limits(self) -> Limits:
        from pytest_thermal.bench import Monitor
        from pytest_thermal.findings import limits_for

        bench = active_bench(self.config).bench if is_explicit(self.config) else None
        wanted = options.value(self.config, "settling")
        try:
            return limits_for(
                Monitor() if bench is None else bench.monitor,
                origin=(lambda _: "default") if bench is None else bench.origin,
                overrides=options.limits(self.config),
                settling=("default", "default") if wanted is None else (wanted, "command line --settling"),
            )
        except ValueError as error:
            raise pytest.UsageError(*error.args) from None

    def header(self) -> list[str]:
        """What is judged, and who is expected."""
        from pytest_thermal.findings.telling import few

        nodes = self.roster.nodes.values()
        missing = [node.name for node in nodes if node.newest is None]
        lines = [say("fleet: {count} nodes below {folder}", count=len(nodes), folder=self.folder)]
        if missing:
            lines.append(say("fleet: {count} of them have no run: {names}", count=len(missing), names=few(missing)))
        if self.places is not None:
            lines.append(
                say(
                    "fleet: places from {file}, which names {count} nodes",
                    file=self.places.path,
                    count=len(self.places.hosts),
                )
            )
        else:
            lines.append(say("fleet: no fleet.toml: a warm branch or rack cannot be told from bad cards"))
        return lines + [say("fleet: note: {note}", note=note) for note in self.roster.notes[:6]]

    def ending(self, node: str) -> FleetEnding | None:
        """What to tell; None where no test asked anything."""
        if not self.noted:
            return None
        from dataclasses import asdict

        from pytest_thermal.findings.fleet.overview import domain_rows, limits_said, node_rows, use_rows
        from pytest_thermal.findings.judgement import finding_as_json

        lines = []
        if self.report is not None:
            lines.append(say("report: {report}", report=self.report))
        if self.trouble:
            lines.append(say("note: {text}", text=self.trouble))
        lines += [say("note: {text}", text=found.seen) for found in self.noted if _is_note(found)]
        return FleetEnding(
            node=node,
            head=self.header(),
            findings=[finding_as_json(found) for found in self.noted if not _is_note(found)],
            rows=[{**asdict(row), "outliers": list(row.outliers)} for row in node_rows(self.judgement)],
            domains=[
                {**asdict(row), "limited_nodes": list(row.limited_nodes), "limits": limits_said(row.by_limit)}
                for row in domain_rows(self.judgement)
            ],
            uses=[asdict(row) for row in use_rows(self.judgement)],
            lines=lines,
            evidence="SIMULATED (demo bench)" if self.simulated else "measured",
        )

    def write_page(self) -> None:
        """Write ``reports/fleet.html``; why it cannot be is told, and takes nothing else along."""
        from pytest_thermal.reporting.fleet_page import write_fleet_page

        try:
            self.report = write_fleet_page(
                self.judgement,
                self.config.invocation_params.dir / PAGE,
                redact=active_bench(self.config).redactor.text,
                told=catalogue(self.config),
            )
        except OSError as error:
            self.trouble = say("{file} could not be written: {error}", file=PAGE, error=error.strerror or error)


def _is_note(found: Finding) -> bool:
    """Whether a finding fails nothing although it has something to say."""
    from pytest_thermal.findings.fleet.judgement import SIMULTANEOUS

    return found.check == SIMULTANEOUS and found.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE)


def _names_limits(config: pytest.Config) -> bool:
    return bool(options.limits(config)) or options.value(config, "settling") is not None


def _places(config: pytest.Config, folder: Path) -> FleetFile | None:
    from pytest_thermal.bench import BenchError
    from pytest_thermal.bench.fleet_file import FLEET_FILE, read_fleet_file

    given = options.value(config, "fleet")
    start = config.invocation_params.dir
    if given is not None:
        path = start / Path(given).expanduser()
        if not path.is_file():
            raise pytest.UsageError(
                say("--fleet: {path}: there is no such file\ntry: the path of a {name}", path=path, name=FLEET_FILE)
            )
    else:
        candidates = (folder / FLEET_FILE, start / FLEET_FILE, start / "config" / FLEET_FILE)
        found = next((one for one in candidates if one.is_file()), None)
        if found is None:
            return None
        path = found
    try:
        return read_fleet_file(path)
    except BenchError as error:
        raise pytest.UsageError(error.message) from None


def _expected(config: pytest.Config, places: FleetFile | None) -> Iterator[tuple[str, str]]:
    """Nodes that must be there, and who says so."""
    told = options.value(config, "nodes")
    if told is not None:
        yield from ((name, "--nodes") for name in told[1])
    if places is not None:
        yield from ((host, places.path.name) for host in places.hosts)
