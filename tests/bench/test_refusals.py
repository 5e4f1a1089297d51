# ruff: noqa: E501 - one case, one line

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_thermal.bench import BenchError, load_bench
from tests.bench.bench_files import ADDRESS, ENVIRON, KEY, read_bench, refusal, write_bench


@pytest.mark.parametrize(
    "settings,config,said",
    [
        ({"api": {"base_ur": "x"}}, None, "settings.json: api.base_ur: unknown key; nearest known key: api.base_url"),
        ({"api_endpiont": "x"}, None, "settings.json: api_endpiont: unknown key; nearest known key: api_endpoint"),
        ({"API_KEY": "x"}, None, "settings.json: API_KEY: unknown key; nearest known key: api_key"),
        ({"modelroute": {"default": "x"}}, None, "settings.json: modelroute: unknown key; nearest known key: model_route"),
        ({"qqq": 1}, None, "settings.json: qqq: unknown key; nearest known key: "),
        (
            {"api": {"timeout_ms": 1}},
            None,
            ("settings.json: api.timeout_ms: unknown key; timeout_ms belongs in [token_scheduler] of config.toml; "
            "nearest known key: api.timeout_seconds"),
        ),
        ({"timeout_seconds": 1}, None, "timeout_seconds belongs in api"),
        ({"monitor": {"endpoint": 1}}, None, "settings.json: monitor.endpoint: unknown key; endpoint belongs in health_check"),
        ({"api": {"api_endpoint": "x"}}, None, "api_endpoint belongs at the top level"),
        ({"//": "a comment"}, None, "settings.json: //: unknown key; JSON has no comments"),
        ({"_comment": "x"}, None, "settings.json: _comment: unknown key; JSON has no comments"),
        (None, "[api]\nread_timout = 1\n", "config.toml: [api] read_timout: unknown key; nearest known key: [api] read_timeout"),
        (None, "[apii]\nread_timeout = 1\n", "config.toml: apii: unknown key; nearest known key: [api]"),
        (None, "timeout_ms = 1\n", "config.toml: timeout_ms: unknown key; timeout_ms belongs in [token_scheduler]"),
        (
            None,
            '[api]\napi_key_evn = "X"\n',
            "config.toml: [api] api_key_evn: unknown key; nearest known key: [api] api_key_env",
        ),
        (
            None,
            "[rate_limit]\ntokens_per_minute = 1\n",
            "config.toml: rate_limit: unknown key; rate_limit belongs at the top level of settings.json",
        ),
        (None, "[thermal]\nbatch_size = 1\n", "batch_size belongs in [token_scheduler]"),
    ],
)  # fmt: skip
def test_unknown_key_names_file_key_and_nearest(
    tmp_path: Path, settings: dict[str, object] | None, config: str | None, said: str
) -> None:
    text = refusal(tmp_path, {**ADDRESS, **(settings or {})}, config)
    assert said in text
    assert text.count("unknown key") == 1
    assert text.endswith(f"\nin: {tmp_path}")


