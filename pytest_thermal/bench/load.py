"""The two bench files of a folder become one `Bench`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import SecretStr

from pytest_thermal.bench.candidates import Candidate, Findings, add_leaves, add_overrides
from pytest_thermal.bench.dialects import dialect_defaults, domain_tables, leaves
from pytest_thermal.bench.domains import build_domains
from pytest_thermal.bench.errors import BenchError, one_line
from pytest_thermal.bench.files import CONFIG, IPMI_PASSWORD, PROMETHEUS_PASSWORD, PROMETHEUS_TOKEN, REDFISH_PASSWORD
from pytest_thermal.bench.merge import Merge, of_setting
from pytest_thermal.bench.model import (
    Bench,
    Cluster,
    HealthCheck,
    Inference,
    Logging,
    Monitor,
    Part,
    RateLimit,
    RetryPolicy,
    ScaleOut,
    Scheduler,
    Stress,
    Timeouts,
)
from pytest_thermal.bench.read import UnreadableError, find_files, read_file
from pytest_thermal.bench.secrets import Redactor
from pytest_thermal.model.said import say

_GROUPS: Final[Mapping[str, type[Part]]] = MappingProxyType(
    {
        "timeouts": Timeouts,
        "retry": RetryPolicy,
        "rate_limit": RateLimit,
        "health_check": HealthCheck,
        "inference": Inference,
        "stress": Stress,
        "monitor": Monitor,
        "cluster": Cluster,
        "scheduler": Scheduler,
        "scale_out": ScaleOut,
        "logging": Logging,
    }
)
_OPTIONAL: Final = frozenset({"cluster", "scale_out"})  # None when the files say nothing of them
_NOTHING: Final[Mapping[str, tuple[object, str]]] = MappingProxyType({})


def load_bench(
    folder: Path,
    *,
    environ: Mapping[str, str],
    overrides: Mapping[str, tuple[object, str]] = _NOTHING,
    demo: bool = False,
) -> Bench:
    """Read `settings.json` and `config.toml` of a folder, either or both.

    Args:
        folder: Where the files are.
        environ: Where `${NAME}` and `api_key_env` are looked up.
        overrides: From the command line, before both files: dotted setting to its value in our unit and the option
            (`{"stress.duration_seconds": ("60m", "--duration")}`). A value of None counts as not given.
        demo: Whether this bench is simulated.

    Raises:
        BenchError: Something is wrong with the files. Its text lists everything that is, without any key.
    """
    findings = Findings()
    add_overrides(overrides, findings)
    trees, complete = _read(folder, findings)
    for file, tree in trees.items():
        add_leaves(leaves(file, tree), environ, findings)
    bench = _build(folder, trees, findings, complete=complete, demo=demo) if trees else None
    if bench is not None:
        bench = bench.model_copy(
            update={"monitor": _found_beside(bench.monitor, folder), **_source_secrets(bench.monitor, environ)}
        )
    if bench is None or findings.problems:
        raise BenchError.of(findings.problems, folder=folder, redact=Redactor(findings.secrets).text)
    return bench


def _source_secrets(monitor: Monitor, environ: Mapping[str, str]) -> dict[str, SecretStr]:
    """What sources of sensors take from the environment, where the bench has such a source."""
    wanted = {
        "ipmi_password": (IPMI_PASSWORD, monitor.ipmi_host),
        "redfish_password": (REDFISH_PASSWORD, monitor.redfish_host),
        "prometheus_password": (PROMETHEUS_PASSWORD, monitor.prometheus_url),
        "prometheus_token": (PROMETHEUS_TOKEN, monitor.prometheus_url),
    }
    return {field: SecretStr(environ[name]) for field, (name, asked) in wanted.items() if asked and environ.get(name)}


def _found_beside(monitor: Monitor, folder: Path) -> Monitor:
    """With the file of the BMC's certificate where it lies: beside the bench files, unless it says where."""
    if not monitor.redfish_ca:
        return monitor
    return monitor.model_copy(update={"redfish_ca": str(folder.resolve() / monitor.redfish_ca)})


def _read(folder: Path, findings: Findings) -> tuple[dict[str, Mapping[str, object]], bool]:
    """What is in the files that could be read, and whether that is all of them."""
    trees: dict[str, Mapping[str, object]] = {}
    try:
        names = find_files(folder)
    except UnreadableError as error:
        findings.problems.append(error.problem)
        return trees, False
    for name in names:
        try:
            trees[name] = read_file(folder, name)
        except UnreadableError as error:
            findings.problems.append(error.problem)
    return trees, len(trees) == len(names)


