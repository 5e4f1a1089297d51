from __future__ import annotations

from pathlib import Path

from pytest_thermal.bench import describe_key
from tests.bench.bench_files import ADDRESS, ENVIRON, KEY, OTHER_KEY, read_bench, refusal

URL = "http://127.0.0.1:9000/v1"


def test_config_wins_over_settings_and_says_so(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {"api": {"base_url": URL, "timeout_seconds": 120}}, "[api]\nread_timeout = 180\n")
    assert bench.timeouts.read_seconds == 180
    assert bench.origin("timeouts.read_seconds") == "config.toml [api] read_timeout"
    assert bench.notes == (
        (
            "timeouts.read_seconds: 180 s from config.toml [api] read_timeout, "
            "not 120 s from settings.json api.timeout_seconds"
        ),
    )


def test_equal_values_are_no_conflict(tmp_path: Path) -> None:
    settings = {"api": {"base_url": f"{URL}", "timeout_seconds": 180, "api_key": "${TAOTOKEN_API_KEY}"}}
    config = f'[api]\nread_timeout = 180.0\nbase_url = "{URL}"\napi_key_env = "SAME"\n[stress]\nduration = "60m"\n'
    bench = read_bench(
        tmp_path,
        {**settings, "stress_test": {"duration_seconds": 3600}},
        config,
        environ={**ENVIRON, "SAME": KEY},
    )
    assert bench.notes == ()
    assert bench.domains[0].key_origin == "$SAME"


def test_addresses_are_compared_after_normalising(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {"api_endpoint": f"{URL}/chat/completions"}, f'[api]\nbase_url = "{URL}"\n')
    assert bench.notes == ()  # and nothing is said of the corrections of an address that is not used


def test_command_line_wins_over_both_files(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path,
        {**ADDRESS, "stress_test": {"duration_seconds": 60}},
        '[stress]\nduration = "1h"\n',
        overrides={"stress.duration_seconds": ("90s", "--duration"), "stress.warmup_seconds": (None, "--ramp")},
    )
    assert bench.stress.duration_seconds == 90
    assert bench.stress.warmup_seconds == 120
    assert bench.origin("stress.duration_seconds") == "command line --duration"
    assert bench.notes == (
        (
            "stress.duration_seconds: 90 s from command line --duration, "
            "not 3600 s from config.toml [stress] duration nor 60 s from settings.json stress_test.duration_seconds"
        ),
    )


def test_overrides_are_in_our_units(tmp_path: Path) -> None:
    overrides: dict[str, tuple[object, str]] = {
        "stress.request_interval_seconds": (0.5, "--interval"),
        "retry.max_attempts": (1, "--tries"),
        "base_url": ("http://elsewhere:1", "$ELSEWHERE"),
        "key": (OTHER_KEY, "--key-file"),
        "health_check.enabled": ("off", "--health"),
    }
    bench = read_bench(tmp_path, ADDRESS, overrides=overrides)
    assert bench.stress.request_interval_seconds == 0.5
    assert bench.retry.max_attempts == 1
    assert bench.health_check.enabled is False
    assert bench.domains[0].base_url == "http://elsewhere:1/v1"
    assert bench.origin("base_url") == "$ELSEWHERE"
    assert bench.domains[0].key_origin == "command line --key-file"
    assert describe_key(bench.domains[0].key).startswith("sk-s…")


def test_wrong_overrides_are_refused(tmp_path: Path) -> None:
    text = refusal(
        tmp_path,
        ADDRESS,
        overrides={
            "stress.duration_seconds": ("soon", "--duration"),
            "stress.duration": (1, "--other"),
            "key": (7, "--k"),
        },
    )
    assert 'command line --duration: the text "soon"' in text
    assert "command line --other: there is no setting stress.duration" in text
    assert "command line --k: a key" in text


def test_both_dialects_in_one_file_disagree(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path,
        {"api": {"base_url": URL, "max_retries": 3}, "retry_policy": {"max_attempts": 3}},
    )
    assert bench.retry.max_attempts == 4
    assert bench.notes == (
        (
            "retry.max_attempts: 4 (3 retries after the first try) from settings.json api.max_retries, "
            "not 3 from settings.json retry_policy.max_attempts"
        ),
    )


def test_of_two_keys_only_the_places_are_said(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path,
        {**ADDRESS, "api_key": "${TAOTOKEN_API_KEY}"},
        '[token_scheduler]\napi_key_env = "OTHER_KEY"\n',
    )
    key = bench.domains[0].key
    assert key is not None
    assert key.get_secret_value() == OTHER_KEY
    assert bench.notes == (
        (
            "key: the key from config.toml [token_scheduler] api_key_env ($OTHER_KEY), "
            "not the key from settings.json api_key"
        ),
    )


def test_a_critical_threshold_below_the_alert_is_said(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, ADDRESS, "[thermal]\ncritical_threshold_cpu = 60\n")
    assert bench.monitor.critical_threshold_cpu_celsius == 60
    assert "below the alert threshold of 85 °C" in bench.notes[0]
