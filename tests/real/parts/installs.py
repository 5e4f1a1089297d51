"""Install the parts once, each in a folder of its own under `.real/`, and find them there the next time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.real.parts.errors import PartUnavailableError

HERE = Path(__file__).resolve().parent.parent
REPOSITORY = HERE.parent.parent
_INSTALL_LIMIT_SECONDS = 900
_LOG_TAIL_CHARACTERS = 1500


def cache_folder() -> Path:
    """`.real/` at the top of the checkout, or `$REAL_PARTS_CACHE`; it hides itself from git."""
    folder = Path(os.environ.get("REAL_PARTS_CACHE") or REPOSITORY / ".real")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    return folder


def python_environment(name: str) -> Path:
    """Interpreter of the virtual environment made from `requirements-NAME.txt` and `constraints-NAME.txt`."""
    requirements = HERE / f"requirements-{name}.txt"
    constraints = HERE / f"constraints-{name}.txt"
    folder = cache_folder() / name
    interpreter = folder / "bin" / "python"

    def install(log: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        # The pip at hand installs into the new environment: making one with a pip of its own takes 8 s more.
        pip_at_hand = importlib.util.find_spec("pip") is not None
        _run([sys.executable, "-m", "venv", *(["--without-pip"] if pip_at_hand else []), str(folder)], log)
        pip = (
            [sys.executable, "-m", "pip", "--python", str(interpreter)]
            if pip_at_hand
            else [
                str(interpreter),
                "-m",
                "pip",
            ]
        )
        _run(
            [*pip, "install", "--no-input", "-q", "--no-compile", "-r", str(requirements), "-c", str(constraints)], log
        )

    wanted = f"{sys.version} {sys.platform}\n{requirements.read_text()}\n{constraints.read_text()}"
    _install_once(name, folder, wanted, install)
    return interpreter


def npm_package(name: str, program: str) -> tuple[str, ...]:
    """Command that runs PROGRAM of the npm packages listed in `requirements-NAME.txt`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise PartUnavailableError(f"{name} needs node and npm, which are not installed")
    requirements = (HERE / f"requirements-{name}.txt").read_text()
    packages = [line for line in requirements.splitlines() if line and not line.startswith("#")]
    folder = cache_folder() / name

    def install(log: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"private": true}\n')
        _run([npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", *packages], log)

    _install_once(name, folder, requirements, install)
    return node, str((folder / "node_modules" / ".bin" / program).resolve())


def _install_once(name: str, folder: Path, wanted: str, install: Callable[[Path], None]) -> None:
    """Run `install` unless its result for the same `wanted` is there; one process at a time."""
    cache = cache_folder()
    stamp = folder / ".installed"
    fingerprint = hashlib.sha256(wanted.encode()).hexdigest()
    with _lock(cache / f"{name}.lock"):
        if stamp.exists() and stamp.read_text() == fingerprint:
            return
        started = time.monotonic()
        log = cache / f"{name}.log"
        log.write_text("")
        install(log)
        stamp.write_text(fingerprint)
        seconds = round(time.monotonic() - started, 1)
        mebibytes = sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir()) >> 20
    with (cache / "installs.jsonl").open("a") as times:
        times.write(json.dumps({"part": name, "seconds": seconds, "mebibytes": mebibytes}) + "\n")


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: list[str], log: Path) -> None:
    with log.open("a") as output:
        try:
            status = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_without_keys(os.environ),
                timeout=_INSTALL_LIMIT_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise PartUnavailableError(f"not installed within {_INSTALL_LIMIT_SECONDS} s: {log}") from None
    if status:
        tail = log.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:]
        raise PartUnavailableError(f"installing failed with exit code {status}; the end of {log}:\n{tail}")


def _without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.endswith(("_KEY", "_TOKEN"))}
