from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.bench import Bench
from pytest_thermal.bench.dialects import TABLE, RawKey, Stray, advice_on_stray, leaves, row_of
from pytest_thermal.bench.kinds import Address
from tests.bench.bench_files import ADDRESS, ENVIRON, KEY, read_bench

# file, path, what stands in the file (as JSON or TOML), our setting, our value
MEANINGS: list[tuple[str, str, str, str, object]] = [
    ("settings.json", "api.timeout_seconds", "90", "timeouts.read_seconds", 90.0),
    ("settings.json", "api.max_retries", "3", "retry.max_attempts", 4),
    ("settings.json", "api.max_retries", "0", "retry.max_attempts", 1),
    ("settings.json", "api.retry_backoff_seconds", "2", "retry.backoff_seconds", 2.0),
    ("settings.json", "inference.max_tokens", "64", "inference.max_tokens", 64),
    ("settings.json", "inference.temperature", "0.7", "inference.temperature", 0.7),
    ("settings.json", "inference.stream", "false", "inference.stream", False),
    ("settings.json", "stress_test.concurrent_requests", "12", "stress.concurrent_requests", 12),
    ("settings.json", "stress_test.request_interval_ms", "250", "stress.request_interval_seconds", 0.25),
    ("settings.json", "stress_test.request_interval_ms", "0", "stress.request_interval_seconds", 0.0),
    ("settings.json", "stress_test.duration_seconds", "600", "stress.duration_seconds", 600.0),
    ("settings.json", "stress_test.warmup_seconds", "0", "stress.warmup_seconds", 0.0),
    ("settings.json", "monitor.sample_interval_seconds", "0.5", "monitor.sample_interval_seconds", 0.5),
    ("settings.json", "monitor.cpu_temp_path", '"/sys/x"', "monitor.cpu_temp_path", "/sys/x"),
    (
        "settings.json",
        "monitor.gpu_temp_cmd",
        "\"a | awk '{print $1}'\"",
        "monitor.gpu_temp_cmd",
        "a | awk '{print $1}'",
    ),
    ("settings.json", "monitor.log_dir", '"logs"', "monitor.log_dir", "logs"),
    ("settings.json", "rate_limit.tokens_per_minute", "100", "rate_limit.tokens_per_minute", 100),
    ("settings.json", "rate_limit.requests_per_minute", "60", "rate_limit.requests_per_minute", 60),
    ("settings.json", "retry_policy.max_attempts", "5", "retry.max_attempts", 5),
    ("settings.json", "retry_policy.backoff_ms", "250", "retry.backoff_seconds", 0.25),
    ("settings.json", "health_check.enabled", "true", "health_check.enabled", True),
    ("settings.json", "health_check.interval_sec", "7", "health_check.interval_seconds", 7.0),
    ("settings.json", "health_check.endpoint", '"/health"', "health_check.endpoint", "/health"),
    ("settings.json", "health_check.endpoint", '"v1/models"', "health_check.endpoint", "/v1/models"),
    ("config.toml", "api.connect_timeout", "3", "timeouts.connect_seconds", 3.0),
    ("config.toml", "api.read_timeout", '"120"', "timeouts.read_seconds", 120.0),
    ("config.toml", "thermal.sample_interval", "1", "monitor.sample_interval_seconds", 1.0),
    ("config.toml", "thermal.cpu_zones", '[0, "x86_pkg_temp"]', "monitor.cpu_zones", (0, "x86_pkg_temp")),
    ("config.toml", "thermal.gpu_indices", "[0, 3]", "monitor.gpu_indices", (0, 3)),
    ("config.toml", "thermal.alert_threshold_cpu", "80", "monitor.alert_threshold_cpu_celsius", 80.0),
    ("config.toml", "thermal.alert_threshold_gpu", "75.5", "monitor.alert_threshold_gpu_celsius", 75.5),
    ("config.toml", "thermal.critical_threshold_cpu", "99", "monitor.critical_threshold_cpu_celsius", 99.0),
    ("config.toml", "thermal.critical_threshold_gpu", "95", "monitor.critical_threshold_gpu_celsius", 95.0),
    (
        "config.toml",
        "monitor.sensors",
        '{pump0 = "ipmi:FAN  7", coolant_supply = "ipmi:Liquid In"}',
        "monitor.sensors",
        {"pump0": "ipmi:FAN 7", "coolant_supply": "ipmi:Liquid In"},
    ),
    ("config.toml", "monitor.ipmi_host", '"10.0.0.20:6623"', "monitor.ipmi_host", "10.0.0.20:6623"),
    ("config.toml", "monitor.ipmi_user", '"operator"', "monitor.ipmi_user", "operator"),
    ("config.toml", "monitor.ipmi_cipher_suite", "3", "monitor.ipmi_cipher_suite", 3),
    (
        "config.toml",
        "monitor.prometheus_url",
        '"http://10.0.0.5:9090/"',
        "monitor.prometheus_url",
        "http://10.0.0.5:9090",
    ),
    ("config.toml", "monitor.prometheus_user", '"operator"', "monitor.prometheus_user", "operator"),
    (
        "config.toml",
        "monitor.prometheus_labels",
        '{instance = ["node7", "bmc7"], cluster = "a"}',
        "monitor.prometheus_labels",
        {"instance": ("node7", "bmc7"), "cluster": ("a",)},
    ),
    ("config.toml", "stress.mode", '"GPU"', "stress.mode", "gpu"),
    ("config.toml", "stress.cpu_workers", "16", "stress.cpu_workers", 16),
    ("config.toml", "stress.gpu_workers", "0", "stress.gpu_workers", 0),
    ("config.toml", "stress.inference_workers", "4", "stress.inference_workers", 4),
    ("config.toml", "stress.inference_ratio", "1", "stress.inference_ratio", 1.0),
    ("config.toml", "stress.duration", '"60m"', "stress.duration_seconds", 3600.0),
    ("config.toml", "stress.duration", '"90s"', "stress.duration_seconds", 90.0),
    ("config.toml", "stress.duration", '"1.5 h"', "stress.duration_seconds", 5400.0),
    ("config.toml", "stress.duration", "45", "stress.duration_seconds", 45.0),
    ("config.toml", "stress.duration", '"45"', "stress.duration_seconds", 45.0),
    ("config.toml", "logging.level", '"warn"', "logging.level", "WARNING"),
    ("config.toml", "logging.output", '"x.log"', "logging.output", "x.log"),
    ("config.toml", "logging.rotate_size_mb", "10", "logging.rotate_size_mb", 10.0),
    ("config.toml", "cluster.name", '"pod"', "cluster.name", "pod"),
    ("config.toml", "cluster.scale_up_domain", '"ub0"', "cluster.scale_up_domain", "ub0"),
    ("config.toml", "cluster.scale_up_domain", "384", "cluster.scale_up_domain", 384),
    ("config.toml", "cluster.node_count", "48", "cluster.node_count", 48),
    ("config.toml", "cluster.gpu_per_node", "8", "cluster.gpu_per_node", 8),
    ("config.toml", "cluster.total_gpus", "384", "cluster.total_gpus", 384),
    ("config.toml", "token_scheduler.timeout_ms", "20000", "scheduler.timeout_ms", 20000),
    ("config.toml", "token_scheduler.max_retries", "2", "retry.max_attempts", 3),
    ("config.toml", "token_scheduler.batch_size", "32", "scheduler.batch_size", 32),
    ("config.toml", "scale_out.enabled", "false", "scale_out.enabled", False),
    ("config.toml", "scale_out.protocol", '"roce"', "scale_out.protocol", "roce"),
    ("config.toml", "scale_out.fallback", '"tcp"', "scale_out.fallback", "tcp"),
]
DOMAIN_MEANINGS: list[tuple[str, str, str, str, object]] = [
    ("settings.json", "api.base_url", '"http://h:1/v1"', "base_url", "http://h:1/v1"),
    ("settings.json", "api_endpoint", '"${GATEWAY}"', "base_url", "http://127.0.0.1:9000/v1"),
    ("settings.json", "api.api_key", '"${TAOTOKEN_API_KEY}"', "key", KEY),
    ("settings.json", "api_key", '"${TAOTOKEN_API_KEY}"', "key", KEY),
    ("settings.json", "inference.model", '"m"', "route.default", "m"),
    ("settings.json", "model_route.default", '"m"', "route.default", "m"),
    ("settings.json", "model_route.fallback", '"n"', "route.fallback", "n"),
    ("config.toml", "api.base_url", '"http://h:1/v1"', "base_url", "http://h:1/v1"),
    ("config.toml", "api.api_key_env", '"TAOTOKEN_API_KEY"', "key", KEY),
    ("config.toml", "token_scheduler.api_base", '"http://h:1/v1"', "base_url", "http://h:1/v1"),
    ("config.toml", "token_scheduler.api_key_env", '"TAOTOKEN_API_KEY"', "key", KEY),
    ("config.toml", "scale_up.api_base", '"http://h:1/v1"', "base_url", "http://h:1/v1"),
    ("config.toml", "scale_up.base_url", '"http://h:1/v1"', "base_url", "http://h:1/v1"),
    ("config.toml", "scale_up.api_endpoint", '"http://h:1/v1"', "base_url", "http://h:1/v1"),
    ("config.toml", "scale_up.api_key_env", '"TAOTOKEN_API_KEY"', "key", KEY),
    ("config.toml", "scale_up.api_key", '"${TAOTOKEN_API_KEY}"', "key", KEY),
    ("config.toml", "scale_up.model_route.default", '"m"', "route.default", "m"),
    ("config.toml", "scale_up.model_route.fallback", '"n"', "route.fallback", "n"),
    ("config.toml", "scale_up.name", '"east"', "name", "east"),
    ("config.toml", "scale_up.domain", '"east"', "name", "east"),
    ("config.toml", "scale_up.scale_up_domain", '"east"', "name", "east"),
    ("config.toml", "scale_up.interconnect", '"ub"', "interconnect", "ub"),
    ("config.toml", "scale_up.latency_target_us", "5", "latency_target_us", 5.0),
    ("config.toml", "scale_up.memory_pool", '"pooled"', "memory_pool", "pooled"),
    ("config.toml", "scale_up.memory_pool", "true", "memory_pool", True),
    ("config.toml", "scale_up.memory_pool", "1024", "memory_pool", 1024),
    ("config.toml", "scale_up.memory_pool", "0.5", "memory_pool", 0.5),
]


