"""What is built, not what lies in the tree: the wheel and the sdist, and the wheel at work elsewhere."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import pytest_thermal

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    """Runs a command that has to succeed and returns what it said."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(target: str, *, source: Path, into: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", into, cwd=source)
    (built,) = into.iterdir()
    return built


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def read(wheel: Path, ending: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(ending))
        return archive.read(name).decode("utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", source=ROOT, into=tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", source=ROOT, into=tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else; dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-deps", "--no-index", "--target", folder, wheel, cwd=folder)
    return folder


def shipped(folder: str) -> set[str]:
    """The tracked kind of files below a folder of the checkout, relative to it."""
    base = ROOT / folder
    files = (file for file in base.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(base).as_posix() for file in files}


@pytest.mark.parametrize(
    "source, target",
    [
        ("pytest_thermal", "pytest_thermal"),
        ("suites", "pytest_thermal/suites"),
        ("fixtures/benches", "pytest_thermal/benches"),
    ],
)
def test_the_wheel_holds_every_file_of(wheel: Path, source: str, target: str) -> None:
    expected = {f"{target}/{file}" for file in shipped(source)}
    assert expected
    assert expected <= names_in(wheel)


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in names_in(wheel)}
    assert tops == {"pytest_thermal", f"pytest_thermal-{pytest_thermal.__version__}.dist-info"}
    assert not [name for name in names_in(wheel) if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_is_typed_and_registered(wheel: Path) -> None:
    assert "pytest_thermal/py.typed" in names_in(wheel)
    entry_points = configparser.ConfigParser()
    entry_points.read_string(read(wheel, "entry_points.txt"))
    assert dict(entry_points["pytest11"]) == {"thermal": "pytest_thermal.plugin"}


def test_metadata(wheel: Path) -> None:
    metadata = Parser().parsestr(read(wheel, ".dist-info/METADATA"))
    assert metadata["Version"] == pytest_thermal.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    assert "Framework :: Pytest" in metadata.get_all("Classifier", [])
    assert "Apache License" in read(wheel, "licenses/LICENSE")


def test_an_sdist_makes_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert (source / "tests" / "packaging" / "test_wheel.py").is_file()
    again = build("wheel", source=source, into=tmp_path / "again")
    assert names_in(again) == names_in(wheel)


def test_an_editable_install_has_no_copy_of_the_suites(tmp_path: Path) -> None:
    editable = build("wheel:editable", source=ROOT, into=tmp_path)
    assert not [name for name in names_in(editable) if "suites" in name or "benches" in name]


def test_the_wheel_works_from_another_folder(installed: Path, tmp_path: Path) -> None:
    said = run(
        sys.executable,
        *(
            "-m",
            "pytest",
            "--pyargs",
            "pytest_thermal.suites.supernode",
            "--demo",
            "-p",
            "no:cacheprovider",
            "-v",
        ),
        cwd=tmp_path,
        PYTHONPATH=str(installed),
    )
    assert "test_key" in said
    assert " passed" in said
    where = run(
        sys.executable,
        "-c",
        "import pytest_thermal; print(pytest_thermal.__file__)",
        cwd=tmp_path,
        PYTHONPATH=str(installed),
    )
    assert Path(where.strip()).is_relative_to(installed)


def test_the_wheel_brings_its_bench_templates(installed: Path, tmp_path: Path) -> None:
    code = "from pytest_thermal.bench import find_template; print(find_template('workstation'))"
    found = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(installed))
    assert Path(found.strip()) == installed / "pytest_thermal" / "benches" / "workstation"
