"""Which bench this run is about: found once, when something first asks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.keys import ACTIVE_BENCH

if TYPE_CHECKING:
    from pytest_thermal.bench import Bench, Redactor
    from pytest_thermal.demo import DemoGateway

DEMO = "demo"
DEMO_TOKEN_SECONDS = 0.02
"""Slow enough that its throughput is set by the simulated engine, and not by how busy this machine is."""
NONE_CONFIGURED = "no bench configured: no --bench, no $THERMAL_BENCH, no ./config/settings.json"


class ActiveBench:
    """The bench of a run, how it was chosen, the environment it is used in, and the demo gateway behind it if any."""

    def __init__(
        self,
        bench: Bench,
        *,
        chosen_by: str,
        environ: Mapping[str, str],
        gateway: DemoGateway | None = None,
        machine: Path | None = None,
        fault: str | None = None,
        thermal_fault: str | None = None,
        load_environ: Mapping[str, str] | None = None,
    ) -> None:
        from pytest_thermal.bench import Redactor

        self.bench = bench
        self.chosen_by = chosen_by
        self.environ = environ
        self.fault = fault
        self.redactor: Redactor = Redactor(bench.secrets())
        self.thermal_fault = thermal_fault
        self.demo_machine = machine
        """The folder through which the simulated machine knows what runs on it; None for a real bench."""
        self.load_environ: Mapping[str, str] = load_environ or {}
        """What loads find in their environment beside this process's own."""
        self._gateway = gateway

    @property
    def is_fallback(self) -> bool:
        """Whether nobody asked for this bench: the demo bench, where none is configured."""
        return self.chosen_by == NONE_CONFIGURED

    def start(self) -> None:
        """Make sure that the demo gateway answers; does nothing for a real bench."""
        if self._gateway is not None:
            self._gateway.start()

    def stop(self) -> None:
        """Stop the demo gateway, and leave nothing of the simulated machine."""
        if self._gateway is not None:
            self._gateway.stop()
        if self.demo_machine is not None:
            shutil.rmtree(self.demo_machine, ignore_errors=True)

    def header(self) -> list[str]:
        """What the header says of it: name, origin, way in, and what was corrected or overruled in its files."""
        from pytest_thermal.bench import describe_key
        from pytest_thermal.model.said import say

        bench = self.bench
        by = self.chosen_by
        if self.is_fallback:
            by = say("no bench configured: no --bench, no $THERMAL_BENCH, no ./config/settings.json")
        lines = [say("thermal: bench {bench_name} ({chosen_by})", bench_name=bench.name, chosen_by=by)]
        if bench.demo:
            lines[0] = say("thermal: DEMO bench, all simulated ({chosen_by})", chosen_by=by)
            fault = self.fault or self.thermal_fault
            if fault:
                lines.append(say("thermal: fault switched on: {fault}", fault=fault))
        for domain in bench.domains[:8]:
            where = say("embedded gateway") if bench.demo else domain.base_url
            lines.append(
                say(
                    "thermal: {domain_name}: {where}, key {describe_key} from {key_origin}",
                    domain_name=domain.name,
                    where=where,
                    describe_key=describe_key(domain.key),
                    key_origin=domain.key_origin,
                )
            )
        if len(bench.domains) > 8:
            lines.append(say("thermal: and {count} more domains", count=len(bench.domains) - 8))
        lines += [say("thermal: note: {note}", note=note) for note in bench.notes]
        return [self.redactor.text(line) for line in lines]


def is_explicit(config: pytest.Config) -> bool:
    """Whether the command line names the bench, so that a mistake in it must end the run at once."""
    return any(options.value(config, name) for name in ("bench", "demo", "demo-fault"))


def listed_domains(config: pytest.Config) -> tuple[str, ...] | None:
    """Names of the bench's domains for a mere list of tests (``--collect-only``), without reading all of the bench.

    None where tests are to be run, or where the names cannot be had so cheaply.
    """
    if not config.option.collectonly or config.stash.get(ACTIVE_BENCH, None) is not None or is_explicit(config):
        return None
    from pytest_thermal.bench.quick_names import quick_domain_names
    from pytest_thermal.bench.templates import find_template

    variable = os.environ.get("THERMAL_BENCH", "").strip()
    if "${" in variable:
        return None
    folder: Path | None = config.invocation_params.dir / "config"
    if variable:
        folder = find_template(DEMO) if variable == DEMO else config.invocation_params.dir / Path(variable).expanduser()
    elif not (config.invocation_params.dir / "config" / "settings.json").is_file():
        folder = find_template(DEMO)
    return quick_domain_names(folder) if folder is not None else None


def active_bench(config: pytest.Config) -> ActiveBench:
    """The bench of this run. Raises pytest.UsageError, with the whole message for the user, where there is none."""
    found = config.stash.get(ACTIVE_BENCH, None)
    if found is None:
        found = config.stash[ACTIVE_BENCH] = _choose(config)
        config.add_cleanup(found.stop)
        from pytest_thermal.plugin.redaction import protect

        protect(config, found.redactor)
    return found


