"""What a request costs the load engine, and how true its times are, beside others in the same run.

All ask the same reference server (`pytest_thermal.load.reference_server`), which has a core of its own and says in
each answer when it had the request and when it answered: what a client adds is its own latency less that. Clients are
processes of their own, pinned to the other core, that take turns; CPU is user + system of the client process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[1]
BENCH = ROOT / ".bench"
PEERS = ("aiohttp", "pyreqwest", "requests", "httpx", "httptools", "uvloop")
NEEDED = ("httpx", "pydantic", "certifi", "tenacity")
"""By the engine itself, in a venv of the benchmark's own."""

BODY = {"model": "m", "messages": [{"role": "user", "content": "word " * 128}], "max_tokens": 32, "temperature": 0.0}
WHOLE = json.dumps({**BODY, "stream": False}, separators=(",", ":")).encode()
STREAM = json.dumps({**BODY, "stream": True}, separators=(",", ":")).encode()
HEADERS = {"Content-Type": "application/json"}
CLIENTS = (
    "ours uvloop", "ours asyncio", "ours, bytes only", "pyreqwest uvloop", "aiohttp uvloop", "aiohttp asyncio",
    "httpx uvloop", "httpx asyncio", "requests threads", "wrk",
)  # fmt: skip
BYTES_ONLY = "ours, bytes only"
SHARED = (1, 2)
WARM_SECONDS = 6.0
"""Of a whole load: longer than its own health looks back before it judges."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A measurement: so many in parallel, of what."""

    name: str
    parallel: int
    stream: bool
    whole_seconds: float
    without: tuple[str, ...] = ()


CELLS = (
    Cell(name="at once", parallel=64, stream=False, whole_seconds=0.0),
    Cell(name="stream", parallel=64, stream=True, whole_seconds=0.0, without=("wrk",)),
    Cell(name="stream 256", parallel=256, stream=True, whole_seconds=0.0, without=("wrk", "httpx", "requests")),
    Cell(name="stream 1024", parallel=1024, stream=True, whole_seconds=0.0, without=("wrk", "httpx", "requests")),
    Cell(name="100 ms", parallel=256, stream=False, whole_seconds=0.1),
    Cell(name="held", parallel=1024, stream=False, whole_seconds=0.1, without=("httpx", "requests")),
)

# --- one client, in a process of its own ---------------------------------------------------------------------------

Taken = tuple[float, float, list[tuple[float, bytes]]]
"""When a request began and ended, and what came when."""
T = TypeVar("T")


def as_it_is(taken: Taken) -> Taken:
    """For clients whose answers need no reading."""
    return taken


async def measure(
    ask: Callable[[int], Awaitable[T]], cell: Cell, seconds: float, read: Callable[[T], Taken]
) -> dict[str, Any]:
    """Run the slots, each of which calls ``ask``; what came is read only afterwards."""
    await asyncio.gather(*(ask(slot) for slot in range(cell.parallel)))
    found: list[T] = []
    gc.collect()
    gc.disable()  # all that is kept here to be read later would be looked through again and again
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    stop = begin + seconds

    async def slot(number: int) -> None:
        while time.monotonic() < stop:
            found.append(await ask(number))

    await asyncio.gather(*(slot(number) for number in range(cell.parallel)))
    ended, after = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    gc.enable()
    return figures([read(taken) for taken in found], cell, ended - begin, spent(before, after))


