"""The gateway's health while a suite runs: polled in the background, with the times of every break."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from urllib.parse import urlsplit, urlunsplit

from pytest_thermal.bench import Bench, Domain, Redactor
from pytest_thermal.model.said import say
from pytest_thermal.transport import client, exchange

POLL_LIMIT_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class HealthBreak:
    """A stretch of failed polls. Times are unix seconds; ``end`` is None while it lasts."""

    start_unix_seconds: float
    end_unix_seconds: float | None
    seen: str

    @property
    def line(self) -> str:
        """``10:03:05 to 10:03:35 (30 s): 503 Service Unavailable from GET /v1/models``, in local time."""
        start = datetime.fromtimestamp(self.start_unix_seconds, tz=timezone.utc).astimezone()
        if self.end_unix_seconds is None:
            return say("since {start}, not over: {seen}", start=f"{start:%H:%M:%S}", seen=self.seen)
        end = datetime.fromtimestamp(self.end_unix_seconds, tz=timezone.utc).astimezone()
        length = self.end_unix_seconds - self.start_unix_seconds
        return say(
            "{start} to {end} ({length:.0f} s): {seen}",
            start=f"{start:%H:%M:%S}",
            end=f"{end:%H:%M:%S}",
            length=length,
            seen=self.seen,
        )


@dataclass(frozen=True, kw_only=True)
class HealthLog:
    """What a monitor saw so far."""

    polls: int
    healthy: int
    """Polls that found it healthy."""
    breaks: tuple[HealthBreak, ...]


class HealthMonitor:
    """Polls a domain's health endpoint from a thread of its own until closed.

    The first poll is at once, then one an interval (`health_check.interval_sec`), by absolute deadlines.
    """

    def __init__(self, bench: Bench, domain: Domain, *, environ: Mapping[str, str]) -> None:
        self._interval_seconds = bench.health_check.interval_seconds
        self._url = endpoint_url(domain.base_url, bench.health_check.endpoint)
        self._redactor = Redactor(bench.secrets())
        self._client = client(
            base_url=domain.base_url,
            key=domain.key,
            connect_seconds=min(bench.timeouts.connect_seconds, POLL_LIMIT_SECONDS),
            read_seconds=min(bench.timeouts.read_seconds, POLL_LIMIT_SECONDS),
            environ=environ,
        )
        self._stop = threading.Event()
        self._polling = threading.Lock()
        self._lock = threading.Lock()
        self._polls = self._healthy = 0
        self._breaks: list[HealthBreak] = []
        self._thread = threading.Thread(target=self._run, name="thermal-health", daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def poll(self) -> None:
        """One poll now, besides those that are due."""
        with self._polling:
            started = time.time()
            answer = exchange(self._client, "GET", self._url)
        seen = None
        if not answer.ok or answer.is_html:
            page = say(" with an HTML page") if answer.is_html and answer.ok else ""
            seen = self._redactor.text(
                say("{status_line}{page} from {answer}", status_line=answer.status_line, page=page, answer=answer.line)
            )
        if seen is not None and self._stop.is_set():
            return  # it was cut short by our own end
        with self._lock:
            self._polls += 1
            self._healthy += seen is None
            self._note(started, seen)

    def log(self) -> HealthLog:
        """What was seen so far."""
        with self._lock:
            return HealthLog(polls=self._polls, healthy=self._healthy, breaks=tuple(self._breaks))

    def close(self) -> None:
        """Stop polling; waits no longer than a poll that is under way may take."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)
        self._client.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self.poll()
            due += self._interval_seconds
            due = max(due, time.monotonic())
            self._stop.wait(due - time.monotonic())

    def _note(self, when: float, seen: str | None) -> None:
        open_break = self._breaks[-1] if self._breaks and self._breaks[-1].end_unix_seconds is None else None
        if seen is None and open_break is not None:
            self._breaks[-1] = HealthBreak(
                start_unix_seconds=open_break.start_unix_seconds, end_unix_seconds=when, seen=open_break.seen
            )
        elif seen is not None and open_break is None:
            self._breaks.append(HealthBreak(start_unix_seconds=when, end_unix_seconds=None, seen=seen))


def endpoint_url(base_url: str, endpoint: str) -> str:
    """Where the health endpoint lies.

    ``/v1/models`` is meant below the API's own root, so a gateway under ``/gw/v1`` is asked at ``/gw/v1/models``; any
    other path is the host's.
    """
    parts = urlsplit(base_url)
    path = "/" + endpoint.lstrip("/")
    root, _, version = parts.path.rstrip("/").rpartition("/")
    if version and path.startswith("/v1/"):
        path = f"{root}/{version}{path.removeprefix('/v1')}"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
