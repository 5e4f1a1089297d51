"""What a request costs the whole load process, beside guidellm, aiperf, locust and wrk in the same run.

All ask the same reference server (`pytest_thermal.load.reference_server`), which is pinned to a core and counts what it
answered. Each is run by its own command line; ours is the process that a bench runs: it reads orders, writes
requests.csv and says a status a second. CPU is user + system of all processes that a tool has, those that ended
included, over a window that begins when it is at work, so that no start-up, no import and no final report counts.
Nothing is taken from a tool's own word but the times in the second table.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import ctypes
import http.client
import importlib.metadata
import importlib.util
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine import BENCH, ROOT, Cell, server

CELLS = (
    Cell(name="at once", parallel=64, stream=False, whole_seconds=0.0),
    Cell(name="stream", parallel=64, stream=True, whole_seconds=0.0),
)
SETTLE_SECONDS = 2.0
"""After as many answers as are in parallel; and what a tool leaves out of its own times, where it can."""
SPARE_SECONDS = 6.0
"""For which a tool is told to run beyond the window: some count from before their first request."""
LONG_SECONDS = 120.0
"""For which it is told to run where no report of it is wanted; it is ended after the window."""
START_SECONDS = 240.0
REPORT_SECONDS = 120.0
WORDS = 32
"""Of a prompt; ours are as long."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a tool is to do."""

    url: str
    """Without /v1."""
    cell: Cell
    seconds: float
    folder: Path
    """For whatever it writes; it is its working directory too."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """In milliseconds."""

    ttft_p50: float
    ttft_p99: float
    itl_p50: float
    itl_p99: float


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A load tool, as it is run."""

    name: str
    command: Callable[[Job], list[str]]
    package: str = ""
    """On PyPI with its version, since command lines change; empty for what comes with the system."""
    times: Callable[[Path], Times] | None = None
    """What it told in that folder; None for what knows nothing of tokens, and is not asked to stream."""
    orders: Callable[[Job], str] | None = None
    """A line for its standard input."""
    offline: bool = False
    """Whether it can be told to look for nothing on the Hugging Face hub."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """What happened while it was looked at."""

    requests: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of a run."""

    window: Window
    times: Times | None
    """As the tool told them."""
    truth: Times | None
    """The server's own."""
    command: str


# --- the tools -----------------------------------------------------------------------------------------------------


def ours_command(_: Job) -> list[str]:
    """As `load.inference_work` starts it."""
    return [sys.executable, "-m", "pytest_thermal.load.inference"]


def ours_orders(job: Job) -> str:
    """A chat load with a run directory, in the closed loop."""
    from pytest_thermal.load.orders import DomainOrders, InferenceOrders
    from pytest_thermal.recording import RunClock, create_run

    domain = DomainOrders(base_url=f"{job.url}/v1", key=None, model="m")
    return InferenceOrders(
        domains=(domain,),
        connect_seconds=20.0,
        read_seconds=60.0,
        max_tokens=32,
        temperature=0.0,
        stream=job.cell.stream,
        profile="chat",
        concurrency=job.cell.parallel,
        interval_seconds=0.0,
        rate_per_second=None,
        most_in_flight=4096,
        inference_ratio=1.0,
        burner=(),
        run=create_run(job.folder, facts={}),
        clock=RunClock.start(),
        limit_seconds=job.seconds,
    ).to_line()


def ours_times(folder: Path) -> Times:
    """First tokens from its rows, the gaps from its last status."""
    status = [json.loads(line) for line in (folder / "said").read_text().splitlines() if '"is": "status"' in line][-1]
    with next(folder.glob("*/requests.csv")).open() as file:
        rows = [row for row in csv.DictReader(file) if row["ttft"]]
    since = float(rows[0]["start"]) + SETTLE_SECONDS
    firsts = [float(row["ttft"]) * 1e3 for row in rows if float(row["start"]) > since]
    return Times(
        ttft_p50=quantile(firsts, 0.5),
        ttft_p99=quantile(firsts, 0.99),
        itl_p50=status["itl_p50_seconds"] * 1e3,
        itl_p99=status["itl_p99_seconds"] * 1e3,
    )


