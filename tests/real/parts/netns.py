"""A network namespace of our own where packets are lost and names do not resolve, with a real engine inside.

Ports in it are ours alone, so the filtered ones may be fixed numbers: nothing listens behind them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.real.parts.errors import PartUnavailableError
from tests.real.parts.llama import Llama, llama_server
from tests.real.parts.process import CHILDREN, line_after, served

_FILTERED = {"dropped": 9101, "reset": 9102, "unreachable": 9103, "prohibited": 9104}
_RULES = f"""\
table inet thermal_real {{
    chain incoming {{
        type filter hook input priority filter; policy accept;
        tcp dport {_FILTERED["dropped"]} drop
        tcp dport {_FILTERED["reset"]} reject with tcp reset
        tcp dport {_FILTERED["unreachable"]} reject with icmpx type host-unreachable
        tcp dport {_FILTERED["prohibited"]} reject with icmpx type admin-prohibited
    }}
}}
"""


@dataclass(frozen=True, kw_only=True)
class NetworkNamespace:
    """Prefix a command with `enter` to run it inside; the addresses mean something only there."""

    name: str
    engine: Llama
    log: Path

    @property
    def enter(self) -> tuple[str, ...]:
        """Command that runs another one inside."""
        return _enter(self.name)

    def url(self, host: str = "127.0.0.1") -> str:
        """The engine's address by an IP address, or by a name such as `here.gateway.test`."""
        return self.engine.url.replace("127.0.0.1", host)

    def named_url(self, label: str) -> str:
        """By name: `here` resolves; `nxdomain`, `servfail`, `refused`, `silent` and `empty` fail in that way.

        `here6` resolves to ::1 only, where nobody listens.
        """
        return self.url(f"{label}.gateway.test")

    def filtered_url(self, fate: str) -> str:
        """Connections to it are `dropped`, `reset`, `unreachable` or `prohibited`."""
        return f"http://127.0.0.1:{_FILTERED[fate]}/v1"


@contextlib.contextmanager
def network_namespace(work: Path) -> Iterator[NetworkNamespace]:
    """Make one; needs root, iproute2 and nftables, and says which of them is missing."""
    if os.geteuid():
        raise PartUnavailableError("a network namespace needs root")
    missing = [package for program, package in (("ip", "iproute2"), ("nft", "nftables")) if not shutil.which(program)]
    if missing:
        raise PartUnavailableError(f"a network namespace needs {' and '.join(missing)}, not installed")
    folder = work / "netns"
    folder.mkdir()
    rules = folder / "rules.nft"
    rules.write_text(_RULES)
    log = folder / "keeper.log"
    keeper = served(
        [sys.executable, str(CHILDREN / "namespace.py"), str(rules)],
        log=log,
        ready=lambda: line_after(log, "namespace ready: "),
    )
    with keeper as name, llama_server(work, name="llama-netns", prefix=_enter(name)) as engine:
        yield NetworkNamespace(name=name, engine=engine, log=log)


def _enter(name: str) -> tuple[str, ...]:
    return ("ip", "netns", "exec", name)
