"""What runs on the simulated machine: found from real processes, and told by the demo gateway itself.

A folder stands for the machine. Its path is in the environment of whatever is to load it; a process that was killed
is a load that is gone, at once and whoever killed it. Linux only.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "PYTEST_THERMAL_DEMO"
"""The environment variable that has the folder's path."""

ACCELERATOR_MODULE = "pytest_thermal.demo.accelerator"
_BURNER_MODULE = re.compile(r"pytest_thermal\.load\.\w*burner")
_BURNER_COMM = "stress-ng"

_RUNNING = frozenset("RD")
_ALIVE = frozenset("RDSI")
_YOUNG_SECONDS = 5.0
"""A process of this age may still become another program; what an older one does is not asked again."""
_MOST_ANCESTORS = 16


def make_folder() -> Path:
    """A new folder for one simulated machine, for its owner only. Whoever made it removes it."""
    return Path(tempfile.mkdtemp(prefix="pytest-thermal-demo-"))


# ------------------------------------------------------------------------------------------------------ processes


@dataclass(frozen=True, kw_only=True)
class Burning:
    """What heats the simulated machine at one moment."""

    burners: int = 0
    """CPU burners that run or wait for a core."""
    cards: frozenset[int] = frozenset()
    """Cards with a demo accelerator load."""
    every_card: bool = False


@dataclass(frozen=True, kw_only=True)
class _Process:
    pid: int
    parent: int
    comm: str
    state: str
    started: int
    """Clock ticks after boot."""


@dataclass(frozen=True, kw_only=True)
class _Role:
    burner: bool = False
    card: int | None = None
    """−1 for every card."""


_NONE = _Role()


class Processes:
    """Follows the processes that load the machine of one folder."""

    def __init__(self, folder: Path, *, proc: Path = Path("/proc")) -> None:
        self._mark = f"{FOLDER_VARIABLE}={folder}".encode()
        self._proc = proc
        self._roles: dict[tuple[int, int, str], _Role] = {}
        self._ticks = float(os.sysconf("SC_CLK_TCK"))

    def look(self) -> Burning:
        """What burns now. Takes some milliseconds where many hundred processes run."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        processes = {process.pid: process for process in self._processes()}
        roles: dict[tuple[int, int, str], _Role] = {}
        burners, cards = 0, set[int]()
        for process in processes.values():
            key = (process.pid, process.started, process.comm)
            role = self._roles.get(key)
            if role is None:
                role = self._role(process, processes)
            if now - process.started / self._ticks > _YOUNG_SECONDS:
                roles[key] = role
            if role.burner and process.state in _RUNNING:
                burners += 1
            if role.card is not None and process.state in _ALIVE:
                cards.add(role.card)
        self._roles = roles
        return Burning(burners=burners, cards=frozenset(cards - {-1}), every_card=-1 in cards)

    def _processes(self) -> Iterator[_Process]:
        try:
            names = os.listdir(self._proc)  # noqa: PTH208 - four times a second: names do
        except OSError:
            return
        for name in names:
            if name.isdigit():
                process = _read_stat(self._proc, int(name))
                if process is not None:
                    yield process

    def _role(self, process: _Process, others: dict[int, _Process]) -> _Role:
        # Workers of stress-ng write their title over arguments and environment: only the name is left.
        by_name = process.comm.startswith(_BURNER_COMM)
        role = _Role(burner=True) if by_name else _role_of(self._read(process.pid, "cmdline").split(b"\0"))
        return role if role is not _NONE and self._is_ours(process, others) else _NONE

    def _is_ours(self, process: _Process, others: dict[int, _Process]) -> bool:
        """Whether it, or one that it descends from, was started for this folder."""
        one: _Process | None = process
        for _ in range(_MOST_ANCESTORS):
            if one is None or one.pid <= 1:
                return False
            if self._mark in self._read(one.pid, "environ").split(b"\0"):
                return True
            one = others.get(one.parent)
        return False

    def _read(self, pid: int, what: str) -> bytes:
        try:
            return (self._proc / str(pid) / what).read_bytes()
        except OSError:
            return b""  # gone, or another user's


def _read_stat(proc: Path, pid: int) -> _Process | None:
    try:
        with open(f"{proc}/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - often: no Path
            text = file.read()
    except OSError:
        return None
    # The name may hold anything, spaces and brackets too.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 20:
        return None
    return _Process(
        pid=pid, comm=head.partition("(")[2], state=fields[0], parent=int(fields[1]), started=int(fields[19])
    )


def _role_of(arguments: Sequence[bytes]) -> _Role:
    words = [argument.decode("utf-8", "replace") for argument in arguments]
    module, rest = _module_run(words[1:])
    if _BURNER_MODULE.fullmatch(module):
        return _Role(burner=True)
    if module == ACCELERATOR_MODULE:
        return _Role(card=_card_in(rest))
    return _NONE


def _module_run(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The module that a Python runs by ``-m`` and its arguments; not one that another program merely has as words."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        if words[index] == "-m":
            return (words[index + 1], words[index + 2 :]) if index + 1 < len(words) else ("", ())
        if words[index] == "-c":
            break
        index += 2 if words[index] in {"-X", "-W"} else 1
    return "", ()


def _card_in(words: Sequence[str]) -> int:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, _, value = word.partition("=")
        if name == "--card":
            value = value or following
            return int(value) if value.isdigit() else -1
    return -1


# --------------------------------------------------------------------------------------------- the gateway's engine

_LAYOUT = struct.Struct("<QQQqQddQ")
"""Number of the writing; process id and its start; answers in the making, tokens, seconds × answers and when that was
reckoned; the number again. Two numbers that differ: it was read while it was written."""
_PREFIX, _SUFFIX = "engine-", ".bin"
_TRIES = 50


class EngineGauge:
    """The gateway's side: how many answers it makes at a time. For one thread."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError where the folder cannot be written."""
        handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=folder)
        self._path = Path(name)
        try:
            os.ftruncate(handle, _LAYOUT.size)
            self._memory = mmap.mmap(handle, _LAYOUT.size)
        finally:
            os.close(handle)
        own = _read_stat(Path("/proc"), os.getpid())
        self._process = (os.getpid(), own.started if own else 0)
        self._number = self._in_the_making = self._tokens = 0
        self._area, self._since = 0.0, time.monotonic()
        self._open = True
        self._write()

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """One answer is made meanwhile."""
        self._change(+1)
        try:
            yield
        finally:
            self._change(-1)

    def token(self) -> None:
        """One more token was made."""
        self._tokens += 1
        self._write()

    def close(self) -> None:
        """Nothing is made any more; a second call does nothing."""
        if self._open:
            self._open = False
            self._memory.close()
            self._path.unlink(missing_ok=True)

    def _change(self, by: int) -> None:
        now = time.monotonic()
        self._area += self._in_the_making * (now - self._since)
        self._since = now
        self._in_the_making += by
        self._write()

    def _write(self) -> None:
        if not self._open:
            return
        self._number += 1
        told = (*self._process, self._in_the_making, self._tokens, self._area, self._since)
        _LAYOUT.pack_into(self._memory, 0, self._number, *told, self._number)


