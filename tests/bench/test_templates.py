from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_thermal.bench import find_template, load_bench, template_names
from pytest_thermal.bench.dialects import TABLE
from tests.bench.bench_files import KEY

ENVIRON = {
    "THERMAL_DEMO_URL": "http://127.0.0.1:1/v1",
    "THERMAL_DEMO_KEY": KEY,
    "TAOTOKEN_BASE_URL": "https://gateway.example/v1",
    "TAOTOKEN_API_KEY": KEY,
    "TAOTOKEN_API_KEY_UB0": f"{KEY}0",
    "TAOTOKEN_API_KEY_UB1": f"{KEY}1",
}


def template(name: str) -> Path:
    folder = find_template(name)
    assert folder is not None
    return folder


def test_three_templates_come_with_us() -> None:
    assert template_names() == ("demo", "supernode", "workstation")


@pytest.mark.parametrize("name", ["nothing", "", ".", "..", "../benches/demo", "demo/settings.json"])
def test_no_other_name_finds_one(name: str) -> None:
    assert find_template(name) is None


@pytest.mark.parametrize("name", ["demo", "workstation", "supernode"])
def test_template_loads_without_a_note(name: str) -> None:
    bench = load_bench(template(name), environ=ENVIRON)
    assert bench.notes == ()
    assert bench.name == name
    assert bench.demo is False
    assert all(domain.key_origin.startswith("$") for domain in bench.domains)
    assert [path.name for path in bench.files] == ["settings.json", "config.toml"]


@pytest.mark.parametrize("name,dialect", [("workstation", "workstation"), ("supernode", "supernode")])
def test_template_names_every_key_of_its_dialect(name: str, dialect: str) -> None:
    text = "".join((template(name) / file).read_text(encoding="utf-8") for file in ("settings.json", "config.toml"))
    for row in TABLE:
        alias = row.path[:1] == ("scale_up",) and row.path[-1] in ("domain", "base_url", "api_endpoint", "api_key")
        if row.dialect == dialect and not alias:
            assert re.search(rf"\b{row.path[-1]}\b", text), row.path
        if row.dialect not in (dialect, "both") and len(row.path) > 1:
            assert f"[{row.path[0]}]" not in text


def test_demo() -> None:
    bench = load_bench(template("demo"), environ=ENVIRON, demo=True)
    assert bench.demo is True
    (domain,) = bench.domains
    assert (domain.name, domain.route.default, domain.route.fallback) == ("demo", "demo-chat", "demo-chat-mini")
    assert (bench.rate_limit.requests_per_minute, bench.rate_limit.tokens_per_minute) == (6000, 2_000_000)
    assert (bench.scheduler.timeout_ms, bench.scheduler.batch_size) == (30000, 16)
    assert bench.health_check.enabled


def test_supernode() -> None:
    bench = load_bench(template("supernode"), environ=ENVIRON)
    assert [(domain.name, domain.key_origin) for domain in bench.domains] == [
        ("ub0", "$TAOTOKEN_API_KEY_UB0"),
        ("ub1", "$TAOTOKEN_API_KEY_UB1"),
    ]
    assert {(domain.interconnect, domain.latency_target_us) for domain in bench.domains} == {("ub", 5.0)}
    assert bench.cluster is not None
    assert bench.cluster.total_gpus == 384
    assert bench.scale_out is not None
    assert (bench.scale_out.protocol, bench.scale_out.fallback) == ("rdma", "tcp")