def _choose(config: pytest.Config) -> ActiveBench:
    from pytest_thermal.model.said import say

    named = options.value(config, "bench")
    fault = options.value(config, "demo-fault")
    demo = bool(options.value(config, "demo")) or fault is not None
    named = named and _of_this_node(config, named, "--bench")
    if named and named != DEMO and demo:
        raise pytest.UsageError(
            say(
                "--bench {named} and --{and_fault} contradict each other\nlikely: one of them is left "
                "over from an earlier command\ntry: either alone; faults can be switched on in the demo "
                "bench only",
                named=named,
                and_fault="demo-fault" if fault else "demo",
            )
        )
    if demo or named == DEMO:
        return _demo(config, "--demo-fault" if fault else "--demo" if demo else "--bench demo", fault)
    if named:
        return _from_folder(config, named, "--bench")
    variable = os.environ.get("THERMAL_BENCH", "").strip()
    variable = variable and _of_this_node(config, variable, "$THERMAL_BENCH")
    if variable == DEMO:
        return _demo(config, "$THERMAL_BENCH", None)
    if variable:
        return _from_folder(config, variable, "$THERMAL_BENCH")
    folder = config.invocation_params.dir / "config"
    if (folder / "settings.json").is_file():
        return _load(config, folder, "./config")
    return _demo(config, NONE_CONFIGURED, None)


def _of_this_node(config: pytest.Config, named: str, by: str) -> str:
    """With `${THERMAL_NODE}` and other variables put in: one command line for all nodes, a bench for each."""
    if "${" not in named:
        return named
    from pytest_thermal.bench.expand import ExpansionError, expand
    from pytest_thermal.plugin.evidence.node import node_environ

    try:
        return expand(named, node_environ(config)).text
    except ExpansionError as error:
        raise pytest.UsageError(f"{by} {named}: {error.seen}\nlikely: {error.likely}\ntry: {error.remedy}") from None


def _from_folder(config: pytest.Config, named: str, by: str) -> ActiveBench:
    from pytest_thermal.bench import find_template

    folder = config.invocation_params.dir / Path(named).expanduser()
    if not folder.exists() and Path(named).name == named:
        folder = find_template(named) or folder
    return _load(config, folder, f"{by} {named}")


def overrides(config: pytest.Config) -> dict[str, tuple[object, str]]:
    """What the command line sets in the bench: dotted setting → value in our unit, and the option."""
    return {
        "stress.duration_seconds": (options.value(config, "duration"), "--duration"),
        "stress.warmup_seconds": (options.value(config, "ramp"), "--ramp"),
    }


def _load(config: pytest.Config, folder: Path, chosen_by: str) -> ActiveBench:
    from pytest_thermal.bench import BenchError, load_bench
    from pytest_thermal.model.said import say

    environ = dict(os.environ)
    try:
        bench = load_bench(folder, environ=environ, overrides=overrides(config))
    except BenchError as error:
        raise pytest.UsageError(
            say("{error}\n(bench chosen by {chosen_by})", error=error.message, chosen_by=chosen_by)
        ) from None
    return ActiveBench(bench, chosen_by=chosen_by, environ=environ)


def _demo(config: pytest.Config, chosen_by: str, fault: str | None) -> ActiveBench:
    from pytest_thermal.bench import BenchError, find_template, load_bench
    from pytest_thermal.demo import DemoError, DemoGateway
    from pytest_thermal.demo.state import make_folder
    from pytest_thermal.demo.thermal_faults import THERMAL_FAULTS
    from pytest_thermal.model.said import say

    folder = find_template(DEMO)
    if folder is None:
        raise pytest.UsageError(say("the demo bench's files are missing from this installation\ntry: install it again"))
    thermal_fault = fault if fault in THERMAL_FAULTS else None
    machine = make_folder()
    try:
        gateway = DemoGateway(
            fault=None if thermal_fault else fault, state_folder=machine, token_seconds=DEMO_TOKEN_SECONDS
        )
    except (ValueError, DemoError) as error:
        shutil.rmtree(machine, ignore_errors=True)
        more = "\n".join(f"  {name}: {text}" for name, text in THERMAL_FAULTS.items())
        raise pytest.UsageError(
            say("--demo-fault: {error}\nof the simulated machine:\n{more}", error=error, more=more)
        ) from None
    # The gateway is on loopback: a proxy in the environment would only carry its requests away.
    environ = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    environ |= {"THERMAL_DEMO_URL": gateway.url, "THERMAL_DEMO_KEY": gateway.key or "none"}
    if gateway.ca_file is not None:
        environ["SSL_CERT_FILE"] = str(gateway.ca_file)
    try:
        bench = load_bench(folder, environ=environ, overrides=overrides(config), demo=True)
        if not gateway.key:
            bare = [domain.model_copy(update={"key": None, "key_origin": "none"}) for domain in bench.domains]
            bench = bench.model_copy(update={"domains": tuple(bare)})
    except BenchError as error:
        gateway.stop()
        shutil.rmtree(machine, ignore_errors=True)
        raise pytest.UsageError(error.message) from None
    return ActiveBench(
        bench,
        chosen_by=chosen_by,
        environ=environ,
        gateway=gateway,
        machine=machine,
        fault=None if thermal_fault else fault,
        thermal_fault=thermal_fault,
        load_environ=_load_environ(environ, machine),
    )


def _load_environ(environ: Mapping[str, str], machine: Path) -> dict[str, str]:
    found = {"PYTEST_THERMAL_DEMO": str(machine), "NO_PROXY": "*", "no_proxy": "*"}
    if "SSL_CERT_FILE" in environ:
        found["SSL_CERT_FILE"] = environ["SSL_CERT_FILE"]
    return found
