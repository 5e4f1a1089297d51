"""Which latency test is run here, and running it: the user's, ib_write_lat over loopback, or nccl-tests."""

from __future__ import annotations

import re
import shlex
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.interconnect.commands import Program, Ran, child_environment, find_program, first_lines, run
from pytest_thermal.access.interconnect.fabric import Fabric
from pytest_thermal.access.interconnect.latency_tools import Figure, NotUnderstood, read_latency
from pytest_thermal.access.interconnect.rdma import Port
from pytest_thermal.access.verdict import CannotMeasure
from pytest_thermal.model.said import say

EXAMPLE = say('--interconnect-cmd "ib_write_lat -d mlx5_0 PEER", with ib_write_lat -d mlx5_0 running on PEER')

_RETRY_SECONDS = 0.2
_SHELL_SIGNS = re.compile(r"[|;<>&$`]|^~")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A figure, how it was got, and what it leaves out."""

    figure: Figure
    command: str
    way: str = ""
    """What lay between the two ends, where we chose it."""
    chosen_here: bool = False
    """Whether the test was our choice: then it must not fail a machine for what it cannot measure."""
    transcript: str = ""


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """Why nothing on this machine can measure it."""

    reasons: tuple[str, ...]


def measure(
    gateway: Gateway, fabric: Fabric | None, *, ports: Callable[[], Sequence[Port]], dev: Path
) -> Measurement | Unavailable:
    """Run the user's test, else the best one that this machine has for ``fabric``.

    Raises:
        CannotMeasure: a test was run, and no figure came of it.
    """
    environ = child_environment(gateway.environ, gateway.bench.secrets())
    seconds = gateway.plan.interconnect_seconds
    if gateway.plan.interconnect_command is not None:
        return _users(gateway.plan.interconnect_command, environ, seconds)
    reasons: list[str] = []
    if fabric is None or fabric.rdma:
        done = _loopback(environ, seconds, fabric, ports)
        if isinstance(done, Measurement):
            return done
        reasons.append(done)
    if fabric is None or not fabric.ascend:
        done = _all_reduce(environ, seconds, dev)
        if isinstance(done, Measurement):
            return done
        reasons.append(done)
    return Unavailable(
        reasons=tuple(reasons)
        or (say("no test is known here for {fabric}", fabric=fabric.text if fabric else say("it")),)
    )


# --- the user's ----------------------------------------------------------------------------------------------


def _users(command: str, environ: Mapping[str, str], seconds: float) -> Measurement:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise CannotMeasure(
            say("--interconnect-cmd {command!r} cannot be split into words ({error})", command=command, error=error),
            likely=say("a quotation mark is missing"),
            advice=EXAMPLE,
        ) from error
    if not argv:
        raise CannotMeasure(say("--interconnect-cmd is empty"), advice=EXAMPLE)
    program = find_program(argv[0], environ)
    if program is None:
        shell = say(" It is run without a shell: put variables before it after an `env`.") if "=" in argv[0] else ""
        raise CannotMeasure(
            say("{argv} of --interconnect-cmd is not found, or not executable", argv=argv[0]),
            likely=say("it is not installed here, or in a folder that is not on PATH"),
            advice=say("type -a {argv}; give its full path.{shell}", argv=shlex.quote(argv[0]), shell=shell),
        )
    ran = run([program, *argv[1:]], environ=environ, seconds=seconds)
    return Measurement(figure=_figure(ran, argv, seconds), command=shlex.join(argv), transcript=_transcript(ran, argv))


# --- ib_write_lat over loopback ------------------------------------------------------------------------------


def _loopback(
    environ: Mapping[str, str], seconds: float, fabric: Fabric | None, ports: Callable[[], Sequence[Port]]
) -> Measurement | str:
    program = find_program("ib_write_lat", environ)
    if program is None:
        return say("ib_write_lat (perftest) is not on PATH")
    layer = fabric.link_layer if fabric else None
    usable = [port for port in ports() if port.active and port.number is not None and layer in (None, port.link_layer)]
    if not usable:
        return say("no RDMA port is active")
    port = usable[0]
    argv = ["ib_write_lat", "-d", port.device, "-i", str(port.number), "-p", str(_free_port()), "-F"]
    deadline = time.monotonic() + seconds
    with Program([program, *argv[1:]], environ=environ) as server:
        while True:
            left_seconds = max(0.0, deadline - time.monotonic())
            client = run([program, *argv[1:], "127.0.0.1"], environ=environ, seconds=left_seconds)
            if client.ok or client.timed_out or not _server_is_late(client, server, deadline):
                break
            time.sleep(_RETRY_SECONDS)
        served = None if client.ok or server.alive else server.wait(0.1)
    # Of two that failed, the server knows why: the client only lost it.
    told = served if served is not None and served.status not in (None, 0) else client
    return Measurement(
        figure=_figure(told, argv, seconds),
        command=say("{names}, once as server and once to 127.0.0.1", names=shlex.join(argv)),
        way=say("over loopback on {port_name}: neither cable, switch nor peer", port_name=port.name),
        chosen_here=True,
        transcript=_transcript(told, argv),
    )


def _server_is_late(client: Ran, server: Program, deadline: float) -> bool:
    refused = "connect" in f"{client.output}{client.errors}".lower()
    return refused and server.alive and time.monotonic() + _RETRY_SECONDS < deadline


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("", 0))
        return int(sock.getsockname()[1])


# --- nccl-tests ----------------------------------------------------------------------------------------------


def _all_reduce(environ: Mapping[str, str], seconds: float, dev: Path) -> Measurement | str:
    program = find_program("all_reduce_perf", environ)
    if program is None:
        return say("all_reduce_perf (nccl-tests) is not on PATH")
    count = len([path for path in dev.glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)])
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        count = min(count, len([part for part in visible.split(",") if part.strip()]))
    if count < 2:
        return say("all_reduce_perf needs two GPUs, and {count} is here", count=count or say("none"))
    argv = ["all_reduce_perf", "-b", "8", "-e", "8", "-g", str(count)]
    ran = run([program, *argv[1:]], environ=environ, seconds=seconds)
    return Measurement(
        figure=_figure(ran, argv, seconds),
        command=shlex.join(argv),
        way=say("between the {count} GPUs of this machine", count=count),
        chosen_here=True,
        transcript=_transcript(ran, argv),
    )


# --- what came of it -----------------------------------------------------------------------------------------

_KNOWN_FAILURES = (
    (
        r"did not detect devices|unable to find the infiniband",
        say("there is no RDMA device that this process may use: no driver, or the container has no /dev/infiniband"),
        "ls /dev/infiniband /sys/class/infiniband; modprobe ib_uverbs",
    ),
    (
        r"IB device .* not found|unable to find .*device",
        say("no device has the name given with -d"),
        "rdma link, for the names of the devices",
    ),
    (
        r"memlock|couldn't (allocate|register) MR|cannot allocate memory",
        say("RDMA pins its memory, and this user may not pin enough"),
        say("ulimit -l unlimited; in a container --ulimit memlock=-1 --cap-add IPC_LOCK"),
    ),
    (
        r"permission denied|operation not permitted|EACCES|EPERM",
        say("this user may not use the device or the program"),
        say("ls -l /dev/infiniband; run as root, or as a member of the device's group"),
    ),
    (
        r"couldn't connect|connection refused|unable to set up socket|no route to host|host key|name or service",
        say("the peer is not reached, or runs no server"),
        say("start the same test without a peer's name on the peer first; its TCP port (18515) must be open"),
    ),
    (
        r"failed to modify qp|unable to connect the hca|failed to create ah",
        say("the two ends do not reach each other: over RoCE the GID index or the network is wrong"),
        say("show_gids; give the index of a RoCE v2 GID with -x"),
    ),
    (
        r"nccl (warn|failure|error)|cuda (failure|error)|hccl.*(error|fail)",
        say("the communication library failed, which says nothing of the links yet"),
        say("the same command with NCCL_DEBUG=INFO (ASCEND_GLOBAL_LOG_LEVEL=1)"),
    ),
)


def _figure(ran: Ran, argv: Sequence[str], seconds: float) -> Figure:
    shown = _shown(argv)
    if ran.timed_out:
        raise CannotMeasure(
            say(
                "{shown} did not end within {seconds:g} s and was stopped; it said: {said}",
                shown=shown,
                seconds=seconds,
                said=ran.said or say("nothing"),
            ),
            likely=say("it waits for a peer that runs no server, the fabric drops its messages, or it is a long test"),
            advice=say("run it by hand; start the server on the peer first; fewer iterations or GPUs"),
        )
    if ran.overflowed:
        raise CannotMeasure(
            say("{shown} wrote without end and was stopped; it began: {said}", shown=shown, said=ran.said),
            likely=say("it is no test that ends, or it logs every message"),
            advice=say("a test that prints one table; NCCL_DEBUG=WARN"),
        )
    if ran.status != 0:
        likely, advice = _failure(f"{ran.output}\n{ran.errors}", argv)
        raise CannotMeasure(
            say("{shown} {ending}: {said}", shown=shown, ending=_ending(ran), said=ran.said or say("no output")),
            likely=likely,
            advice=advice,
        )
    try:
        figure = read_latency(ran.output, argv=argv)
    except NotUnderstood as error:
        raise CannotMeasure(
            say(
                "output of {shown} not understood: {error}; it begins: {first_lines}",
                shown=shown,
                error=error,
                first_lines=first_lines(ran.output) or ran.said or say("empty"),
            ),
            likely=say("another test, other options, or a test that broke off"),
            advice=say(
                "ib_write_lat, nccl-tests, hccl_test, osu_latency, or a script that prints one line such as 3.2 us"
            ),
        ) from error
    if not figure.plausible:
        raise CannotMeasure(
            say("{words}, which is not plausible", words=figure.words),
            likely=say("the test measured nothing: too few iterations, or a clock that stood still"),
            advice=say("run {shown} by hand, with more iterations", shown=shown),
        )
    return figure


def _ending(ran: Ran) -> str:
    status = ran.status or 0
    return (
        say("was ended by signal {status}", status=status - 128)
        if status > 128
        else say("ended with status {status}", status=status)
    )


def _failure(text: str, argv: Sequence[str]) -> tuple[str, str]:
    if any(_SHELL_SIGNS.search(word) for word in argv):
        return (
            say("it has signs in it that only a shell understands, and it is run without one"),
            say("put it into a script, and give the script's name"),
        )
    for pattern, likely, advice in _KNOWN_FAILURES:
        if re.search(pattern, text, re.IGNORECASE):
            return likely, advice
    return say("the test itself failed, which says nothing of the interconnect yet"), say(
        "run it by hand and read all it says"
    )


def _shown(argv: Sequence[str]) -> str:
    text = shlex.join(argv)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _transcript(ran: Ran, argv: Sequence[str]) -> str:
    return f"$ {shlex.join(argv)}\n{ran.output[-8000:]}"
