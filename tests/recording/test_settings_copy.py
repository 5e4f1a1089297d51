from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_thermal.bench import load_bench
from pytest_thermal.recording import copied_settings

KEY = "sk-planted-0123456789abcdefABCDEF"


def copied(folder: Path, environ: dict[str, str], **files: str) -> dict[str, str]:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return {name: text.decode() for name, text in copied_settings(load_bench(folder, environ=environ)).items()}


def settings(key: str) -> str:
    return json.dumps(
        {"api": {"base_url": "http://127.0.0.1:8000/v1", "api_key": key}, "inference": {"model": "m"}}, indent=2
    )


def test_a_key_from_the_environment_stays_its_variable(tmp_path: Path) -> None:
    text = settings("${TAOTOKEN_API_KEY}")
    assert copied(tmp_path, {"TAOTOKEN_API_KEY": KEY}, settings_json=text) == {"settings.json": text}


def test_a_key_in_the_file_becomes_a_variable(tmp_path: Path) -> None:
    found = copied(tmp_path, {}, settings_json=settings(KEY))
    assert json.loads(found["settings.json"])["api"]["api_key"] == "${API_KEY}"
    assert found["settings.json"] == settings("${API_KEY}")


def test_keys_elsewhere_in_the_file_go_too(tmp_path: Path) -> None:
    """In a comment, cut short, and one that is nobody's."""
    config = (
        '[api]\nbase_url = "http://127.0.0.1:8000/v1"\napi_key_env = "MY_KEY"\n'
        f"# old: {KEY} and sk-another-key-0123456789 and {KEY[:20]}…\n"
        "[logging]\nlevel = 'info'\n"
    )
    found = copied(tmp_path, {"MY_KEY": KEY}, settings_json=settings("${MY_KEY}"), config_toml=config)
    assert KEY[:16] not in found["config.toml"]
    assert "another-key" not in found["config.toml"]
    assert "${MY_KEY}" in found["config.toml"]
    assert "level = 'info'" in found["config.toml"]


@pytest.mark.parametrize("name", ["demo", "workstation", "supernode"])
def test_the_templates_are_copied_as_they_stand(name: str) -> None:
    folder = Path(__file__).resolve().parents[2] / "fixtures" / "benches" / name
    text = "".join(file.read_text(encoding="utf-8") for file in folder.iterdir())
    names = sorted(set(re.findall(r"[A-Z]+(?:_[A-Z0-9]+)+", text)))
    variables = {
        found: "http://127.0.0.1:1/v1" if "URL" in found else f"{KEY}{number}" for number, found in enumerate(names)
    }
    bench = load_bench(folder, environ=variables)
    assert {file.name: file.read_bytes() for file in bench.files} == copied_settings(bench)