@pytest.mark.parametrize(
    "file,path,value,said",
    [
        ("settings.json", "api.timeout_seconds", "soon", 'the text "soon", but expected is a number of seconds, above 0'),
        ("settings.json", "api.timeout_seconds", 0, "0, but expected is a number of seconds, above 0"),
        ("settings.json", "api.timeout_seconds", -1, "-1, but expected is a number of seconds, above 0"),
        ("settings.json", "api.timeout_seconds", True, "true, but expected is a number of seconds, above 0"),
        ("settings.json", "api.timeout_seconds", {"a": 1}, "a table, but expected is a number of seconds"),
        ("settings.json", "api.timeout_seconds", [1], "a list of 1, but expected is a number of seconds"),
        ("settings.json", "api.timeout_seconds", "1e999", 'the text "1e999", but'),
        ("settings.json", "api.timeout_seconds", 10**30, "a huge number, but expected"),
        ("settings.json", "api.max_retries", -1, "-1, but expected is a whole number, 0 or more"),
        ("settings.json", "api.max_retries", 1.5, "1.5, but expected is a whole number, 0 or more"),
        ("settings.json", "api.retry_backoff_seconds", -0.5, "-0.5, but expected is a number of seconds, 0 or more"),
        ("settings.json", "retry_policy.max_attempts", 0, "0, but expected is a whole number, 1 or more"),
        ("settings.json", "retry_policy.backoff_ms", "x", "but expected is a number of milliseconds, 0 or more"),
        ("settings.json", "inference.max_tokens", 0, "0, but expected is a whole number, 1 or more"),
        ("settings.json", "inference.temperature", -0.1, "-0.1, but expected is a number, 0 or more"),
        ("settings.json", "inference.stream", "true", 'the text "true", but expected is true or false, without quotes'),
        ("settings.json", "inference.stream", 1, "1, but expected is true or false"),
        ("settings.json", "inference.model", " ", "but expected is a text in quotes, not blank"),
        ("settings.json", "inference.model", 3, "3, but expected is a text in quotes, not blank"),
        ("settings.json", "rate_limit.tokens_per_minute", 0, "0, but expected is a whole number, 1 or more"),
        ("settings.json", "stress_test.request_interval_ms", -1, "-1, but expected is a number of milliseconds"),
        ("settings.json", "stress_test.duration_seconds", "60m", 'the text "60m", but expected is a number of seconds'),
        ("settings.json", "health_check.endpoint", "http://h/v1/models", "but expected is a path such as /v1/models"),
        ("settings.json", "health_check.interval_sec", 0, "0, but expected is a number of seconds, above 0"),
        ("settings.json", "inference.model", "\ud800", "there are bytes in it that are no characters"),
        ("settings.json", "inference.max_tokens", "\x1b[31m", r'the text "\x1b[31m", but expected'),
        ("settings.json", "api", "x", "a text where an object is expected"),
        ("settings.json", "model_route", ["m"], "a list where an object is expected"),
        ("settings.json", "model_route", None, "null where an object is expected"),
        ("config.toml", "api.read_timeout", "nan", "nan, but expected is a number of seconds"),
        ("config.toml", "api.read_timeout", "2026-11-30", "a date, but expected is a number of seconds"),
        ("config.toml", "stress.mode", '"gpus"', 'the text "gpus", but expected is one of cpu, gpu, inference, mixed'),
        ("config.toml", "stress.inference_ratio", "60", "60, but expected is a number, from 0 to 1 (a share: 60 % is 0.6)"),
        ("config.toml", "stress.duration", '"an hour"', 'the text "an hour", but expected is a duration above 0'),
        ("config.toml", "stress.duration", "0", "0, but expected is a duration above 0"),
        ("config.toml", "stress.cpu_workers", "-1", "-1, but expected is a whole number, 0 or more"),
        ("config.toml", "thermal.alert_threshold_cpu", "85000", "85000, but expected is a number of °C, above 0 to 150"),
        ("config.toml", "thermal.gpu_indices", "0", "0, but expected is a list of numbers from 0 in brackets: [0, 1]"),
        ("config.toml", "thermal.gpu_indices", "[0, 0]", "but expected is a list of different numbers"),
        ("config.toml", "thermal.gpu_indices", '["a"]', "but expected is a list of numbers"),
        ("config.toml", "thermal.cpu_zones", "[true]", "but expected is a list of numbers or names"),
        ("config.toml", "logging.level", '"loud"', "but expected is one of debug, info, warning, error, critical, warn"),
        ("config.toml", "logging.rotate_size_mb", "0", "0, but expected is a number of MB, above 0"),
        ("config.toml", "cluster.node_count", '"many"', "but expected is a whole number, 1 or more"),
        ("config.toml", "cluster.scale_up_domain", "1.5", "1.5, but expected is a name or a whole number"),
        ("config.toml", "token_scheduler.timeout_ms", "0", "0, but expected is a whole number of ms, 1 or more"),
        ("config.toml", "scale_out.enabled", '"yes"', 'the text "yes", but expected is true or false'),
        ("config.toml", "scale_up.memory_pool", '""', "but expected is a text in quotes, a number, true or false"),
        ("config.toml", "thermal", "5", "a number where a table is expected"),
    ],
)  # fmt: skip
def test_wrong_value_names_the_key_and_what_is_expected(
    tmp_path: Path, file: str, path: str, value: object, said: str
) -> None:
    section, _, name = path.rpartition(".")
    if file == "settings.json":
        settings: dict[str, object] = {section: {name: value}} if section else {name: value}
        text = refusal(tmp_path, {**ADDRESS, **settings})
        where = f"settings.json: {path}: "
    else:
        text = refusal(tmp_path, ADDRESS, f"[{section}]\n{name} = {value}\n" if section else f"{name} = {value}\n")
        where = f"config.toml: [{section}] {name}: " if section else f"config.toml: [{name}]: "
    assert text.startswith(where)
    assert said in text.splitlines()[0]
    assert text.count("but expected") <= 1


