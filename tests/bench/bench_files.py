"""Bench folders for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_thermal.bench import Bench, BenchError, load_bench

KEY = "sk-canary-A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
OTHER_KEY = "sk-second-Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3h2"
ENVIRON: Mapping[str, str] = {"TAOTOKEN_API_KEY": KEY, "OTHER_KEY": OTHER_KEY, "GATEWAY": "http://127.0.0.1:9000/v1"}
ADDRESS: Mapping[str, object] = {"api_endpoint": "http://127.0.0.1:9000/v1"}
"""The least that a settings.json must hold."""


def write_bench(folder: Path, settings: Mapping[str, object] | str | None = None, config: str | None = None) -> Path:
    """Write the bench files that are given; text goes in as it stands."""
    if settings is not None:
        text = settings if isinstance(settings, str) else json.dumps(settings)
        (folder / "settings.json").write_text(text, encoding="utf-8")
    if config is not None:
        (folder / "config.toml").write_text(config, encoding="utf-8")
    return folder


def read_bench(
    folder: Path,
    settings: Mapping[str, object] | str | None = None,
    config: str | None = None,
    *,
    environ: Mapping[str, str] = ENVIRON,
    overrides: Mapping[str, tuple[object, str]] | None = None,
) -> Bench:
    """Write bench files and load them."""
    return load_bench(write_bench(folder, settings, config), environ=environ, overrides=overrides or {})


def refusal(
    folder: Path,
    settings: Mapping[str, object] | str | None = None,
    config: str | None = None,
    *,
    environ: Mapping[str, str] = ENVIRON,
    overrides: Mapping[str, tuple[object, str]] | None = None,
) -> str:
    """The message of a bench that cannot be used, with its wrapped lines joined again."""
    with pytest.raises(BenchError) as caught:
        read_bench(folder, settings, config, environ=environ, overrides=overrides)
    text = str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert KEY not in text
    assert OTHER_KEY not in text
    assert "likely: " in text
    assert "try: " in text
    too_long = [line for line in text.splitlines() if len(line) > 80 and not line.startswith("in: ")]
    assert all(" " not in line.strip() for line in too_long), too_long
    return text.replace("\n  ", " ")
