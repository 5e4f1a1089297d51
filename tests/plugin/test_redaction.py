"""A canary key is searched in everything that a run writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.demo import DemoGateway
from tests.plugin.plugin_runs import CANARY, Run, everything_below, write_bench

LEAKY = """
import base64, logging, urllib.parse, warnings
import pytest

log = logging.getLogger("leaky")


def headers(domain):
    return {"Authorization": "Bearer " + domain.key.get_secret_value()}


def test_assertion(domain):
    assert headers(domain) == {}


def test_local(domain):
    key = domain.key.get_secret_value()
    encoded = urllib.parse.quote(key + "/&")
    raise RuntimeError("no")


def test_message(domain):
    raise ValueError(f"bad key {domain.key.get_secret_value()}")


def test_output(domain):
    key = domain.key.get_secret_value()
    print("printed", key)
    log.warning("logged %s", key)
    try:
        raise OSError(f"sent {key}")
    except OSError:
        log.exception("with traceback")
    warnings.warn(f"warned {key}", UserWarning, stacklevel=1)
    assert 0


def test_property(domain, record_property):
    record_property("header", headers(domain)["Authorization"])


@pytest.fixture
def broken(domain):
    raise LookupError(domain.key.get_secret_value())


def test_fixture(broken):
    pass


def test_skip(domain):
    pytest.skip("because of " + domain.key.get_secret_value())


def test_xfail(domain):
    pytest.xfail("because of " + domain.key.get_secret_value())


def test_repr(bench, domain, api):
    print(repr(bench), bench.model_dump(), bench.model_dump_json(), repr(domain), repr(api.auth), api.headers)
    assert 0


def test_gateway(api):
    answer = api.get("/models")
    assert answer.status_code == 599, (answer.request.headers, answer.request)


def test_checks(access):
    access.require("scheduler_parallel")
"""

LEAKY_ALLURE = """
import allure


def test_allure(domain):
    key = domain.key.get_secret_value()
    allure.dynamic.parameter("key", key)
    allure.dynamic.title("with " + key)
    allure.dynamic.description("about " + key)
    allure.dynamic.link("https://example.test/?key=" + key)
    allure.attach(key, name="as text " + key)
    allure.attach(key.encode(), name="as bytes")
    with open("leak.txt", "w") as file:
        file.write("in a file: " + key)
    allure.attach.file("leak.txt")
    import os
    os.remove("leak.txt")
    with allure.step("step with " + key):
        assert 0, key
"""


@pytest.fixture
def canary_bench(pytester: pytest.Pytester) -> tuple[Path, DemoGateway]:
    gateway = DemoGateway(key=CANARY)
    gateway.start()
    folder = write_bench(pytester.path / "bench", api_endpoint=gateway.url, api_key="${CANARY_KEY}")
    return folder, gateway


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_key_is_in_nothing_that_is_written(
    run: Run, pytester: pytest.Pytester, canary_bench: tuple[Path, DemoGateway], workers: tuple[str, ...]
) -> None:
    folder, gateway = canary_bench
    pytester.makepyfile(test_leaky=LEAKY, test_leaky_allure=LEAKY_ALLURE)
    with gateway:
        result = run(
            "--bench",
            folder,
            *workers,
            "--showlocals",
            "-rA",
            "--junitxml",
            "out/junit.xml",
            "--alluredir",
            "out/allure",
            "--log-file",
            "out/log.txt",
            "--log-level",
            "DEBUG",
            env={"CANARY_KEY": CANARY},
        )
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 7, result.stdout.str()
    assert outcomes["errors"] == 1
    assert outcomes["skipped"] == 1
    assert outcomes["xfailed"] == 1
    assert outcomes["passed"] >= 2
    written = result.stdout.str() + result.stderr.str() + everything_below(pytester.path / "out")
    assert "[key sk-c…]" in written
    for number in range(len(CANARY) - 12):
        # No part of the key either: a tail of it is as good as the whole to who has the rest.
        assert CANARY[number : number + 12] not in written.replace("sk-c…", "")


def test_wrong_key_is_told_by_head_and_length_alone(gate: Run, pytester: pytest.Pytester) -> None:
    with DemoGateway(key="sk-good-0123456789abcdef") as gateway:
        folder = write_bench(pytester.path / "bench", api_endpoint=gateway.url, api_key="${CANARY_KEY}")
        result = gate("--bench", folder, "--tb=long", "-l", "-vv", env={"CANARY_KEY": CANARY})
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == 1
    assert f"(sk-c…, {len(CANARY)} characters)" in text
    assert CANARY[4:16] not in text
    assert CANARY[-8:] not in text


@pytest.mark.parametrize(
    "key",
    ["sk-with-newline-0123456789\n", "sk-ünïcode-0123456789", "sk-“quoted”-0123456789", " sk-blank-0123456789 "],
    ids=["newline", "unicode", "quotes", "blank"],
)
def test_a_key_that_cannot_be_sent_is_a_key_finding(gate: Run, pytester: pytest.Pytester, key: str) -> None:
    with DemoGateway(key="sk-good-0123456789abcdef") as gateway:
        folder = write_bench(pytester.path / "bench", api_endpoint=gateway.url, api_key="${ODD_KEY}")
        result = gate("--bench", folder, "-l", env={"ODD_KEY": key})
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["E   key: *", "E   likely: *", "E   try: *$ODD_KEY*"])
    assert "Traceback" not in text
    assert key.strip()[5:] not in text