def bench_with(folder: Path, file: str, path: str, text: str) -> Bench:
    """A bench whose files hold this one key, and an address where it is not the key."""
    section, _, name = path.rpartition(".")
    if file == "config.toml":
        config = f"[{section}]\n{name} = {text}\n"
        needs_address = not isinstance(row_at(file, path).kind, Address)
        return read_bench(folder, ADDRESS if needs_address else None, config)
    value = json.loads(text)
    settings: dict[str, Any] = {section: {name: value}} if section else {name: value}
    if not isinstance(row_at(file, path).kind, Address):
        settings |= ADDRESS
    return read_bench(folder, settings)


def row_at(file: str, path: str) -> RawKey:
    return next(row for row in TABLE if (row.file, ".".join(row.path)) == (file, path))


def origin_of(file: str, path: str) -> str:
    if file == "settings.json":
        return f"settings.json {path}"
    section, _, name = path.partition(".")
    return f"config.toml [{section}] {name}"


@pytest.mark.parametrize("file,path,text,setting,value", MEANINGS)
def test_key_becomes_its_setting(
    tmp_path: Path, *, file: str, path: str, text: str, setting: str, value: object
) -> None:
    bench = bench_with(tmp_path, file, path, text)
    group, _, name = setting.partition(".")
    found = getattr(getattr(bench, group), name)
    assert found == value
    assert type(found) is type(value)
    assert bench.origin(setting) == origin_of(file, path)