@pytest.mark.parametrize(
    "address,said",
    [
        ("http://user:hunter2@h/v1", "user name or password in the address (not shown)"),
        ("http://h:99999/v1", "port 99999 is not between 1 and 65535"),
        ("", "the address is empty"),
    ],
)
def test_bad_address_says_why(tmp_path: Path, address: str, said: str) -> None:
    text = refusal(tmp_path, {"api": {"base_url": address}})
    assert text.startswith(f"settings.json: api.base_url: {said}")
    assert "hunter2" not in text
    assert "no address" not in text


def test_a_key_in_another_place_is_not_shown(tmp_path: Path) -> None:
    text = refusal(tmp_path, {"api_endpoint": KEY, "inference": {"max_tokens": KEY}, "api_key": [KEY]})
    assert "inference.max_tokens: a text of 50 characters that looks like a key, but expected" in text
    assert "settings.json: api_key: a list, but expected is the key as a text in quotes" in text


def test_no_address_at_all(tmp_path: Path) -> None:
    text = refusal(tmp_path, {"api_key": "${TAOTOKEN_API_KEY}"})
    assert text.startswith("settings.json: no address of the API")
    assert '"api_endpoint" at the top level' in text


def test_a_misspelt_address_is_not_missing_too(tmp_path: Path) -> None:
    assert "no address" not in refusal(tmp_path, {"api_endpiont": "http://h/v1"})


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = refusal(
        tmp_path,
        {"api": {"base_ur": "x", "timeout_seconds": "soon", "api_key": "${GONE}"}, "surprise": 1},
        "[api]\nread_timout = 3\n[cluster]\nnode_count = 2\ngpu_per_node = 3\ntotal_gpus = 5\n",
    )
    for said in (
        "api.base_ur: unknown", "api.timeout_seconds: the text", "${GONE} is not set", "surprise: unknown",
        "read_timout: unknown", "node_count 2 × gpu_per_node 3 = 6",
    ):  # fmt: skip
        assert said in text
    assert text.count("likely: a slip in the name") == 1  # one cause, said once for three keys


def test_two_unreadable_files_are_both_named(tmp_path: Path) -> None:
    text = refusal(tmp_path, "{,}", "[api\n")
    assert "config.toml: line 1, column 5: not TOML" in text
    assert "settings.json: line 1, column 2: not JSON" in text
    assert "no address" not in text


@pytest.mark.parametrize(
    "text,where,likely",
    [
        ('{"a": 1,\n "b": 2,\n}', "line ", "a comma too many"),
        ('{"a": [1, 2,]}', "line 1, column ", "a comma too many"),
        ("{'a': 1}", "line 1, column 2", "single quotes"),
        ('{\n  // note\n  "a": 1}', "line 2, column 3", "a comment, which JSON does not have"),
        ('{"a": 1 # note\n}', "line 1, column 9", "a comment, which JSON does not have"),
        ('{"a": "x\n}', "line 1, column ", "a closing quote is missing"),
        ('{"a": "x', "line 1, column 7", "a closing quote is missing"),
        ('{"a": x}', "line 1, column 7", "a text or a name without its double quotes"),
        ("{a: 1}", "line 1, column 2", "a text or a name without its double quotes"),
        ('{"a": 1\n "b": 2}', "line 2, column 2", "a comma is missing"),
        ('{"a" 1}', "line 1, column 6", "a colon is missing"),
        ('{"a": True}', "line 1, column 7", "a word of Python's"),
        ('{"a": 1', "line 1, column 8", "the file ends too early"),
        ('{"a": 1}}', "line 1, column 9", "something stands behind the last }"),
        ('{"a": "C:\\temp\\x"}', "line 1, column ", "a backslash in a text"),
        ("{“a”: 1}", "line 1, column 2", "typographic quotes"),
    ],
)
def test_json_slips_are_explained(tmp_path: Path, text: str, where: str, likely: str) -> None:
    said = refusal(tmp_path, text)
    assert said.startswith(f"settings.json: {where}")
    assert ": not JSON: " in said
    assert f"likely: {likely}" in said


