"""umockdev: a /sys of its own for unmodified programs; and strace, which lets the kernel refuse single reads of it."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.real.parts.errors import PartFailedError, PartUnavailableError
from tests.real.parts.process import CHILDREN, served

_NEEDED = ("umockdev-run", "strace")
_ATTACH_SECONDS = 90.0
_STOP_SECONDS = 90.0

_BOX = {
    "/devices/virtual/thermal/thermal_zone0": ("thermal", {"type": "acpitz", "temp": "27800"}),
    "/devices/virtual/thermal/thermal_zone1": ("thermal", {"type": "soc_dts0", "temp": "41000"}),
    "/devices/platform/coretemp.0/hwmon/hwmon0": (
        "hwmon",
        {"name": "coretemp", "temp1_label": "Package id 0", "temp1_input": "52000",
         "temp2_label": "Core 0", "temp2_input": "50000"},
    ),
    "/devices/platform/nct6775.656/hwmon/hwmon1": (
        "hwmon",
        {"name": "nct6798", "fan1_input": "1180", "fan7_label": "W_PUMP+", "fan7_input": "3450",
         "temp1_label": "T_Sensor", "temp1_input": "34500"},
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MockedRun:
    """A recording of the mocked /sys that goes on."""

    run: Path
    sys: Path
    """Where the files lie that programs see below /sys."""

    def stop(self) -> None:
        """End the recording, and wait until it has."""
        home = self.run.parents[1]
        (home / "stop").touch()
        deadline = time.monotonic() + _STOP_SECONDS
        while not (home / "stopped").exists():
            if time.monotonic() > deadline:
                raise PartFailedError(f"the recording did not end within {_STOP_SECONDS:g} s")
            time.sleep(0.05)

    @contextlib.contextmanager
    def refused(self, file: str, error: str) -> Iterator[None]:
        """Inside, reading that file of /sys fails with this error, in whichever process has it open."""
        path = next(iter(self.sys.glob(file)), None)
        assert path is not None, file
        process = subprocess.Popen(
            ["strace", "-f", "-o", "/dev/null", "-p", str(_reader_of(path)), "-P", str(path.resolve()),
             "-e", "trace=pread64", "-e", f"inject=pread64:error={error}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            if "attached" not in said:
                raise PartUnavailableError(f"strace may not attach here: {said.strip()}")
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=_ATTACH_SECONDS)


@contextlib.contextmanager
def recorded_sys(folder: Path) -> Iterator[MockedRun]:
    """A recorder, as it is, in front of the mocked /sys, until the block ends.

    Raises:
        PartUnavailableError: umockdev or strace is not installed.
    """
    for program in _NEEDED:
        if shutil.which(program) is None:
            raise PartUnavailableError(f"{program} is not installed (Debian: umockdev, strace)")
    home = folder / "mocked-sys"
    home.mkdir()
    described = [
        f"P: {place}\nE: SUBSYSTEM={kind}\n" + "".join(f"A: {name}={text}\\n\n" for name, text in files.items())
        for place, (kind, files) in _BOX.items()
    ]
    (home / "box.umockdev").write_text("\n".join(described))
    said = home / "said.json"

    def ready() -> MockedRun | None:
        if not said.exists():
            return None
        told = json.loads(said.read_text())
        return MockedRun(run=Path(told["run"]), sys=Path(told["mock"]) / "sys")

    command = [
        "umockdev-run", "-d", str(home / "box.umockdev"), "--",
        sys.executable, str(CHILDREN / "record_sysfs.py"), str(home), str(said),
    ]  # fmt: skip
    with served(command, log=home / "log", ready=ready) as running:
        yield running


def _reader_of(path: Path) -> int:
    wanted = str(path.resolve())
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if str(link.readlink()) == wanted:
                return int(link.parts[2])
    raise PartFailedError(f"nobody has {path} open")