def figures(found: Sequence[Taken], cell: Cell, wall: float, cpu: float) -> dict[str, Any]:
    """From what came: requests, tokens, and what the client added to each."""
    added: list[float] = []
    tokens = 0
    for begin, end, parts in found:
        if cell.stream:
            for at, content in parts:
                stamps = [piece.split(b'"', 1)[0] for piece in content.split(b'"content":"')[1:]]
                tokens += len(stamps)
                added += [at - float(stamp) for stamp in stamps]
        else:
            text = b"".join(content for _, content in parts)
            had, sent = map(float, text.split(b'"content":"')[1].split(b'"', 1)[0].split())
            added.append(end - begin - (sent - had))
    added.sort()
    return {
        "requests": len(found),
        "tokens": tokens,
        "wall": wall,
        "cpu": cpu,
        "p50": added[len(added) // 2] if added else None,
        "p99": added[int(len(added) * 0.99)] if added else None,
    }


def spent(before: resource.struct_rusage, after: resource.struct_rusage) -> float:
    """CPU seconds between the two."""
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def ours(url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """The engine as the load uses it: it also writes and reads the JSON, which no other client here does."""
    from pytest_thermal.load.answers import Answer, Target
    from pytest_thermal.load.engine import Engine

    engine = Engine(Target(base_url=url, key=None, connect_seconds=20.0, read_seconds=20.0), {})
    slots = [engine.connection() for _ in range(cell.parallel)]
    body = {**BODY, "stream": cell.stream}

    async def ask(slot: int) -> Answer:
        answer = await slots[slot].send(body)
        if not answer.ok:
            raise RuntimeError(answer.error)
        return answer

    def read(answer: Answer) -> Taken:
        begin = answer.started_seconds
        said = [b'"content":"%b"' % part.encode() for part in (answer.text.split() if cell.stream else [answer.text])]
        times = [begin + (answer.ttft_seconds or answer.latency_seconds)]
        for gap in answer.gaps_seconds:
            times.append(times[-1] + gap)
        return begin, begin + answer.latency_seconds, list(zip(times, said, strict=True))

    found = await measure(ask, cell, seconds, read)
    for connection in slots:
        await connection.close()
    return found


async def ours_bytes(url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """The same connections, and what comes is kept as it is: as the other clients do it."""
    from pytest_thermal.transport import route_to
    from pytest_thermal.transport.fast.connection import Connection
    from pytest_thermal.transport.fast.dial import Dialer
    from pytest_thermal.transport.fast.line import Head
    from pytest_thermal.transport.fast.request import head_of, with_body

    class Receiver:
        def __init__(self) -> None:
            self.parts: list[tuple[float, bytes]] = []

        def head(self, head: Head, at_seconds: float) -> None:
            if head.status != 200:
                raise RuntimeError(f"{head.status} at {at_seconds}")

        def body(self, chunk: bytes, at_seconds: float) -> None:
            self.parts.append((at_seconds, chunk))

    dialer = Dialer(route_to(url, {}), trust=None, connect_seconds=20.0)
    slots = [Connection(dialer) for _ in range(cell.parallel)]
    head = head_of("POST", b"/v1/chat/completions", [("Host", "reference"), *HEADERS.items()])
    content = STREAM if cell.stream else WHOLE

    async def ask(slot: int) -> Taken:
        begin, taken = time.monotonic(), Receiver()
        end = await slots[slot].exchange(with_body(head, content), taken, read_seconds=20.0, deadline=begin + 60.0)
        return begin, end, taken.parts

    found = await measure(ask, cell, seconds, as_it_is)
    for connection in slots:
        await connection.close()
    return found


async def by_httpx(url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """Stock httpx: one client, no limits."""
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    content = STREAM if cell.stream else WHOLE
    async with httpx.AsyncClient(limits=limits, timeout=60.0, trust_env=False) as client:

        async def ask(_: int) -> Taken:
            begin = time.monotonic()
            async with client.stream("POST", f"{url}/chat/completions", content=content, headers=HEADERS) as answer:
                answer.raise_for_status()
                parts = [(time.monotonic(), chunk) async for chunk in answer.aiter_raw()]
            return begin, time.monotonic(), parts

        return await measure(ask, cell, seconds, as_it_is)


async def by_aiohttp(url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """One session of aiohttp, without its limit of 100 connections."""
    import aiohttp

    content = STREAM if cell.stream else WHOLE
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(_: int) -> Taken:
            begin = time.monotonic()
            async with session.post(f"{url}/chat/completions", data=content, headers=HEADERS) as answer:
                answer.raise_for_status()
                parts = [(time.monotonic(), chunk) async for chunk in answer.content.iter_any()]
            return begin, time.monotonic(), parts

        return await measure(ask, cell, seconds, as_it_is)


async def by_pyreqwest(url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """One client of pyreqwest, without the buffer that holds a stream back."""
    from pyreqwest.client import ClientBuilder

    content = STREAM if cell.stream else WHOLE
    async with ClientBuilder().build() as client:

        async def ask(_: int) -> Taken:
            begin = time.monotonic()
            request = client.post(f"{url}/chat/completions").headers(HEADERS).body_bytes(content)
            parts = []
            if cell.stream:
                async with request.streamed_read_buffer_limit(0).build_streamed() as answer:
                    while (chunk := await answer.body_reader.read_chunk()) is not None:
                        parts.append((time.monotonic(), bytes(chunk)))
            else:
                answer = await request.build().send()
                parts.append((time.monotonic(), bytes(await answer.bytes())))
            return begin, time.monotonic(), parts

        return await measure(ask, cell, seconds, as_it_is)


def by_requests(url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """A thread and a session for each slot."""
    import requests

    content = STREAM if cell.stream else WHOLE
    found: list[Taken] = []
    ready, stop = threading.Barrier(cell.parallel + 1), [0.0]

    def ask(session: requests.Session) -> Taken:
        begin = time.monotonic()
        with session.post(f"{url}/chat/completions", data=content, headers=HEADERS, stream=cell.stream) as answer:
            answer.raise_for_status()
            chunks = answer.iter_content(None) if cell.stream else iter([answer.content])
            parts = [(time.monotonic(), chunk) for chunk in chunks]
        return begin, time.monotonic(), parts

    def work() -> None:
        with requests.Session() as session:
            session.trust_env = False
            ask(session)
            ready.wait()
            ready.wait()
            while time.monotonic() < stop[0]:
                found.append(ask(session))

    threads = [threading.Thread(target=work) for _ in range(cell.parallel)]
    for thread in threads:
        thread.start()
    ready.wait()
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    stop[0] = begin + seconds
    ready.wait()
    for thread in threads:
        thread.join()
    ended, after = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    return figures(found, cell, ended - begin, spent(before, after))


def by_wrk(url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """`wrk`, whose whole run counts, the opening of connections included."""
    script = BENCH / "post.lua"
    script.parent.mkdir(exist_ok=True)
    script.write_text(
        f"wrk.method='POST'\nwrk.headers['Content-Type']='application/json'\nwrk.body=[[{WHOLE.decode()}]]\n",
        encoding="utf-8",
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(
        ["wrk", "-t1", f"-c{cell.parallel}", f"-d{max(1, round(seconds))}s", "--latency", "-s", str(script),
         f"{url}/chat/completions"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = told.split()
    requests = int(words[words.index("requests") - 1])
    wall = _seconds(words[words.index("in") + 1].rstrip(","))
    wait = cell.whole_seconds
    return {
        "requests": requests,
        "tokens": 0,
        "wall": wall,
        "cpu": spent(before, after),
        "p50": _seconds(words[words.index("50%") + 1]) - wait if wait else None,
        "p99": _seconds(words[words.index("99%") + 1]) - wait if wait else None,
    }


def _seconds(text: str) -> float:
    for unit, factor in (("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


def client(name: str, url: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """Be that client."""
    blocking = {"requests threads": by_requests, "wrk": by_wrk}
    if name in blocking:
        return blocking[name](url, cell, seconds)
    kind = "ours_bytes" if name == BYTES_ONLY else name.split(maxsplit=1)[0]
    work = {"ours": ours, "ours_bytes": ours_bytes, "httpx": by_httpx, "aiohttp": by_aiohttp,
            "pyreqwest": by_pyreqwest}[kind](url, cell, seconds)  # fmt: skip
    if name.endswith("asyncio"):
        return asyncio.run(work)
    return importlib.import_module("uvloop").run(work)  # type: ignore[no-any-return]


# --- the whole load, among several processes -----------------------------------------------------------------------


def shared(url: str, *, streams: int, processes: int, seconds: float) -> dict[str, float | str]:
    """What the load tells of itself, with so many streams in so many processes; CPU is that of all of them."""
    from pydantic import SecretStr

    from pytest_thermal.bench import Domain, Inference, ModelRoute, Stress, Timeouts
    from pytest_thermal.load import start
    from pytest_thermal.load.inference_work import inference_work
    from pytest_thermal.recording import RunClock

    domain = Domain(name="reference", base_url=url, key=SecretStr("none"), route=ModelRoute(default="m"))
    with tempfile.TemporaryDirectory() as folder:
        work = inference_work(
            domains=[domain],
            inference=Inference(max_tokens=32),
            stress=Stress(
                concurrent_requests=streams, request_interval_seconds=0.0, inference_workers=processes
            ),
            timeouts=Timeouts(connect_seconds=20.0, read_seconds=20.0),
            run=Path(folder),
            clock=RunClock.start(),
            limit_seconds=300.0,
            environ={},
            calibration_seconds=0.0,
        )  # fmt: skip
        with start(work) as load:
            while load.alive and not load.status().ok:
                time.sleep(0.1)
            time.sleep(WARM_SECONDS)
            before, used = load.status(), load.used
            begin = time.monotonic()
            time.sleep(seconds)
            after, now_used = load.status(), load.used
            wall = time.monotonic() - begin
    if used is None or now_used is None or not after.ok > before.ok:
        return {"trouble": after.text}
    tokens = (after.completion_tokens - before.completion_tokens) / wall
    cores = (now_used.cpu_seconds - used.cpu_seconds) / (now_used.at_seconds - used.at_seconds)
    return {
        "tokens": tokens,
        "cores": cores,
        "cpu_us": cores / tokens * 1e6,
        "busiest": after.cpu_share or 0.0,
        "lag_ms": 1e3 * (after.loop_lag_p99_seconds or 0.0),
        "gap_p50_ms": 1e3 * (after.itl_p50_seconds or 0.0),
        "gap_p99_ms": 1e3 * (after.itl_p99_seconds or 0.0),
        "limited": after.client_limited,
    }


def tell_shared(python: str, streams: int, seconds: float) -> None:
    """One process beside several, each with the whole load; nothing is pinned but the server."""
    print(f"\n### the whole load: {streams:,} streams of 50 tokens/s, among processes\n")
    print("| processes | tokens/s | CPU µs a token | cores | % of its core, the busiest | loop lag p99 ms | gap p50 ms "
          "| gap p99 ms | it says |")  # fmt: skip
    print("|--:|--:|--:|--:|--:|--:|--:|--:|---|", flush=True)
    for processes in SHARED:
        with server(python, Cell(name="shared", parallel=streams, stream=True, whole_seconds=0.0)) as url:
            found = shared(url, streams=streams, processes=processes, seconds=seconds)
        if "trouble" in found:
            print(f"| {processes} | {found['trouble']} | | | | | | | |", flush=True)
            continue
        print(
            f"| {processes} | {found['tokens']:,.0f} | {found['cpu_us']:.1f} | {found['cores']:.2f} "
            f"| {found['busiest']:.0%} | {found['lag_ms']:.1f} | {found['gap_p50_ms']:.1f} | {found['gap_p99_ms']:.1f} "
            f"| {'client-limited' if found['limited'] else '–'} |",
            flush=True,
        )


# --- the run ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def server(python: str, cell: Cell) -> Iterator[str]:
    """The reference server, on the last core."""
    command = [python, "-m", "pytest_thermal.load.reference_server", "--whole-seconds", str(cell.whole_seconds)]
    with subprocess.Popen(
        _pinned(command, core=-1), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environ()
    ) as process:
        if process.stdout is None or process.stdin is None:
            raise RuntimeError("no pipes")
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def row(python: str, name: str, cell: Cell, seconds: float, rounds: int) -> dict[str, float] | str:
    """Medians of so many rounds, or why there are none."""
    if name == "wrk" and not shutil.which("wrk"):
        return "not installed"
    results = []
    for _ in range(rounds):
        with server(python, cell) as url:
            command = [python, __file__, "--client", name, "--cell", cell.name, "--url", url, "--seconds", str(seconds)]
            done = subprocess.run(_pinned(command, core=0), capture_output=True, text=True, env=_environ(), check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["it failed"])[-1][:60]
        results.append(json.loads(done.stdout.splitlines()[-1]))
    told = {
        "cpu_us": [r["cpu"] / (r["tokens"] if cell.stream else r["requests"]) * 1e6 for r in results],
        "rate": [r["requests"] / r["wall"] for r in results],
        "share": [r["cpu"] / r["wall"] for r in results],
        "p50_ms": [r["p50"] * 1e3 for r in results if r["p50"] is not None],
        "p99_ms": [r["p99"] * 1e3 for r in results if r["p99"] is not None],
    }
    return {name: statistics.median(values) for name, values in told.items() if values}


def _pinned(command: Sequence[str], *, core: int) -> list[str]:
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[core]), *command] if len(cores) > 1 and shutil.which("taskset") else [*command]


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def peers() -> str:
    """The Python of a venv that has the peers; installed on the first run, below `.bench/`."""
    python = BENCH / "venv" / "bin" / "python"
    if not python.exists():
        print("installing the peers into .bench/ …", flush=True)
        venv.create(BENCH / "venv", with_pip=True)
    for name in (*NEEDED, *PEERS):
        here = subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0
        if not here and subprocess.run([python, "-m", "pip", "install", "-q", name], check=False).returncode:
            print(f"{name} cannot be installed: it is left out")
    return str(python)


def versions(python: str) -> str:
    """Of everything that was measured."""
    code = (
        "import importlib.metadata as m, json, sys\n"
        "print(json.dumps([n + ' ' + m.version(n) for n in sys.argv[1:] if any(m.distributions(name=n))]))"
    )
    found = subprocess.run([python, "-c", code, *PEERS], capture_output=True, text=True, check=True).stdout
    wrk = (
        subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout if shutil.which("wrk") else ""
    )
    others = [*json.loads(found), *([" ".join(wrk.split()[:2])] if wrk else [])]
    return f"Python {platform.python_version()}, {', '.join(others)}, {os.cpu_count()} cores, {platform.release()}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=1, help="of each; medians are told")
    parser.add_argument("--only", default="", help="measure the clients whose name holds this")
    parser.add_argument(
        "--shared", type=int, default=1024, metavar="STREAMS", help="of the whole load; 0 leaves it out"
    )
    parser.add_argument("--only-shared", action="store_true", help="measure nothing but the whole load")
    parser.add_argument("--here", action="store_true", help="use this Python and what it has, install nothing")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        cell = next(cell for cell in CELLS if cell.name == options.cell)
        print(json.dumps(client(options.client, options.url, cell, options.seconds)))
        return 0
    python = sys.executable if options.here else peers()
    print(f"\n{versions(python)}; load average {os.getloadavg()[0]:.1f} before")
    for cell in () if options.only_shared else CELLS:
        what = "streamed token (50 ms, then 32 every 20 ms)" if cell.stream else "request"
        wait = f", server takes {cell.whole_seconds * 1e3:g} ms" if cell.whole_seconds else ""
        print(f"\n### {cell.parallel} in parallel{wait}\n")
        print(f"| client | CPU µs a {what} | ratio | requests/s | % of a core | added p50 ms | p99 ms |")
        print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
        first: float | None = None
        for name in CLIENTS:
            if options.only not in name or name.startswith(cell.without or ("-",)):
                continue
            found = row(python, name, cell, options.seconds, options.rounds)
            if isinstance(found, str):
                print(f"| {name} | {found} | | | | | |", flush=True)
                continue
            first = first or found["cpu_us"]
            late = [f"{found[key]:.2f}" if key in found else "–" for key in ("p50_ms", "p99_ms")]
            print(
                f"| {name} | {found['cpu_us']:.1f} | {found['cpu_us'] / first:.1f}× | {found['rate']:,.0f} "
                f"| {found['share']:.0%} | {' | '.join(late)} |",
                flush=True,
            )
    if options.shared:
        tell_shared(python, options.shared, max(6.0, options.seconds))
    print(f"\nload average {os.getloadavg()[0]:.1f} after; ratios are to the first row, which is what the load uses")
    return 0


if __name__ == "__main__":
    sys.exit(main())