@pytest.mark.parametrize("file,path,text,setting,value", DOMAIN_MEANINGS)
def test_key_becomes_the_domains_setting(
    tmp_path: Path, file: str, path: str, text: str, setting: str, value: object
) -> None:
    bench = bench_with(tmp_path, file, path, text)
    (domain,) = bench.domains
    found: object = domain
    for name in setting.split("."):
        found = getattr(found, name)
    if setting == "key":
        assert domain.key is not None
        found = domain.key.get_secret_value()
        assert domain.key_origin == "$TAOTOKEN_API_KEY"
    assert found == value
    assert type(found) is type(value)
    origin = bench.origin(f"domains.{domain.name}.{setting}")
    assert origin.removesuffix(" ($TAOTOKEN_API_KEY)") == origin_of(file, path)


def test_every_key_of_the_table_is_tried_above() -> None:
    tried = {(file, path) for file, path, *_ in [*MEANINGS, *DOMAIN_MEANINGS]}
    assert tried == {(row.file, ".".join(row.path)) for row in TABLE}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: ".".join(row.path))
def test_the_example_of_each_key_is_right(tmp_path: Path, row: RawKey) -> None:
    environ = {**ENVIRON, "TAOTOKEN_API_KEY_UB0": KEY}
    section, name = ".".join(row.path[:-1]), row.path[-1]
    if row.file == "config.toml":
        config = f"[{section}]\n{name} = {row.example}\n"
        settings: dict[str, Any] | None = dict(ADDRESS)
    else:
        value = json.loads(row.example)
        config, settings = "", dict(ADDRESS) | ({section: {name: value}} if section else {name: value})
    bench = read_bench(tmp_path, settings, config or None, environ=environ)
    assert bench.domains