@dataclass(frozen=True, kw_only=True)
class _Engine:
    pid: int
    started: int
    in_the_making: int
    tokens: int
    area: float
    since: float


@dataclass(frozen=True, kw_only=True)
class Served:
    """What the gateways of a folder did since they were last asked about."""

    in_flight: float = 0.0
    """Answers in the making, on average."""
    tokens: int = 0


class Engines:
    """The machine's side: what all gateways of a folder do. One that died does nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[float, float, int]] = {}
        """By file: when it was looked at, seconds × answers by then, tokens by then."""

    def look(self) -> Served:
        """What was done since the last look; at the first, what is being done."""
        now = time.monotonic()
        in_flight, tokens = 0.0, 0
        seen: dict[str, tuple[float, float, int]] = {}
        for path in sorted(self._folder.glob(f"{_PREFIX}*{_SUFFIX}")):
            engine = _read_engine(path)
            if engine is None or not _lives(engine):
                continue
            area = engine.area + engine.in_the_making * max(now - engine.since, 0.0)
            seen[path.name] = (now, area, engine.tokens)
            before = self._seen.get(path.name)
            if before is None or now <= before[0]:
                in_flight += engine.in_the_making
            else:
                in_flight += max(area - before[1], 0.0) / (now - before[0])
                tokens += engine.tokens - before[2]
        self._seen = seen
        return Served(in_flight=in_flight, tokens=tokens)


def _read_engine(path: Path) -> _Engine | None:
    for _ in range(_TRIES):
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if len(content) < _LAYOUT.size:
            return None
        number, pid, started, in_the_making, tokens, area, since, again = _LAYOUT.unpack_from(content)
        if number and number == again:
            return _Engine(pid=pid, started=started, in_the_making=in_the_making, tokens=tokens, area=area, since=since)
    return None


def _lives(engine: _Engine) -> bool:
    process = _read_stat(Path("/proc"), engine.pid)
    return process is not None and process.started == engine.started and process.state in _ALIVE