def guidellm_command(job: Job) -> list[str]:
    """Synthetic prompts, so many in parallel."""
    backend = {
        "kind": "openai_http", "target": job.url, "model": "m", "request_format": "/v1/chat/completions",
        "stream": job.cell.stream,
    }  # fmt: skip
    profile = f"kind=concurrent,streams={job.cell.parallel}" + (",warmup=2" if job.cell.stream else "")
    return [
        *(str(BENCH / "guidellm" / "bin" / "guidellm"), "run", "--backend", json.dumps(backend)),
        *("--tokenizer", f"kind=huggingface_auto,model={tokenizer('guidellm')}"),
        *("--data", f"kind=synthetic_text,prompt_tokens={WORDS},output_tokens=32"),
        *("--profile", profile, "--constraint", f"kind=max_duration,seconds={job.seconds:g}"),
        *("--output", f"kind=json,path={job.folder / 'report.json'}", "--disable-console-interactive"),
    ]


def guidellm_times(folder: Path) -> Times:
    """From its JSON; a gap is the mean of a request."""
    metrics = json.loads((folder / "report.json").read_text())["benchmarks"][0]["metrics"]
    first = metrics["time_to_first_token_ms"]["successful"]["percentiles"]
    gap = metrics["inter_token_latency_ms"]["successful"]["percentiles"]
    return Times(ttft_p50=first["p50"], ttft_p99=first["p99"], itl_p50=gap["p50"], itl_p99=gap["p99"])


def aiperf_command(job: Job) -> list[str]:
    """Synthetic prompts, so many in parallel; without what it collects beside."""
    stream = ["--streaming", "--warmup-duration", f"{SETTLE_SECONDS:g}"] if job.cell.stream else []
    return [
        *(str(BENCH / "aiperf" / "bin" / "aiperf"), "profile", "--model", "m", "--url", job.url),
        *("--endpoint-type", "chat", *stream, "--tokenizer", str(tokenizer("aiperf"))),
        *("--synthetic-input-tokens-mean", str(WORDS), "--output-tokens-mean", "32"),
        *("--concurrency", str(job.cell.parallel), "--benchmark-duration", f"{job.seconds:g}"),
        *("--ui", "none", "--no-gpu-telemetry", "--no-server-metrics", "--output-artifact-dir", str(job.folder)),
    ]


def aiperf_times(folder: Path) -> Times:
    """From its JSON; a gap is the mean of a request."""
    told = json.loads((folder / "profile_export_aiperf.json").read_text())
    first, gap = told["time_to_first_token"], told["inter_token_latency"]
    return Times(ttft_p50=first["p50"], ttft_p99=first["p99"], itl_p50=gap["p50"], itl_p99=gap["p99"])


def locust_command(job: Job) -> list[str]:
    """One process, its fast client."""
    (job.folder / "locustfile.py").write_text(
        "from locust import FastHttpUser, task\n\n\n"
        "class Chat(FastHttpUser):\n"
        "    @task\n"
        "    def chat(self):\n"
        f"        self.client.post('/v1/chat/completions', json={body()!r})\n"
    )
    return [
        *(str(BENCH / "locust" / "bin" / "locust"), "--headless", "--only-summary", "--locustfile", "locustfile.py"),
        *("--host", job.url, "--users", str(job.cell.parallel), "--spawn-rate", str(job.cell.parallel)),
        *("--run-time", f"{job.seconds:.0f}s"),
    ]


def wrk_command(job: Job) -> list[str]:
    """One thread, which parses nothing: what is left is sockets."""
    (job.folder / "post.lua").write_text(
        "wrk.method='POST'\nwrk.headers['Content-Type']='application/json'\n" + f"wrk.body=[[{json.dumps(body())}]]\n"
    )
    return [
        *("wrk", "-t1", f"-c{job.cell.parallel}", f"-d{job.seconds:.0f}s", "-s", "post.lua"),
        f"{job.url}/v1/chat/completions",
    ]


TOOLS = (
    Tool(name="ours", command=ours_command, orders=ours_orders, times=ours_times),
    Tool(name="guidellm", package="guidellm==0.8.1", command=guidellm_command, times=guidellm_times, offline=True),
    Tool(name="aiperf", package="aiperf==0.13.0", command=aiperf_command, times=aiperf_times),
    Tool(name="locust", package="locust==2.47.0", command=locust_command),
    Tool(name="wrk", command=wrk_command),
)


