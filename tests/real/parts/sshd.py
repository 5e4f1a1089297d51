"""A real ``sshd`` on a high port, which lets nobody in but who holds a key made for it."""

from __future__ import annotations

import contextlib
import getpass
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.real.parts.errors import PartUnavailableError
from tests.real.parts.process import accepts, free_ports, retried_on_taken_address, served


@dataclass(frozen=True, kw_only=True)
class Sshd:
    """How to log in."""

    config: Path
    """For ``ssh -F``: any host's name leads here."""


def ssh_server(folder: Path) -> contextlib.AbstractContextManager[Sshd]:
    """The server, until the block ends.

    Raises:
        PartUnavailableError: It is not installed.
    """
    program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
    if program is None or shutil.which("ssh") is None:
        raise PartUnavailableError("sshd is not installed (Debian: openssh-server)")
    return retried_on_taken_address(lambda: _server(folder / "sshd", program))


@contextlib.contextmanager
def _server(home: Path, program: str) -> Iterator[Sshd]:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for name in ("host", "id"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True, timeout=120)
    (home / "id.pub").rename(home / "authorized_keys")
    # Of a root that starts it, it asks for this folder.
    with contextlib.suppress(OSError):
        Path("/run/sshd").mkdir(exist_ok=True)
    (port,) = free_ports(1)
    (home / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host\nAuthorizedKeysFile {home}/authorized_keys\n"
        f"PidFile {home}/pid\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    (home / "config").write_text(
        f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {home}/id\n"
        "  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    command = [program, "-D", "-e", "-f", str(home / "sshd_config")]
    with served(command, log=home / "log", ready=lambda: accepts(port) or None):
        yield Sshd(config=home / "config")
