"""Runs one load and outlives nothing: ``guard.py --limit SECONDS [--parent PID] [--tell FD] -- COMMAND …``.

Standard input is the lifeline: at its end the load is taken off (SIGTERM, SIGKILL 0.3 s later). Lines that come on
it are handed to the command. The load is also taken off when the parent dies, though a process it forked may hold
the lifeline open; at the limit; and by SIGTERM, SIGINT and SIGHUP.

Two processes watch each other: the guard has the lifeline, and its warden has the command. Each adopts what the
command leaves behind (subreaper), so that daemons are found too; whichever of the two is killed, the other clears up.

Once a second the warden tells how much CPU time the load has had: what the machine was busy with may be others' work.

Standard library only, and run by its path under ``-I -S``: it must be up before anything burns.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

GRACE_SECONDS = 0.3
"""Between SIGTERM and SIGKILL, unless told otherwise."""
SWEEP_SECONDS = 1.0
"""How long it is tried to kill what does not die: a process in an uninterruptible call dies when that returns."""
TICK_SECONDS = 0.1
SUSPENDED_SECONDS = 2.0
"""A parent that stands still for so long (Ctrl-Z) watches nothing, and nobody knows whether it will ever go on."""
ACCOUNT_SECONDS = 1.0
"""How often the load's CPU time is told."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_FIRST_VICTIM = "500"  # of 1000: when memory runs out, the load goes first, not the recorder
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Guard a command until its end; returns its exit code, 128 + signal where one ended it."""
    parser = argparse.ArgumentParser(prog="guard.py")
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS)
    parser.add_argument("--parent", type=int, default=os.getppid())
    parser.add_argument("--tell", type=int, default=None)
    parser.add_argument("--nice", type=int, default=0)
    given = list(sys.argv[1:] if arguments is None else arguments)
    own, command = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    options = parser.parse_args(own)
    if not command:
        parser.error("no command after --")
    wakeup = _listen_to_signals()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    life_read, life_write = os.pipe()
    orders_read, orders_write = os.pipe()
    warden = os.fork()
    if warden == 0:
        for descriptor in (life_write, orders_write):
            os.close(descriptor)
        os.setsid()
        os._exit(
            _Warden(command, life_read, orders_read, options.tell, grace_seconds=options.grace, nice=options.nice).run()
        )
    for descriptor in (life_read, orders_read):
        os.close(descriptor)
    return _Guard(
        warden,
        life_write,
        orders_write,
        wakeup,
        tell=options.tell,
        parent=options.parent,
        limit_seconds=options.limit,
        grace_seconds=options.grace,
    ).run()


class _Guard:
    """Holds the lifeline, the limit and the orders."""

    def __init__(
        self,
        warden: int,
        life: int,
        orders: int,
        wakeup: int,
        *,
        tell: int | None,
        parent: int,
        limit_seconds: float,
        grace_seconds: float,
    ) -> None:
        self._grace_seconds = grace_seconds
        self._warden = warden
        self._life = life
        self._orders: int | None = orders
        self._wakeup = wakeup
        self._tell = tell
        self._parent = parent
        self._deadline = time.monotonic() + limit_seconds
        self._pending = b""
        self._suspended_at: float | None = None
        os.set_blocking(orders, False)

    def run(self) -> int:
        why = ""
        status: int | None = None
        while not why and (status := _exit_of(self._warden)) is None:
            why = self._wait()
        if status is None:
            _say(self._tell, why=why)
            self._close_orders()
            os.close(self._life)  # the warden sees it
            status = self._end_of_warden()
        elif status < 0:
            _say(self._tell, why="warden")
        _sweep(grace_seconds=0.0 if status < 0 else self._grace_seconds)
        return 128 - status if status < 0 else status

    def _wait(self) -> str:
        """Whatever happens next; says why the load is to be taken off, if it is."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        if self._orders is not None and self._pending:
            poll.register(self._orders, select.POLLOUT)
        left_seconds = max(0.0, self._deadline - time.monotonic())
        ready = {descriptor for descriptor, _ in poll.poll(1000 * min(TICK_SECONDS, left_seconds))}
        if self._wakeup in ready and (number := _ending_signal(self._wakeup)):
            return signal.Signals(number).name
        if 0 in ready:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            if not data:
                return "lifeline"
            self._pending += data
        self._hand_on()
        if os.getppid() != self._parent:
            return "parent"
        if self._is_suspended():
            return "suspended"
        return "limit" if time.monotonic() >= self._deadline else ""

    def _is_suspended(self) -> bool:
        try:
            state = Path(f"/proc/{self._parent}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        except OSError:
            return False
        if not state.startswith(" T"):  # " t" is held by a debugger, whose user sits there
            self._suspended_at = None
            return False
        now = time.monotonic()
        self._suspended_at = self._suspended_at or now
        return now - self._suspended_at >= SUSPENDED_SECONDS

    def _hand_on(self) -> None:
        while self._pending and self._orders is not None:
            try:
                self._pending = self._pending[os.write(self._orders, self._pending) :]
            except BlockingIOError:
                return
            except OSError:
                self._close_orders()  # it does not listen
        self._pending = self._pending if self._orders is not None else b""

    def _close_orders(self) -> None:
        if self._orders is not None:
            os.close(self._orders)
            self._orders = None

    def _end_of_warden(self) -> int:
        deadline = time.monotonic() + self._grace_seconds + SWEEP_SECONDS
        while True:
            # Looked for once more after the deadline: this process may have been the one that stood still.
            is_over = time.monotonic() >= deadline
            status = _exit_of(self._warden)
            if status is not None:
                return status
            if is_over:
                break
            select.select([self._wakeup], [], [], TICK_SECONDS)
            _ending_signal(self._wakeup)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._warden, signal.SIGKILL)
        return -signal.SIGKILL


