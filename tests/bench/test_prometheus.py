"""What a bench says of its Prometheus: an address, which series are its own; secrets stay in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import BenchError, Redactor, load_bench
from pytest_thermal.bench.model import Bench
from pytest_thermal.bench.urls import normalise_server_url

HEAD = '[api]\nbase_url = "http://127.0.0.1:1/v1"\n[monitor]\n'


def bench(folder: Path, lines: str, **environ: str) -> Bench:
    (folder / "config.toml").write_text(HEAD + lines)
    return load_bench(folder, environ=environ)


@pytest.mark.parametrize(
    "given, address",
    [
        ("http://10.0.0.5:9090", "http://10.0.0.5:9090"),
        ("http://10.0.0.5:9090/", "http://10.0.0.5:9090"),
        ("prometheus.example", "https://prometheus.example"),
        ("localhost:9090", "http://localhost:9090"),
        ("http://p:9090/api/v1/query", "http://p:9090"),
        ("http://p:9090/graph?g0.expr=up", "http://p:9090"),
        ("https://g.example/select/0/prometheus/", "https://g.example/select/0/prometheus"),
        ("https://g.example/select/0/prometheus/api/v1", "https://g.example/select/0/prometheus"),
        ("https://g.example/api-gateway", "https://g.example/api-gateway"),
    ],
)
def test_an_address_ends_where_its_queries_begin(given: str, address: str) -> None:
    found, said = normalise_server_url(given)
    assert found == address
    assert (said is None) is (given.rstrip("/") == address)


@pytest.mark.parametrize(
    "line, words",
    [
        ('prometheus_url = "http://ops:secret@p:9090"', "user name or password in the address (not shown)"),
        ('prometheus_url = "ftp://p"', "is not http:// or https://"),
        ('prometheus_labels = {instance = ""}', "a table of labels and texts"),
        ('prometheus_labels = {"in stance" = "a"}', "a table of labels and texts"),
        ('prometheus_labels = "node7"', "a table of labels and texts"),
        ("sensors = {pump0 = 'prometheus:cdu_pump_rpm'}", "pump0 is to come from Prometheus, and no server is named"),
        ("sensors = {'pump0.speed_rpm' = 'ipmi:FAN 1'}", "a table of words and sensors"),
        ("sensors = {'Pump 0' = 'prometheus:x_rpm'}", "a table of words and sensors"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(BenchError) as raised:
        bench(tmp_path, line)
    said = " ".join(str(raised.value).split())
    assert words in said
    assert "secret" not in said


def test_an_expression_is_kept_as_it_is(tmp_path: Path) -> None:
    line = """sensors = {"flow.flow_liters_per_minute" = 'prometheus: cdu_flow{name="Flow  1"} * 60 '}\n"""
    found = bench(tmp_path, f'prometheus_url = "http://p:9090"\n{line}')
    assert found.monitor.sensors == {"flow.flow_liters_per_minute": 'prometheus:cdu_flow{name="Flow  1"} * 60'}


def test_token_and_password_are_secrets_where_there_is_a_prometheus(tmp_path: Path) -> None:
    environ = {"PROMETHEUS_TOKEN": "token-of-the-test", "PROMETHEUS_PASSWORD": "correct-horse"}
    found = bench(tmp_path, 'prometheus_url = "http://p:9090"\n', **environ)
    assert {secret.get_secret_value() for secret in found.secrets()} == set(environ.values())
    assert Redactor(found.secrets()).text("correct-horse token-of-the-test").count("[key ") == 2
    assert not bench(tmp_path, "", **environ).secrets()