def body() -> dict[str, Any]:
    """Of a request, for tools that make none of their own."""
    return {
        "model": "m",
        "messages": [{"role": "user", "content": " ".join(["word"] * WORDS)}],
        "max_tokens": 32,
        "temperature": 0.0,
        "stream": False,
    }


def quantile(values: Sequence[float], share: float) -> float:
    """By rank."""
    return sorted(values)[int(len(values) * share)]


def tokenizer(owner: str) -> Path:
    """Made in that tool's venv without a network: a word is a token, so that the server's 32 events are 32 tokens."""
    folder = BENCH / owner / "tokenizer"
    if not folder.exists():
        code = (
            "import sys\n"
            "from tokenizers import Tokenizer, models, pre_tokenizers\n"
            "from transformers import PreTrainedTokenizerFast\n"
            "words = Tokenizer(models.WordLevel({'word': 0, '</s>': 1, 'one': 2, 'two': 3}, unk_token='word'))\n"
            "words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()\n"
            "made = PreTrainedTokenizerFast(tokenizer_object=words, unk_token='word', eos_token='</s>')\n"
            "made.chat_template = '{% for m in messages %}{{ m.content }} {% endfor %}'\n"
            "made.save_pretrained(sys.argv[1])\n"
        )
        python = BENCH / owner / "bin" / "python"
        subprocess.run([python, "-c", code, folder], check=True, env={**os.environ, **OFFLINE}, capture_output=True)
    return folder


def installed(tool: Tool) -> str:
    """Why it is not there; empty where it is. Into a venv of its own, on the first run."""
    if not tool.package:
        return "" if tool.orders or shutil.which(tool.name) else "not on this machine"
    folder = BENCH / tool.name
    done = folder / f".installed-{tool.package}"
    if done.exists():
        return ""
    print(f"installing {tool.package} into .bench/{tool.name} …", flush=True)
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--retries", "1", tool.package]
    found = subprocess.run(pip, check=False, capture_output=True, text=True)
    if found.returncode:
        said = [line for line in found.stderr.splitlines() if line.startswith("ERROR")] or [f"rc {found.returncode}"]
        return f"cannot be installed: {said[0].partition(' (from')[0][:120]}"
    done.touch()
    return ""


def version(tool: Tool) -> str:
    """As it is called in the table."""
    if tool.package:
        return tool.package.replace("==", " ")
    if tool.orders:
        loop = "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"
        return f"ours {importlib.metadata.version('pytest-thermal')} ({loop})"
    if not shutil.which(tool.name):
        return tool.name
    said = subprocess.run([tool.name, "-v"], capture_output=True, text=True, check=False).stdout.split()
    return " ".join(said[:2]) or tool.name


# --- a run ---------------------------------------------------------------------------------------------------------


def measure(tool: Tool, cell: Cell, window_seconds: float, kept: Path) -> Measured:
    """Run it against a server of its own.

    Raises:
        RuntimeError: It did not do what it should, with what it said.
    """
    kept.mkdir(parents=True)
    with server(sys.executable, cell) as base:
        job = Job(
            url=base.removesuffix("/v1"),
            cell=cell,
            seconds=2 * SETTLE_SECONDS + window_seconds + SPARE_SECONDS if cell.stream else LONG_SECONDS,
            folder=kept,
        )
        command = tool.command(job)
        told = shlex.join(command).replace(str(BENCH), ".bench").replace(str(kept), "$OUT").replace(job.url, "$URL")
        told = told.replace(sys.executable, "python")
        not_its = descendants()
        probe = Probe(job.url) if cell.stream else None
        with (kept / "said").open("wb") as said:
            process = subprocess.Popen(
                command if cell.stream else [*beside_the_server(), *command],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=kept,
                env={**os.environ, **(OFFLINE if tool.offline else {}), "PYTHONPATH": str(ROOT) if tool.orders else ""},
            )
        try:
            if process.stdin is None:
                raise RuntimeError("no pipe")
            if tool.orders:
                process.stdin.write(tool.orders(job).encode() + b"\n")
                process.stdin.flush()
            else:
                process.stdin.close()
            window = watch(process, job, window_seconds, not_its, probe)
            if cell.stream:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(REPORT_SECONDS)
        finally:
            end(process, not_its)
            truth = probe.end() if probe else None
    try:
        times = tool.times(kept) if cell.stream and tool.times else None
    except (OSError, LookupError, ValueError, StopIteration) as error:
        raise RuntimeError(f"its report cannot be read: {error!r}; {last_words(kept)}") from error
    return Measured(window=window, times=times, truth=truth, command=told)