def _build(
    folder: Path, trees: Mapping[str, Mapping[str, object]], findings: Findings, *, complete: bool, demo: bool
) -> Bench | None:
    """The bench, or None where the findings' problems leave none."""
    merge = Merge()
    defaults = dialect_defaults(frozenset(findings.in_use))
    origins: dict[str, str] = {}
    parts = {group: _part(group, findings.candidates, defaults, merge, origins) for group in _GROUPS}
    cluster = parts["cluster"]
    folder_name = folder.resolve().name or "bench"
    count = domain_tables(trees.get(CONFIG, {}))
    only_name = _only_name(cluster, folder_name, origins)
    domains = build_domains(
        count, findings=findings, merge=merge, only_name=only_name, files=sorted(trees, reverse=True), complete=complete
    )
    if isinstance(cluster, Cluster):
        _check_topology(cluster, count, findings)
    _check_prometheus(parts["monitor"], findings)
    if findings.problems:
        return None
    redactor = Redactor(findings.secrets)
    return Bench.model_validate(
        {
            "name": cluster.name if isinstance(cluster, Cluster) and cluster.name else folder_name,
            "folder": folder,
            "files": tuple(folder / name for name in sorted(trees, reverse=True)),
            "demo": demo,
            "domains": domains.domains,
            **parts,
            "origins": origins | domains.origins,
            "notes": tuple(
                one_line(redactor.text(note)) for note in [*merge.notes, *findings.remarks, *_doubts(parts)]
            ),
        }
    )


def _part(
    group: str,
    candidates: list[Candidate],
    defaults: Mapping[str, object],
    merge: Merge,
    origins: dict[str, str],
) -> Part | None:
    values: dict[str, object] = {}
    given = False
    for name in _GROUPS[group].model_fields:
        setting = f"{group}.{name}"
        winner = merge.pick(setting, of_setting(setting, candidates))
        origins[setting] = winner.origin if winner else "default"
        if winner is not None:
            given = True
            values[name] = winner.value
        elif setting in defaults:
            values[name] = defaults[setting]
    if group in _OPTIONAL and not given:
        for name in _GROUPS[group].model_fields:
            del origins[f"{group}.{name}"]
        return None
    if group == "health_check" and given:
        values.setdefault("enabled", True)  # whoever sets its interval wants it
    return _GROUPS[group].model_validate(values)


def _only_name(cluster: Part | None, folder_name: str, origins: Mapping[str, str]) -> tuple[str, str]:
    if isinstance(cluster, Cluster):
        if isinstance(cluster.scale_up_domain, str):
            return cluster.scale_up_domain, origins["cluster.scale_up_domain"]
        if cluster.name:
            return cluster.name, origins["cluster.name"]
    return folder_name, say("the folder's name")


def _check_topology(cluster: Cluster, domains: int, findings: Findings) -> None:
    nodes, per_node, total = cluster.node_count, cluster.gpu_per_node, cluster.total_gpus
    product = nodes * per_node if nodes is not None and per_node is not None else None
    if product is not None and total is not None and product != total:
        findings.add_problem(
            f"{CONFIG}: [cluster] total_gpus",
            say(
                "{total}, but node_count {nodes} × gpu_per_node {per_node} = {product}",
                total=total,
                nodes=nodes,
                per_node=per_node,
                product=product,
            ),
            say("one of the three was not changed along with the others"),
            say("total_gpus = {product}, or correct node_count or gpu_per_node", product=product),
        )
    cards = total if total is not None else product
    if cards is not None and domains > cards:
        findings.add_problem(
            f"{CONFIG}: [[scale_up]]",
            say(
                "{domains} domains, but the cluster has {cards} cards, and each domain has at least one",
                domains=domains,
                cards=cards,
            ),
            say("total_gpus was not changed along with the domains"),
            say("correct [cluster], or remove domains"),
        )


def _check_prometheus(monitor: Part | None, findings: Findings) -> None:
    if not isinstance(monitor, Monitor) or monitor.prometheus_url or "monitor.prometheus_url" in findings.failed:
        return
    asked = [device for device, sensor in monitor.sensors.items() if sensor.startswith("prometheus:")]
    if asked:
        findings.add_problem(
            f"{CONFIG}: [monitor] sensors",
            f"{', '.join(asked)} is to come from Prometheus, and no server is named",
            "prometheus_url was forgotten",
            'prometheus_url = "http://127.0.0.1:9090" in [monitor]',
        )


def _doubts(parts: Mapping[str, Part | None]) -> list[str]:
    """Settings that can be meant, but rarely are."""
    monitor = parts["monitor"]
    doubts = []
    if isinstance(monitor, Monitor):
        for part in ("cpu", "gpu"):
            alert = getattr(monitor, f"alert_threshold_{part}_celsius")
            critical = getattr(monitor, f"critical_threshold_{part}_celsius")
            if critical is not None and critical < alert:
                doubts.append(
                    say(
                        "monitor.critical_threshold_{part}_celsius {critical:g} °C is below the alert threshold "
                        "of {alert:g} °C: the load is taken off before anything warns",
                        part=part,
                        critical=critical,
                        alert=alert,
                    )
                )
    return doubts