class _Warden:
    """Runs the command in a session of its own, and clears up after it."""

    def __init__(
        self, command: Sequence[str], life: int, orders: int, tell: int | None, *, grace_seconds: float, nice: int
    ) -> None:
        self._grace_seconds = grace_seconds
        self._nice = nice
        self._command = command
        self._life = life
        self._orders = orders
        self._tell = tell

    def run(self) -> int:
        wakeup = _listen_to_signals()
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            process = subprocess.Popen(
                self._command,
                stdin=self._orders,
                start_new_session=True,
                preexec_fn=partial(_become_load, self._nice),  # noqa: PLW1509 - there is one thread here
            )
        except OSError as error:
            _say(self._tell, failed=error.strerror or str(error), errno=error.errno)
            return 127
        _say(self._tell, started=process.pid)
        os.close(self._orders)
        # Only the command holds what it writes to now: its readers see its end.
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        code = self._watch(process.pid, wakeup)
        own_end = code is not None
        last = _sweep(grace_seconds=self._grace_seconds, watched=process.pid)
        if code is None and last is not None:
            code = os.waitstatus_to_exitcode(last)
        process.returncode = -signal.SIGKILL if code is None else code
        used = _used()
        more = {} if used is None else {"cpu_seconds": round(used[0], 2), "at": round(time.monotonic(), 3)}
        _say(self._tell, exit=code, own_end=own_end, left=len(list(_descendants())), **more)
        return 128 - process.returncode if process.returncode < 0 else process.returncode

    def _watch(self, process: int, wakeup: int) -> int | None:
        """Until the command has ended, with its exit code, or until it has to end: None."""
        code: int | None = None
        poll = select.poll()
        poll.register(self._life, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        told_at = 0.0
        while True:
            now = time.monotonic()
            if now >= told_at + ACCOUNT_SECONDS:
                told_at = now
                self._account()
            for child, status in _reaped():
                if child == process:
                    code = os.waitstatus_to_exitcode(status)
            # What put itself into the background and says that all is well is still at work there.
            if code is not None and (code != 0 or not any(_descendants())):
                return code
            wait_seconds = ACCOUNT_SECONDS if code is None else TICK_SECONDS
            ready = {descriptor for descriptor, _ in poll.poll(1000 * wait_seconds)}
            if self._life in ready or (wakeup in ready and _ending_signal(wakeup)):
                return code

    def _account(self) -> None:
        """Tell the CPU time, unless nobody has read what was told before: the load is not held up by its listener."""
        if self._tell is None:
            return
        poll = select.poll()
        poll.register(self._tell, select.POLLOUT)
        if poll.poll(0) and (used := _used()) is not None:
            _say(self._tell, cpu_seconds=round(used[0], 2), at=round(time.monotonic(), 3), stopped=used[1])


def _become_load(nice: int) -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if nice:
        os.nice(nice)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_VICTIM, encoding="ascii")