def watch(
    process: subprocess.Popen[bytes], job: Job, window_seconds: float, not_its: set[int], probe: Probe | None
) -> Window:
    """Wait until it is at work, then look at it for so long."""

    def answered() -> int:
        if process.poll() is not None:
            raise RuntimeError(f"it ended, rc {process.returncode}: {last_words(job.folder)}")
        count = json.loads(get(job.url))["answered"]
        return int(count) - (probe.requests if probe else 0)

    limit = time.monotonic() + START_SECONDS
    while answered() < job.cell.parallel:
        if time.monotonic() > limit:
            raise RuntimeError(f"no requests in {START_SECONDS:g} s: {last_words(job.folder)}")
        time.sleep(0.2)
    # Where it leaves out its own warm-up, that may be a phase of its own, with a gap after it.
    time.sleep(SETTLE_SECONDS * (2 if job.cell.stream else 1))
    begin, before, cpu = time.monotonic(), answered(), cpu_seconds(not_its)
    time.sleep(window_seconds - 2.0)
    late = answered()
    time.sleep(2.0)
    after, spent, ended = answered(), cpu_seconds(not_its) - cpu, time.monotonic()
    if after <= late:
        raise RuntimeError("it sent nothing at the window's end")
    return Window(requests=after - before, seconds=ended - begin, cpu_seconds=spent)


def get(url: str) -> bytes:
    """The server's list, which holds its count."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20.0)
    try:
        connection.request("GET", "/v1/models")
        return connection.getresponse().read()
    finally:
        connection.close()


def last_words(folder: Path) -> str:
    """The end of what it said."""
    said = (folder / "said").read_text(errors="replace").split()
    return " ".join(said)[-200:]


class Probe:
    """One stream at a time, beside a tool: its answers hold the times at which the server sent them."""

    def __init__(self, url: str) -> None:
        self.requests = 0
        self._firsts: list[float] = []
        self._gaps: list[float] = []
        self._end = threading.Event()
        self._address = urlsplit(url)
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def end(self) -> Times | None:
        """The server's own times, which a perfect client would tell."""
        self._end.set()
        self._thread.join()
        if len(self._firsts) < 2:
            return None
        return Times(
            ttft_p50=quantile(self._firsts, 0.5) * 1e3,
            ttft_p99=quantile(self._firsts, 0.99) * 1e3,
            itl_p50=quantile(self._gaps, 0.5) * 1e3,
            itl_p99=quantile(self._gaps, 0.99) * 1e3,
        )

    def _ask(self) -> None:
        content = json.dumps({**body(), "stream": True}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: s\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        host, port = self._address.hostname or "", self._address.port or 0
        with socket.create_connection((host, port), timeout=20.0) as connection:
            while not self._end.is_set():
                taken = b""
                begin = time.monotonic()
                connection.sendall(head + content)
                while not taken.endswith(b"\r\n0\r\n\r\n"):
                    taken += connection.recv(65536)
                stamps = [float(stamp) for stamp in re.findall(rb'"content":"([0-9.]+) "', taken)]
                self._firsts.append(stamps[0] - begin)
                self._gaps += [after - before for before, after in itertools.pairwise(stamps)]
                self.requests += 1


# --- processes -----------------------------------------------------------------------------------------------------


def adopt_orphans() -> None:
    """What a tool leaves behind becomes a child of this process (PR_SET_CHILD_SUBREAPER), and is counted and ended."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def beside_the_server() -> list[str]:
    """On all cores but the last, where the server is: many processes must not slow the server they are measured by."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or not shutil.which("taskset"):
        return []
    return ["taskset", "-c", ",".join(map(str, cores[:-1]))]


def stats() -> Iterator[tuple[int, int, float]]:
    """Of each process: its id, its parent's, and the CPU seconds of itself and of those of its children that ended."""
    tick = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), int(fields[1]), sum(map(int, fields[11:15])) / tick