@pytest.mark.parametrize(
    "text,where,likely",
    [
        ("[api]\nread_timeout = True\n", "line 2, column ", "a word of Python's"),
        ("[api]\nbase_url = http://h\n", "line 2, column ", "a text without quotes"),
        ('[api]\nbase_url: "x"\n', "line 2, column ", "JSON or YAML: a colon"),
        ('[api]\nbase_url = "x\n', "line 2, column ", "a quote is missing"),
        ('[api]\noutput = "C:\\temp"\n[logging]\noutput = "C:\\qemp"\n', "line ", "a backslash in a text"),
        ("[api]\nread_timeout = 1\nread_timeout = 2\n", "line 3, column ", "a key or section is there twice"),
        ("[api]\n[stress]\n[api]\n", "line 3, column ", "a key or section is there twice"),
        ("[api\nread_timeout = 1\n", "line 1, column ", "a bracket of the section's head is missing"),
        ("// note\n", "line 1, column ", "a comment of another language"),
        ('{"api": {}}', "line 1, column ", "JSON in the TOML file"),
        ("[api]\nread_timeout =", "", "a bracket or a quote is missing"),
        ("[api]\nbase_url = “x”\n", "line 2, column ", "typographic quotes"),
    ],
)
def test_toml_slips_are_explained(tmp_path: Path, text: str, where: str, likely: str) -> None:
    said = refusal(tmp_path, ADDRESS, text)
    assert said.startswith(f"config.toml: {where}")
    assert ": not TOML: " in said
    assert f"likely: {likely}" in said


def test_a_name_that_came_twice_in_json_is_refused(tmp_path: Path) -> None:
    text = refusal(tmp_path, '{"api_endpoint": "http://h/v1", "api": {"max_retries": 1, "max_retries": 2}, "api": {}}')
    assert text.startswith("settings.json: api is there twice")
    text = refusal(tmp_path, '{"api": {"max_retries": 1, "max_retries": 2}}')
    assert text.startswith("settings.json: api.max_retries is there twice")


@pytest.mark.parametrize(
    "raw,said",
    [
        (b"", "settings.json: is empty"),
        (b" \n", "settings.json: is empty"),
        (b"\xef\xbb\xbf", "settings.json: is empty"),
        ('{"a": "机柜"}'.encode("gbk"), "settings.json: is not UTF-8: line 1, byte 7"),
        ('{"a": 1}'.encode("utf-16"), "settings.json: is UTF-16, not UTF-8"),
        (b"[]", "settings.json: the top level is not an object in { }"),
        (b'"x"', "settings.json: the top level is not an object in { }"),
        (b"[" * 100_000, "settings.json: not usable JSON"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "settings.json: not usable JSON"),
    ],
    ids=["empty", "blank", "bom", "gbk", "utf16", "list", "text", "nested", "digits"],
)
def test_content_that_is_no_object_is_refused(tmp_path: Path, raw: bytes, said: str) -> None:
    (tmp_path / "settings.json").write_bytes(raw)
    assert refusal(tmp_path).startswith(said)


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(ADDRESS).encode())
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbf[api]\r\nread_timeout = 9\r\n")
    assert read_bench(tmp_path).timeouts.read_seconds == 9


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()
    assert refusal(tmp_path).startswith("settings.json: is a folder, not a file")


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "settings.json").symlink_to(tmp_path / "gone")
    assert refusal(tmp_path).startswith("settings.json: is a link to a file that does not exist")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to("config.toml")  # rights would not stop root
    assert refusal(tmp_path).startswith("config.toml: cannot be read: Too many levels of symbolic links")


def test_no_bench_file_in_the_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith("bench: neither settings.json nor config.toml is in this folder")
    (tmp_path / "setting.json").write_text("{}", encoding="utf-8")
    text = refusal(tmp_path)
    assert "but setting.json is" in text
    assert "try: rename setting.json" in text


def test_no_such_folder(tmp_path: Path) -> None:
    (tmp_path / "supernode").mkdir()
    with pytest.raises(BenchError) as caught:
        load_bench(tmp_path / "supernod", environ={})
    text = str(caught.value).replace("\n  ", " ")
    assert text.startswith(f"bench: there is no folder {tmp_path / 'supernod'}, but {tmp_path / 'supernode'}")
    with pytest.raises(BenchError, match="there is no folder"):
        load_bench(tmp_path / "a" / "b", environ={})


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    folder = write_bench(tmp_path, ADDRESS)
    with pytest.raises(BenchError) as caught:
        load_bench(folder / "settings.json", environ=ENVIRON)
    text = str(caught.value).replace("\n  ", " ")
    assert text.startswith(f"bench: {folder / 'settings.json'} is a file, not a folder")
    assert f"try: --bench {folder}" in text