def _prctl(option: int, value: int) -> None:
    """Ask the kernel; where it is not Linux, the lifeline and the process group have to do."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _listen_to_signals() -> int:
    """The descriptor on which the numbers of signals arrive from now on."""
    read, write = os.pipe()
    for descriptor in (read, write):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (*_ENDING, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_ENDING, signal.SIGCHLD))
    return read


def _ending_signal(wakeup: int) -> int:
    """The first of the signals that arrived which ends the load; 0 for none."""
    try:
        numbers = os.read(wakeup, 512)
    except OSError:
        return 0
    return next((number for number in numbers if number in _ENDING), 0)


def _exit_of(process: int) -> int | None:
    """How a child ended: its exit code, or minus its signal; None while it runs."""
    try:
        found, status = os.waitpid(process, os.WNOHANG)
    except ChildProcessError:
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status) if found else None


def _reaped() -> Iterator[tuple[int, int]]:
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not child:
            return
        yield child, status


def _descendants() -> Iterator[int]:
    """Everything that this process started, or inherited, and that is no corpse."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112 - once per process
        if entry.name.isdigit():
            try:
                stat = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(entry.name))
    waiting = children.get(os.getpid(), [])
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        yield process


def _used() -> tuple[float, int] | None:
    """CPU time in seconds of everything started from here, also of what has ended; and how many of it are stopped.

    None where the kernel does not list a process's children, so that nothing could be found.
    """
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):  # noqa: PTH110 - once a second
        return None
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = stopped = 0
    waiting = _children(os.getpid())
    while waiting:
        process = waiting.pop()
        waiting += _children(process)
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
            state, *more = stat.rpartition(")")[2].split()
            ticks += sum(map(int, more[10:14]))  # its own, and its children's that it has collected
            stopped += state in "Tt"
    return ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK"), stopped


def _children(process: int) -> list[int]:
    """What its threads started; nothing of a process that is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - once a second
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{process}/task/{task}/children").read_text(encoding="ascii")
                found += map(int, text.split())
    return found


def _sweep(*, grace_seconds: float, watched: int = 0) -> int | None:
    """End all descendants, and collect them; returns the wait status of the watched one if it ended here."""
    status: int | None = None
    asked: set[int] = set()
    kill_at = time.monotonic() + grace_seconds
    # From the first SIGKILL on, and not from when that was due: a sweep that stood still meanwhile has killed nothing.
    give_up_at = float("inf")
    while True:
        left = list(_descendants())
        now = time.monotonic()
        # After they were looked for: what died in between is collected before it is reported.
        for child, ended in _reaped():
            if child == watched:
                status = ended
        if not left or now >= give_up_at:
            return status
        if now >= kill_at:
            give_up_at = min(give_up_at, now + SWEEP_SECONDS)
        for process in left:
            if now >= kill_at or process not in asked:
                asked.add(process)
                # Gone meanwhile, or another user's (setuid): that one is told of as left.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL if now >= kill_at else signal.SIGTERM)
        time.sleep(0.01)


def _say(tell: int | None, **words: object) -> None:
    if tell is not None:
        with contextlib.suppress(OSError):
            os.write(tell, json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
