"""Hold a network namespace for as long as we run: `python namespace.py RULES`.

It gets a loopback device, the packet filter in the file RULES, and our name server as its only resolver.
All of it, and every process inside, goes when we are told to stop.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

_NAMESPACES = Path("/run/netns")
_CONFIGURATIONS = Path("/etc/netns")
_PREFIX = "thermal-real-"


def _ip(*arguments: str) -> str:
    return subprocess.run(
        ["ip", *arguments], check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
    ).stdout


def remove(name: str) -> None:
    """Remove the namespace and end what runs in it; nothing happens where there is none."""
    if (_NAMESPACES / name).exists():
        with contextlib.suppress(subprocess.CalledProcessError):
            for process in _ip("netns", "pids", name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("netns", "delete", name)
    shutil.rmtree(_CONFIGURATIONS / name, ignore_errors=True)
    with contextlib.suppress(OSError):
        _CONFIGURATIONS.rmdir()  # only if nobody else has one there


def remove_orphans() -> None:
    """Remove what a keeper that was killed outright could not: its process id is in the name."""
    for entry in _NAMESPACES.glob(f"{_PREFIX}*") if _NAMESPACES.is_dir() else ():
        keeper = entry.name.removeprefix(_PREFIX)
        if keeper.isdecimal() and not Path(f"/proc/{keeper}").exists():
            remove(entry.name)


def _told_to_stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main(rules: Path) -> None:
    """Make the namespace, print its name, and keep it until told to stop."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _told_to_stop)
    remove_orphans()
    name = f"{_PREFIX}{os.getpid()}"
    try:
        configuration = _CONFIGURATIONS / name
        configuration.mkdir(parents=True)
        (configuration / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:5\n")
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("netns", "exec", name, "nft", "-f", str(rules))
        names = [sys.executable, str(Path(__file__).with_name("names.py")), "127.0.0.1", "53"]
        with subprocess.Popen(["ip", "netns", "exec", name, *names], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            if server.stdout.readline() != "answering names\n":
                raise SystemExit("the name server did not start")
            sys.stdout.write(f"namespace ready: {name}\n")
            sys.stdout.flush()
            try:
                server.wait()
            finally:
                server.kill()
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{' '.join(error.cmd)}: exit code {error.returncode}\n{error.stderr}") from None
    finally:
        remove(name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
