"""The table: which key of which file gives which setting, in which unit. Nothing else knows the files' keys.

Its order is the precedence: config.toml before settings.json, and within one file the workstation's dialect before
the supernode's. A file may mix both dialects.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pytest_thermal.bench.files import CONFIG, SETTINGS
from pytest_thermal.bench.kinds import (
    Address,
    Duration,
    Endpoint,
    Flag,
    Items,
    Key,
    KeyVariable,
    Kind,
    Labels,
    Number,
    Scalar,
    Sensors,
    ServerAddress,
    Text,
    Whole,
)
from pytest_thermal.model.said import joined, say

DOMAIN: Final = "domain."
"""Prefix of the settings that one scale-up domain has for itself."""

_Dialect = Literal["workstation", "supernode", "both"]
_Path = tuple[str, ...]

_SECONDS = Number(unit="seconds", our_unit="s", above=True)
_PAUSE = Number(unit="seconds", our_unit="s")
_PAUSE_MS = Number(unit="milliseconds", our_unit="s", scale=0.001)
_CELSIUS = Number(unit="°C", above=True, most=150, hint=say("in °C, not millidegrees or °F"))
_SHARE = Number(most=1, hint=say("a share: 60 % is 0.6"))
_COUNT = Whole()
_WORKERS = Whole(least=0)
_RETRIES = Whole(least=0, add=1)
_LEVELS = {level.lower(): level for level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")} | {"warn": "WARNING"}


@dataclass(frozen=True, kw_only=True)
class RawKey:
    """One key of one file."""

    file: str
    dialect: _Dialect
    path: _Path
    setting: str
    kind: Kind = field(repr=False)
    example: str
    """How a right value looks in this file."""
    default: object = None
    """Our unit. Set where this dialect's default differs from the model's."""


def _keys(
    file: str, dialect: _Dialect, section: str, *keys: tuple[str, str, Kind, str] | tuple[str, str, Kind, str, object]
) -> Iterator[RawKey]:
    for name, setting, kind, example, *default in keys:
        path = tuple(filter(None, (*section.split("."), name)))
        yield RawKey(
            file=file, dialect=dialect, path=path, setting=setting, kind=kind, example=example,
            default=default[0] if default else None,
        )  # fmt: skip


TABLE: Final[tuple[RawKey, ...]] = (
    # config.toml, workstation
    *_keys(
        CONFIG, "workstation", "api",
        ("base_url", "base_url", Address(), '"http://127.0.0.1:8000/v1"'),
        ("api_key_env", "key", KeyVariable(), '"TAOTOKEN_API_KEY"'),
        ("connect_timeout", "timeouts.connect_seconds", _SECONDS, "30"),
        ("read_timeout", "timeouts.read_seconds", _SECONDS, "180", 180.0),
    ),
    *_keys(
        CONFIG, "workstation", "thermal",
        ("sample_interval", "monitor.sample_interval_seconds", _SECONDS, "5"),
        ("cpu_zones", "monitor.cpu_zones", Items(names=True), '[0, "x86_pkg_temp"]'),
        ("gpu_indices", "monitor.gpu_indices", Items(), "[0, 1]"),
        ("alert_threshold_cpu", "monitor.alert_threshold_cpu_celsius", _CELSIUS, "85"),
        ("alert_threshold_gpu", "monitor.alert_threshold_gpu_celsius", _CELSIUS, "83"),
        ("critical_threshold_cpu", "monitor.critical_threshold_cpu_celsius", _CELSIUS, "95"),
        ("critical_threshold_gpu", "monitor.critical_threshold_gpu_celsius", _CELSIUS, "90"),
    ),
    *_keys(
        CONFIG, "workstation", "monitor",
        ("sensors", "monitor.sensors", Sensors(sources=("ipmi", "redfish", "prometheus")), '{pump0 = "ipmi:FAN 7"}'),
        ("ipmi_host", "monitor.ipmi_host", Text(), '"10.0.0.20"'),
        ("ipmi_user", "monitor.ipmi_user", Text(), '"operator"'),
        ("ipmi_cipher_suite", "monitor.ipmi_cipher_suite", Whole(least=0), "17"),
        ("redfish_host", "monitor.redfish_host", Text(), '"10.0.0.20"'),
        ("redfish_user", "monitor.redfish_user", Text(), '"operator"'),
        ("redfish_ca", "monitor.redfish_ca", Text(), '"bmc.pem"'),
        ("prometheus_url", "monitor.prometheus_url", ServerAddress(), '"http://127.0.0.1:9090"'),
        ("prometheus_user", "monitor.prometheus_user", Text(), '"operator"'),
        ("prometheus_labels", "monitor.prometheus_labels", Labels(), '{instance = "node7"}'),
    ),
    *_keys(
        CONFIG, "workstation", "stress",
        ("mode", "stress.mode", Text(choices={m: m for m in ("cpu", "gpu", "inference", "mixed")}), '"mixed"'),
        ("cpu_workers", "stress.cpu_workers", _WORKERS, "16"),
        ("gpu_workers", "stress.gpu_workers", _WORKERS, "1"),
        ("inference_workers", "stress.inference_workers", _COUNT, "2"),
        ("inference_ratio", "stress.inference_ratio", _SHARE, "0.6"),
        ("duration", "stress.duration_seconds", Duration(), '"60m"'),
    ),
    *_keys(
        CONFIG, "both", "logging",
        ("level", "logging.level", Text(choices=_LEVELS), '"INFO"'),
        ("output", "logging.output", Text(), '"reports/thermal.log"'),
        ("rotate_size_mb", "logging.rotate_size_mb", Number(unit="MB", above=True), "100"),
    ),
    # config.toml, supernode
    *_keys(
        CONFIG, "supernode", "token_scheduler",
        ("api_base", "base_url", Address(), '"https://gateway.example/v1"'),
        ("api_key_env", "key", KeyVariable(), '"TAOTOKEN_API_KEY"'),
        ("timeout_ms", "scheduler.timeout_ms", Whole(unit="ms"), "30000"),
        ("max_retries", "retry.max_attempts", _RETRIES, "2"),
        ("batch_size", "scheduler.batch_size", _COUNT, "16"),
    ),
    *_keys(
        CONFIG, "supernode", "cluster",
        ("name", "cluster.name", Text(), '"pod-a"'),
        ("scale_up_domain", "cluster.scale_up_domain", Scalar(), '"ub0"'),
        ("node_count", "cluster.node_count", _COUNT, "48"),
        ("gpu_per_node", "cluster.gpu_per_node", _COUNT, "8"),
        ("total_gpus", "cluster.total_gpus", _COUNT, "384"),
    ),
    *_keys(
        CONFIG, "supernode", "scale_up",
        ("name", "domain.name", Text(), '"ub0"'),
        ("domain", "domain.name", Text(), '"ub0"'),
        ("scale_up_domain", "domain.name", Text(), '"ub0"'),
        ("api_base", "domain.base_url", Address(), '"https://gateway.example/v1"'),
        ("base_url", "domain.base_url", Address(), '"https://gateway.example/v1"'),
        ("api_endpoint", "domain.base_url", Address(), '"https://gateway.example/v1"'),
        ("api_key_env", "domain.key", KeyVariable(), '"TAOTOKEN_API_KEY_UB0"'),
        ("api_key", "domain.key", Key(), '"${TAOTOKEN_API_KEY_UB0}"'),
        ("interconnect", "domain.interconnect", Text(), '"ub"'),
        ("latency_target_us", "domain.latency_target_us", Number(unit="µs", above=True), "5"),
        ("memory_pool", "domain.memory_pool", Scalar(any_number=True), "true"),
    ),
    *_keys(
        CONFIG, "supernode", "scale_up.model_route",
        ("default", "domain.route.default", Text(), '"deepseek-v3"'),
        ("fallback", "domain.route.fallback", Text(), '"qwen3-32b"'),
    ),
    *_keys(
        CONFIG, "supernode", "scale_out",
        ("enabled", "scale_out.enabled", Flag(), "true"),
        ("protocol", "scale_out.protocol", Text(), '"rdma"'),
        ("fallback", "scale_out.fallback", Text(), '"tcp"'),
    ),
    # settings.json, workstation
    *_keys(
        SETTINGS, "workstation", "api",
        ("base_url", "base_url", Address(), '"http://127.0.0.1:8000/v1"'),
        ("api_key", "key", Key(), '"${TAOTOKEN_API_KEY}"'),
        ("timeout_seconds", "timeouts.read_seconds", _SECONDS, "120"),
        ("max_retries", "retry.max_attempts", _RETRIES, "3"),
        ("retry_backoff_seconds", "retry.backoff_seconds", _PAUSE, "2"),
    ),
    *_keys(
        SETTINGS, "workstation", "inference",
        ("model", "route.default", Text(), '"deepseek-v3"'),
        ("max_tokens", "inference.max_tokens", _COUNT, "256"),
        ("temperature", "inference.temperature", Number(), "0.0"),
        ("stream", "inference.stream", Flag(), "true"),
    ),
    *_keys(
        SETTINGS, "workstation", "stress_test",
        ("concurrent_requests", "stress.concurrent_requests", _COUNT, "8"),
        ("request_interval_ms", "stress.request_interval_seconds", _PAUSE_MS, "200"),
        ("duration_seconds", "stress.duration_seconds", _SECONDS, "3600"),
        ("warmup_seconds", "stress.warmup_seconds", _PAUSE, "120"),
    ),
    *_keys(
        SETTINGS, "workstation", "monitor",
        ("sample_interval_seconds", "monitor.sample_interval_seconds", _SECONDS, "5"),
        ("cpu_temp_path", "monitor.cpu_temp_path", Text(), '"/sys/class/thermal/thermal_zone0/temp"'),
        ("gpu_temp_cmd", "monitor.gpu_temp_cmd", Text(), '"npu-smi info"'),
        ("log_dir", "monitor.log_dir", Text(), '"reports/logs"'),
    ),
    # settings.json, supernode
    *_keys(
        SETTINGS, "supernode", "",
        ("api_endpoint", "base_url", Address(), '"https://gateway.example/v1"'),
        ("api_key", "key", Key(), '"${TAOTOKEN_API_KEY}"'),
    ),
    *_keys(
        SETTINGS, "supernode", "model_route",
        ("default", "route.default", Text(), '"deepseek-v3"'),
        ("fallback", "route.fallback", Text(), '"qwen3-32b"'),
    ),
    *_keys(
        SETTINGS, "supernode", "rate_limit",
        ("tokens_per_minute", "rate_limit.tokens_per_minute", _COUNT, "2000000"),
        ("requests_per_minute", "rate_limit.requests_per_minute", _COUNT, "6000"),
    ),
    *_keys(
        SETTINGS, "supernode", "retry_policy",
        ("max_attempts", "retry.max_attempts", _COUNT, "3", 3),
        ("backoff_ms", "retry.backoff_seconds", _PAUSE_MS, "500", 0.5),
    ),
    *_keys(
        SETTINGS, "supernode", "health_check",
        ("enabled", "health_check.enabled", Flag(), "true"),
        ("interval_sec", "health_check.interval_seconds", _SECONDS, "30"),
        ("endpoint", "health_check.endpoint", Endpoint(), '"/v1/models"'),
    ),
)  # fmt: skip

# A table, or an array of tables: one per domain.
_REPEATED: Final[frozenset[tuple[str, _Path]]] = frozenset({(CONFIG, ("scale_up",))})


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a value stands: file, path of keys, and which table of an array."""

    file: str
    path: _Path
    index: int | None = None

    @property
    def key(self) -> str:
        """The path as the file's users write it: `api.base_url`, `[api] base_url`, `[[scale_up]] #2 api_base`."""
        if self.file == SETTINGS:
            return ".".join(self.path)
        section, rest = self.path[0], ".".join(self.path[1:])
        if self.index is not None:
            return f"[[{section}]] #{self.index + 1} {rest}".rstrip()
        is_section = bool(rest) or section in _sections(self.file)
        return f"[{section}] {rest}".rstrip() if is_section else section

    @property
    def origin(self) -> str:
        """`config.toml [api] base_url`."""
        return f"{self.file} {self.key}"

    @property
    def where(self) -> str:
        """`config.toml: [api] base_url`, for an error."""
        return f"{self.file}: {self.key}"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A value at a known key, as it was read."""

    place: Place
    row: RawKey
    value: object = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Stray:
    """What stands where it cannot: an unknown key, or a value where a section should be."""

    place: Place
    value: object = field(repr=False)
    section: tuple[str, ...] = ()
    """Known keys below this place, where a section should be."""


def leaves(file: str, tree: Mapping[str, object]) -> Iterator[Leaf | Stray]:
    """Everything in a file: values at known keys, and what is not known."""
    yield from _walk(file, (), tree, None)


def _walk(file: str, prefix: _Path, tree: Mapping[str, object], index: int | None) -> Iterator[Leaf | Stray]:
    for name, value in tree.items():
        path = (*prefix, name)
        place = Place(file=file, path=path, index=index)
        row = _ROWS.get((file, path))
        below = _names_below(file, path)
        if row is not None:
            yield Leaf(place=place, row=row, value=value)
        elif not below:
            yield Stray(place=place, value=value)
        elif isinstance(value, Mapping):
            yield from _walk(file, path, value, index)
        elif isinstance(value, list) and (file, path) in _REPEATED:
            for number, item in enumerate(value):
                if isinstance(item, Mapping):
                    yield from _walk(file, path, item, number)
                else:
                    yield Stray(place=Place(file=file, path=path, index=number), value=item, section=below)
        else:
            yield Stray(place=place, value=value, section=below)


def _names_below(file: str, path: _Path) -> tuple[str, ...]:
    """Names of keys and sections one level below."""
    depth = len(path)
    return tuple(
        dict.fromkeys(
            row.path[depth] for row in TABLE if row.file == file and row.path[:depth] == path and len(row.path) > depth
        )
    )


def _sections(file: str) -> frozenset[str]:
    return frozenset(row.path[0] for row in TABLE if row.file == file and len(row.path) > 1)


_ROWS: Final = {(row.file, row.path): row for row in TABLE}


def domain_tables(tree: Mapping[str, object]) -> int:
    """How many scale-up domains a config.toml describes; 0 when it says nothing of any."""
    value = tree.get("scale_up")
    return len(value) if isinstance(value, list) else int(isinstance(value, Mapping))


def advice_on_stray(place: Place) -> tuple[str, frozenset[str]]:
    """For an unknown key: where it belongs or the nearest known key, and the settings that may be meant."""
    name, parent = place.path[-1], place.path[:-1]
    if place.file == SETTINGS and name.startswith(("_", "//", "#", "$")):
        return say("JSON has no comments: they are at home in config.toml"), frozenset()
    rows = sorted(TABLE, key=lambda row: row.file != place.file)
    homes = [row for row in rows if name in (row.path[-1], row.path[0])]
    advice, meant = [], {row.setting for row in homes}
    if homes:
        first = [_home(row, name, place.file) for row in homes if row.file == homes[0].file]
        advice.append(say("{name} belongs {names}", name=name, names=joined(" or ", dict.fromkeys(first))))
    siblings = _names_below(place.file, parent)
    near = difflib.get_close_matches(name.lower(), siblings, n=1, cutoff=0.6)
    if near or not homes:
        path = (*parent, near[0]) if near else _nearest(place.file, name, parent)
        index = place.index if path[:1] == place.path[:1] else None
        advice.append(say("nearest known key: {key}", key=Place(file=place.file, path=path, index=index).key))
        meant |= {row.setting for row in TABLE if row.file == place.file and row.path[: len(path)] == path}
    return joined("; ", advice), frozenset(meant)


def _nearest(file: str, name: str, parent: _Path) -> _Path:
    def likeness(path: _Path) -> tuple[float, bool]:
        return difflib.SequenceMatcher(None, name.lower(), path[-1]).ratio(), path[:-1] == parent

    paths = [row.path for row in TABLE if row.file == file]
    return max([*paths, *((section,) for section in _sections(file))], key=likeness)


def _home(row: RawKey, name: str, file: str) -> str:
    in_file = "" if row.file == file else say(" of {file}", file=row.file)
    section = "" if row.path[-1] != name else ".".join(row.path[:-1])
    if not section:
        return say("at the top level{in_file}", in_file=in_file)
    return say("in {and_file}{in_file}", and_file=f"[{section}]" if row.file == CONFIG else section, in_file=in_file)


def row_of(setting: str) -> RawKey | None:
    """The first key that gives a setting."""
    return next((row for row in TABLE if row.setting == setting), None)


def dialect_defaults(in_use: frozenset[tuple[str, str]]) -> dict[str, object]:
    """Defaults of the dialects that a bench's files use (pairs of file and dialect), where they are not the model's."""
    found: dict[str, object] = {}
    for row in TABLE:
        if row.default is not None and (row.file, row.dialect) in in_use:
            found.setdefault(row.setting, row.default)
    return found
