from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import Bench
from tests.bench.bench_files import ADDRESS, ENVIRON, KEY, read_bench, refusal

HEX_KEY = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"


def key_of(bench: Bench) -> str | None:
    key = bench.domains[0].key
    return None if key is None else key.get_secret_value()


def test_variables_stand_anywhere_in_a_text(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path,
        {
            "api_endpoint": "http://${HOST}:${PORT}/v1",
            "api": {"timeout_seconds": "${SECONDS}", "max_retries": "${N}"},
            "health_check": {"enabled": "${YES}"},
            "monitor": {"log_dir": "$HOME/${N}$"},
        },
        '[thermal]\ngpu_indices = "${CARDS}"\ncpu_zones = ["${N}", "x"]\n[stress]\nduration = "${N}h"\n',
        environ={"HOST": "h", "PORT": "81", "SECONDS": "2.5", "N": "3", "YES": "Yes", "CARDS": "0, 2"},
    )
    assert bench.domains[0].base_url == "http://h:81/v1"
    assert (bench.timeouts.read_seconds, bench.retry.max_attempts) == (2.5, 4)
    assert bench.health_check.enabled is True
    assert bench.monitor.log_dir == "$HOME/3$"
    assert bench.monitor.gpu_indices == (0, 2)
    assert bench.monitor.cpu_zones == (3, "x")
    assert bench.stress.duration_seconds == 3 * 3600


def test_what_a_variable_holds_is_not_expanded_again(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {**ADDRESS, "api_key": "${A}"}, environ={"A": "${B}-key", "B": "no"})
    assert key_of(bench) == "${B}-key"


@pytest.mark.parametrize("value,said", [(None, "is not set in the environment"), ("", "is set but empty")])
def test_missing_and_empty_variables(tmp_path: Path, value: str | None, said: str) -> None:
    environ = {"TAOTOKEN_APIKEY": KEY} | ({} if value is None else {"TAOTOKEN_API_KEY": value})
    text = refusal(
        tmp_path,
        {**ADDRESS, "api_key": "${TAOTOKEN_API_KEY}"},
        '[api]\napi_key_env = "TAOTOKEN_API_KEY"\n',
        environ=environ,
    )
    near = "TAOTOKEN_APIKEY is set: is that the one?"
    assert f"settings.json: api_key: ${{TAOTOKEN_API_KEY}} {said}; {near}" in text
    assert f"config.toml: [api] api_key_env: $TAOTOKEN_API_KEY {said}; {near}" in text
    assert text.count("likely: it was not exported in this shell, or the CI job has no secret of that name") == 1
    assert text.count("try: export TAOTOKEN_API_KEY=…") == 1


def test_no_variable_is_suggested_that_is_not_near(tmp_path: Path) -> None:
    text = refusal(tmp_path, {**ADDRESS, "api_key": "${GONE}"}, environ={"PATH": "/bin", "GONE_": ""})
    assert "is that the one?" not in text


@pytest.mark.parametrize(
    "value,said",
    [
        ("${}", "what stands in ${…} is not the name of a variable"),
        ("${A:-x}", "what stands in ${…} is not the name of a variable"),
        ("${ A }", "what stands in ${…} is not the name of a variable"),
        ("${A", "${ without its closing }"),
    ],
)
def test_no_shell_tricks(tmp_path: Path, value: str, said: str) -> None:
    text = refusal(tmp_path, {**ADDRESS, "api_key": value}, environ={"A": "x"})
    assert text.startswith(f"settings.json: api_key: {said}")


def test_a_number_from_the_environment_that_is_none_is_not_shown(tmp_path: Path) -> None:
    text = refusal(tmp_path, {**ADDRESS, "api": {"timeout_seconds": "${X}"}}, environ={"X": "hush"})
    assert "what the environment holds for it (not shown), but expected is a number of seconds" in text
    assert "hush" not in text


@pytest.mark.parametrize(
    "value",
    [
        KEY,
        HEX_KEY,
        "sk-short",
        "123e4567-e89b-12d3-a456-426614174000",
        "two words",
        "A" * 41 + "1",
    ],
)
def test_the_key_in_place_of_its_variables_name(tmp_path: Path, value: str) -> None:
    text = refusal(tmp_path, ADDRESS, f'[token_scheduler]\napi_key_env = "{value}"\n')
    assert text.startswith(
        f"config.toml: [token_scheduler] api_key_env: the text of {len(value)} characters (not shown) "
        "is no name of an environment variable"
    )
    assert "the key itself was put where the NAME" in text
    assert value not in text


