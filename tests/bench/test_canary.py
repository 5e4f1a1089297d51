"""A key shows in nothing that a bench, or the refusal of one, prints."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from pytest_thermal.bench import Bench, BenchError, Domain
from tests.bench.bench_files import KEY, OTHER_KEY, read_bench

BENCHES: dict[str, tuple[dict[str, object], str | None]] = {
    "literal": ({"api_endpoint": "http://h/v1", "api_key": KEY}, None),
    "expanded": ({"api": {"base_url": "http://h/v1", "api_key": "${TAOTOKEN_API_KEY}"}}, None),
    "named": ({"api_endpoint": "http://h/v1"}, '[api]\napi_key_env = "TAOTOKEN_API_KEY"\n'),
    "loser": ({"api_endpoint": "http://h/v1", "api_key": KEY}, '[api]\napi_key_env = "OTHER_KEY"\n'),
    "domains": (
        {"api_endpoint": "http://h/v1", "api_key": "${OTHER_KEY}"},
        '[[scale_up]]\napi_key_env = "TAOTOKEN_API_KEY"\n[[scale_up]]\napi_key = "${OTHER_KEY}"\n',
    ),
    "misplaced": ({"api_endpoint": "http://h/v1", "inference": {"model": "${TAOTOKEN_API_KEY}"}, "api_key": KEY}, None),
}  # fmt: skip


def shown(bench: Bench) -> str:
    return "\n".join(
        [
            repr(bench), str(bench), str(bench.model_dump()), str(bench.model_dump(mode="json")),
            bench.model_dump_json(), repr(bench.domains), repr(bench.secrets()), *bench.notes,
            *bench.origins.values(), *(domain.key_origin for domain in bench.domains), f"{bench}",
        ]
    )  # fmt: skip


@pytest.mark.parametrize("name", [name for name in BENCHES if name != "misplaced"])
def test_no_key_shows_in_a_bench(tmp_path: Path, name: str) -> None:
    bench = read_bench(tmp_path, *BENCHES[name])
    assert bench.secrets()
    text = shown(bench)
    for key in (KEY, OTHER_KEY):
        assert key not in text
        assert key[4:16] not in text


def test_a_key_in_the_place_of_a_model_shows_not_in_the_notes(tmp_path: Path) -> None:
    settings = {**BENCHES["misplaced"][0], "model_route": {"default": "other"}}
    assert KEY[4:16] not in " ".join(read_bench(tmp_path, settings).notes)


BAD: dict[str, tuple[dict[str, object] | str, str | None]] = {
    "address": ({"api_endpoint": KEY, "api_key": KEY}, None),
    "address with it": ({"api_endpoint": f"http://x:{KEY}@h/v1"}, None),
    "address variable": ({"api_endpoint": "${TAOTOKEN_API_KEY}"}, None),
    "number": ({"api": {"timeout_seconds": KEY}}, None),
    "number variable": ({"api": {"timeout_seconds": "${TAOTOKEN_API_KEY}"}}, None),
    "name": ({}, f'[api]\napi_key_env = "{KEY}"\n'),
    "name variable": ({}, '[api]\napi_key_env = "${TAOTOKEN_API_KEY}"\n'),
    "list": ({"api_key": [KEY]}, None),
    "section": ({"model_route": KEY}, None),
    "unknown": ({"apikey": KEY}, None),
    "json": ('{"api_key": "' + KEY + '",}', None),
    "json quote": ('{"api_key": "' + KEY + "\n}", None),
    "json twice": ('{"api_key": "' + KEY + '", "api_key": "' + KEY + '"}', None),
    "toml": ({}, f"[api]\napi_key_env = {KEY}\n"),
    "toml twice": ({}, f'[api]\napi_key_env = "{KEY}"\napi_key_env = "{KEY}"\n'),
    "zones": ({}, f'[thermal]\ngpu_indices = ["{KEY}"]\n'),
    "mode": ({}, f'[stress]\nmode = "{KEY}"\n'),
    "domain": (
        {"api_key": "${TAOTOKEN_API_KEY}"},
        '[[scale_up]]\nname = "${TAOTOKEN_API_KEY}"\n[[scale_up]]\nname = "${TAOTOKEN_API_KEY}"\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_no_key_shows_in_a_refusal(tmp_path: Path, name: str) -> None:
    with pytest.raises(BenchError) as caught:
        read_bench(tmp_path, *BAD[name])
    text = str(caught.value) + repr(caught.value) + "".join(traceback.format_exception(caught.value))
    assert KEY not in text
    assert KEY[4:16] not in text


def test_a_wrongly_built_model_does_not_print_its_input() -> None:
    with pytest.raises(ValidationError) as caught:
        Domain.model_validate({"name": "x", "base_url": [KEY], "key": {"it": KEY}})
    assert KEY not in str(caught.value)


def test_models_cannot_be_changed(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, *BENCHES["expanded"])
    with pytest.raises(ValidationError):
        bench.timeouts.read_seconds = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        bench.domains[0].key = SecretStr("x")  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Bench.model_validate({"name": "x", "domains": ()})
    with pytest.raises(ValidationError):
        Bench.model_validate({"name": "x", "domains": bench.domains, "surprise": 1})


def test_the_error_survives_a_process_border() -> None:
    assert str(pickle.loads(pickle.dumps(BenchError("x: y")))) == "x: y"