def descendants() -> set[int]:
    """Of this process."""
    parents = {process: parent for process, parent, _ in stats()}
    found: set[int] = set()
    more = {os.getpid()}
    while more:
        more = {process for process, parent in parents.items() if parent in more}
        found |= more
    return found


def cpu_seconds(not_its: set[int]) -> float:
    """User + system of all descendants of this process but those, the ended ones among their children included."""
    own = descendants() - not_its
    return sum(seconds for process, _, seconds in stats() if process in own)


def end(process: subprocess.Popen[bytes], not_its: set[int]) -> None:
    """Whatever of it is left."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10.0)
    for left in descendants() - not_its:
        with contextlib.suppress(OSError):
            os.kill(left, signal.SIGKILL)
    process.wait()
    for left in descendants() - not_its:
        with contextlib.suppress(OSError):
            os.waitpid(left, 0)


# --- the tables ----------------------------------------------------------------------------------------------------


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each window, 4 at least")
    parser.add_argument("--only", default="", help="run the tools whose name holds this, beside ours")
    options = parser.parse_args()
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no tool stays behind
    tools = {tool: installed(tool) for tool in TOOLS if options.only in tool.name or tool.orders}
    print(f"\nPython {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before")
    commands: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tools-") as folder:
        for cell in CELLS:
            print("\n" + (STREAM_HEAD if cell.stream else WHOLE_HEAD).format(parallel=cell.parallel), flush=True)
            ours: float | None = None
            for tool, missing in tools.items():
                if cell.stream and tool.times is None:
                    continue
                found = missing or tried(tool, cell, max(4.0, options.seconds), Path(folder, cell.name, tool.name))
                if isinstance(found, str):
                    print(f"| {version(tool)} | {found} |" + " |" * (7 if cell.stream else 3), flush=True)
                    continue
                ours = ours or found.window.cpu_seconds / found.window.requests
                print(f"| {version(tool)} | {row(found, ours)} |", flush=True)
                commands.append(f"{tool.name}, {cell.name}: {found.command}")
    print(f"\nload average {os.getloadavg()[0]:.1f} after\n")
    print("\n".join(commands))
    return 0


WHOLE_HEAD = """\
### {parallel} in parallel, answered at once; tools on all cores but the server's

| tool | CPU µs a request | ratio to ours | requests/s | cores used |
|---|--:|--:|--:|--:|"""
STREAM_HEAD = """\
### {parallel} streams in parallel: 50 ms to the first token, then 31 more every 20 ms; tools on all cores

| tool | TTFT p50 / p99 ms | the server's own | ITL p50 / p99 ms | the server's own | CPU µs a request | ratio to ours \
| requests/s | cores used |
|---|--:|--:|--:|--:|--:|--:|--:|--:|"""


def tried(tool: Tool, cell: Cell, window_seconds: float, kept: Path) -> Measured | str:
    """What was measured, or why nothing was."""
    try:
        return measure(tool, cell, window_seconds, kept)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        return " ".join(str(error).replace("|", " ").split())


def row(found: Measured, ours: float) -> str:
    """Of a table, without the name; ``ours`` are our CPU seconds a request."""
    window = found.window
    each = window.cpu_seconds / window.requests
    cells = [f"{each * 1e6:,.0f}", f"{each / ours:.1f}×"]
    cells += [f"{window.requests / window.seconds:,.0f}", f"{window.cpu_seconds / window.seconds:.2f}"]
    if found.times and found.truth:
        told, true = found.times, found.truth
        cells = [
            *(f"{told.ttft_p50:.1f} / {told.ttft_p99:.1f}", f"{true.ttft_p50:.1f} / {true.ttft_p99:.1f}"),
            *(f"{told.itl_p50:.1f} / {told.itl_p99:.1f}", f"{true.itl_p50:.1f} / {true.itl_p99:.1f}"),
            *cells,
        ]
    return " | ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