def test_both_dialects_of_both_files_mix(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path,
        {"api": {"base_url": "http://h:1/v1"}, "api_key": "${OTHER_KEY}", "rate_limit": {"tokens_per_minute": 9}},
        "[api]\nconnect_timeout = 4\n[token_scheduler]\nbatch_size = 3\n[thermal]\nsample_interval = 2\n",
    )
    assert bench.domains[0].base_url == "http://h:1/v1"
    assert bench.domains[0].key_origin == "$OTHER_KEY"
    assert (bench.timeouts.connect_seconds, bench.scheduler.batch_size) == (4, 3)
    assert (bench.rate_limit.tokens_per_minute, bench.monitor.sample_interval_seconds) == (9, 2)
    assert [path.name for path in bench.files] == ["settings.json", "config.toml"]


def test_config_alone_is_a_bench(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, None, '[api]\nbase_url = "http://h:1/v1"\napi_key_env = "OTHER_KEY"\n')
    assert bench.domains[0].key_origin == "$OTHER_KEY"
    assert bench.cluster is None
    assert bench.scale_out is None


def test_defaults_are_those_of_the_dialect_in_use(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "s").mkdir()
    (tmp_path / "c").mkdir()
    workstation = read_bench(tmp_path / "w", {"api": {"base_url": "http://h:1/v1"}})
    supernode = read_bench(tmp_path / "s", ADDRESS, '[logging]\nlevel = "INFO"\n')
    config = read_bench(tmp_path / "c", None, '[api]\nbase_url = "http://h:1/v1"\n')
    assert (workstation.retry.max_attempts, workstation.retry.backoff_seconds) == (4, 2.0)
    assert (supernode.retry.max_attempts, supernode.retry.backoff_seconds) == (3, 0.5)
    assert [b.timeouts.read_seconds for b in (workstation, supernode, config)] == [120.0, 120.0, 180.0]
    assert supernode.origin("retry.max_attempts") == "default"


def test_health_check_is_on_when_the_files_describe_it(tmp_path: Path) -> None:
    assert read_bench(tmp_path, ADDRESS).health_check.enabled is False
    assert read_bench(tmp_path, {**ADDRESS, "health_check": {"interval_sec": 3}}).health_check.enabled is True
    off = read_bench(tmp_path, {**ADDRESS, "health_check": {"interval_sec": 3, "enabled": False}})
    assert off.health_check.enabled is False


def test_null_counts_as_not_given(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {**ADDRESS, "api_key": None, "model_route": {"default": "m", "fallback": None}})
    assert bench.domains[0].key is None
    assert bench.domains[0].route.fallback is None
    assert bench.origin("route.fallback") == "default"


SECRETS = ("ipmi_password", "prometheus_password", "prometheus_token")


def test_every_setting_has_an_origin(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, ADDRESS, "[cluster]\nnode_count = 1\n[scale_out]\nenabled = true\n")
    for group, part in bench:
        if group in ("name", "folder", "files", "demo", "domains", "origins", "notes") or group in SECRETS:
            continue
        for name in type(part).model_fields:
            assert bench.origin(f"{group}.{name}")
    with pytest.raises(KeyError):
        bench.origin("timeouts.read")


def test_each_setting_of_the_table_exists(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, ADDRESS, "[cluster]\nnode_count = 1\n[scale_out]\nenabled = true\n")
    domain = f"domains.{bench.domains[0].name}."
    for row in TABLE:
        assert row.setting.replace("domain.", domain) in bench.origins, row
        assert row_of(row.setting) is not None


def test_values_do_not_show_in_what_is_passed_on() -> None:
    (leaf,) = leaves("settings.json", {"api_key": KEY})
    (stray,) = leaves("settings.json", {"apikey": KEY})
    assert KEY not in repr(leaf) + repr(stray)
    assert isinstance(stray, Stray)
    assert advice_on_stray(stray.place)[0] == "nearest known key: api_key"
