"""Results of many nodes, made light: nothing that decides anything is lost, and the results stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_thermal.reporting.allure_lean import heavy_bytes, lean_copy

PICTURE = "![steady of gpu0](data:image/png;base64,iVBORw0KGgo=)"


def attachment(name: str, kind: str) -> dict[str, str]:
    return {"name": name, "source": name, "type": kind}


def write(folder: Path, name: str, data: dict[str, Any] | str) -> None:
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data))


def read(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text())
    return found


def results(folder: Path) -> Path:
    folder.mkdir()
    for status in ("passed", "failed"):
        step = {"name": "one", "attachments": [attachment("s.svg", "image/svg+xml"), attachment("s.txt", "text/plain")]}
        write(
            folder,
            f"{status}-result.json",
            {
                "uuid": status,
                "status": status,
                "description": f"**{status}** — rise: 41 °C\n\n{PICTURE}\n\n*the caption*",
                "labels": [{"name": "node", "value": "n1"}],
                "attachments": [attachment("a.svg", "image/svg+xml"), attachment("a.txt", "text/plain")],
                "steps": [step],
            },
        )
    write(folder, "page-globals.json", {"attachments": [attachment("p.html", "text/html")], "errors": []})
    write(folder, "crash-globals.json", {"attachments": [], "errors": [{"message": "worker crashed"}]})
    write(folder, "cut-result.json", "{")
    for name in ("a.svg", "s.svg", "a.txt", "s.txt", "p.html", "loose.svg", "environment.properties", "x-perf.json"):
        write(folder, name, f"of {name}")
    return folder


def test_pages_and_vector_pictures_are_left_out_and_all_else_stays(tmp_path: Path) -> None:
    folder = results(tmp_path / "results")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    lean = lean_copy(folder, tmp_path / "aside" / "0")
    names = {file.name for file in lean.iterdir()}
    assert names == set(before) - {"a.svg", "s.svg", "p.html", "page-globals.json"}
    for status in ("passed", "failed"):
        result = read(lean, f"{status}-result.json")
        assert [one["source"] for one in result["attachments"]] == ["a.txt"]
        assert [one["source"] for one in result["steps"][0]["attachments"]] == ["s.txt"]
        assert result["labels"] == [{"name": "node", "value": "n1"}]
        assert "rise: 41 °C" in result["description"]
        assert "*the caption*" in result["description"]
    assert PICTURE in read(lean, "failed-result.json")["description"]
    assert PICTURE not in read(lean, "passed-result.json")["description"]
    assert "the node's own report" in read(lean, "passed-result.json")["description"]
    assert read(lean, "crash-globals.json")["errors"]
    assert (lean / "cut-result.json").read_text() == "{"
    assert (lean / "environment.properties").read_text() == "of environment.properties"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_what_is_heavy_is_counted_without_what_is_not(tmp_path: Path) -> None:
    folder = results(tmp_path / "results")
    light = heavy_bytes([folder])
    write(folder, "big.csv.gz", "x" * 10_000)
    assert heavy_bytes([folder]) == light
    write(folder, "big.svg", "x" * 10_000)
    assert heavy_bytes([folder, folder]) == 2 * (light + 10_000)
