from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_thermal.bench import find_template, load_bench, quick_domain_names, template_names

ADDRESS = '[api]\nbase_url = "http://127.0.0.1:1/v1"\n'
_VARIABLE = re.compile(r"\$\{(\w+)\}|_env\s*=\s*\"(\w+)\"")


def whole(folder: Path) -> list[str]:
    """With every variable that the files name set to something fit."""
    text = "".join(path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file())
    names = {name for found in _VARIABLE.findall(text) for name in found if name}
    environ = {name: "sk-nothing-0123456789" if "KEY" in name else "http://127.0.0.1:1/v1" for name in names}
    return [domain.name for domain in load_bench(folder, environ=environ).domains]


@pytest.mark.parametrize("name", template_names())
def test_templates_are_named_as_the_whole_bench_names_them(name: str) -> None:
    folder = find_template(name)
    assert folder is not None
    names = quick_domain_names(folder)
    assert names is not None
    assert list(names) == whole(folder)


@pytest.mark.parametrize(
    "config",
    [
        "",
        '[cluster]\nname = "pod-a"\n',
        '[cluster]\nname = "pod-a"\nscale_up_domain = "ub0"\n',
        '[cluster]\nname = "pod-a"\nscale_up_domain = 3\n',
        '[scale_up]\nname = "east"\n',
        '[scale_up]\ninterconnect = "ub"\n[cluster]\nname = "pod-a"\n',
        '[[scale_up]]\nname = "east"\n',
        '[[scale_up]]\nname = "east"\n[[scale_up]]\nname = "west"\n',
        '[[scale_up]]\nname = "east"\n[[scale_up]]\ninterconnect = "ub"\n',
    ],
)
def test_what_is_named_is_named_as_the_whole_bench_names_it(config: str, tmp_path: Path) -> None:
    folder = tmp_path / "bench-a"
    folder.mkdir()
    (folder / "config.toml").write_text(ADDRESS + config)
    names = quick_domain_names(folder)
    assert names is not None
    assert list(names) == whole(folder)


@pytest.mark.parametrize(
    "config",
    [
        "[[scale_up]\n",
        '[[scale_up]]\nname = "东区"\n',
        '[[scale_up]]\nname = "east"\n[[scale_up]]\nname = "east"\n',
        '[[scale_up]]\nname = "${EAST}"\n',
        "scale_up = 3\n",
        "cluster = 3\n",
    ],
)
def test_what_takes_more_than_a_look_is_left_to_whoever_reads_all(config: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(config)
    assert quick_domain_names(tmp_path) is None


def test_an_empty_folder_has_no_names(tmp_path: Path) -> None:
    assert quick_domain_names(tmp_path) is None


def test_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest_thermal.bench.quick_names, pytest_thermal.bench.templates\nprint('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