def test_a_long_name_that_is_set_is_a_name(tmp_path: Path) -> None:
    name = "THE_KEY_OF_THE_GATEWAY_OF_THE_SECOND_SUPERNODE_2"
    bench = read_bench(tmp_path, ADDRESS, f'[api]\napi_key_env = "{name}"\n', environ={name: KEY})
    assert bench.domains[0].key_origin == f"${name}"


@pytest.mark.parametrize("value", ["$TAOTOKEN_API_KEY", "${TAOTOKEN_API_KEY}"])
@pytest.mark.parametrize("key", [KEY, HEX_KEY])
def test_a_dollar_before_the_name(tmp_path: Path, value: str, key: str) -> None:
    text = refusal(tmp_path, ADDRESS, f'[api]\napi_key_env = "{value}"\n', environ={"TAOTOKEN_API_KEY": key})
    assert 'try: api_key_env = "TAOTOKEN_API_KEY"' in text
    assert key not in text


def test_the_name_may_come_from_a_variable(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, ADDRESS, '[api]\napi_key_env = "${W}"\n', environ={"W": "K", "K": KEY})
    assert bench.domains[0].key_origin == "$K"


def test_the_name_is_a_text(tmp_path: Path) -> None:
    assert "[api] api_key_env: a number, but expected is the NAME" in refusal(
        tmp_path, ADDRESS, "[api]\napi_key_env = 1"
    )
    assert "[api] api_key_env: a text, but expected is the NAME" in refusal(
        tmp_path, ADDRESS, '[api]\napi_key_env = ""'
    )


@pytest.mark.parametrize("value", ["TAOTOKEN_API_KEY", "$TAOTOKEN_API_KEY"])
def test_the_name_in_place_of_the_key(tmp_path: Path, value: str) -> None:
    text = refusal(tmp_path, {"api": {"base_url": "http://h/v1", "api_key": value}})
    assert "settings.json: api.api_key: the NAME of the environment variable TAOTOKEN_API_KEY stands" in text
    assert 'try: write "api_key": "${TAOTOKEN_API_KEY}"' in text


def test_no_key_is_allowed(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, ADDRESS)
    assert key_of(bench) is None
    assert bench.domains[0].key_origin == "none"
    assert bench.secrets() == ()
    assert bench.notes == ()


def test_an_empty_key_is_no_key_and_it_is_said(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {**ADDRESS, "api_key": ""})
    assert key_of(bench) is None
    assert bench.domains[0].key_origin == "none"
    assert bench.notes == ("settings.json api_key is empty: requests go out without a key",)


def test_a_literal_key_works_and_is_frowned_upon(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {"api": {"base_url": "http://h/v1", "api_key": KEY}})
    assert key_of(bench) == KEY
    assert bench.domains[0].key_origin == "settings.json api.api_key"
    assert bench.notes == (
        "settings.json api.api_key: the key stands in the file in clear: write ${NAME} and put it in the environment",
    )


def test_a_literal_key_is_frowned_upon_even_where_another_wins(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {**ADDRESS, "api_key": KEY}, '[api]\napi_key_env = "OTHER_KEY"\n')
    assert any("settings.json api_key: the key stands in the file in clear" in note for note in bench.notes)


def test_a_key_made_of_text_and_variable(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {**ADDRESS, "api_key": "pre-${TAOTOKEN_API_KEY}"})
    assert key_of(bench) == f"pre-{KEY}"
    assert bench.domains[0].key_origin == "$TAOTOKEN_API_KEY in settings.json api_key"


@pytest.mark.parametrize(
    "key,said",
    [
        (f"{KEY}\n", "white space or a line end surrounds it"),
        (f" {KEY}", "white space or a line end surrounds it"),
        (f'"{KEY}"', "quotes surround it"),
        (f"Bearer {KEY}", 'it begins with "Bearer", which the client adds itself'),
        (f"{KEY}机", "it holds characters that an HTTP header cannot carry"),
        ("YOUR_KEY_HERE", "it looks like a placeholder that nobody filled in"),
        ("<key>", "it looks like a placeholder that nobody filled in"),
        ("$secret-of-mine", "it begins with $: only ${NAME} is replaced from the environment"),
        (f" '{KEY}'\n", "white space or a line end surrounds it, and quotes surround it"),
    ],
)
@pytest.mark.parametrize("by_name", [True, False])
def test_an_odd_key_is_kept_and_said(tmp_path: Path, key: str, said: str, by_name: bool) -> None:
    settings = dict(ADDRESS) if by_name else {**ADDRESS, "api_key": "${K}"}
    config = '[api]\napi_key_env = "K"\n' if by_name else None
    bench = read_bench(tmp_path, settings, config, environ={**ENVIRON, "K": key})
    assert key_of(bench) == key
    assert bench.notes == (f"the key from $K is sent as it stands, but {said}",)
