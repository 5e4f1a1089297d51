"""A server that speaks as Prometheus does, about series that a test writes; of PromQL it knows what our queries use."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Labels = dict[str, str]


@dataclass(kw_only=True)
class Line:
    """One series: its newest sample, and how old that is."""

    name: str
    labels: Labels
    value: str
    age_seconds: float = 0.0


@dataclass(kw_only=True)
class FakePrometheus:
    """What the server knows, and how it answers."""

    lines: list[Line] = field(default_factory=list)
    scrape_seconds: float = 5.0
    raw: tuple[int, str, bytes] | None = None
    """Status, content type and body to answer with, whatever is asked."""
    refused: str = ""
    """A part of a query that cannot be computed."""
    only_get: bool = False
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, query and the header of authorization."""
    url: str = ""
    clock: Callable[[], float] = time.time
    """Unix time, by which samples are as old as they say."""

    def write(self, text: str, *, age_seconds: float = 0.0, **labels: str) -> None:
        """Add series, as an exporter's page has them; ``labels`` are the target's."""
        for line in filter(None, map(str.strip, text.splitlines())):
            name, inside, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()  # type: ignore[union-attr]
            own = dict(re.findall(r'(\w+)="([^"]*)"', inside or ""))
            self.lines.append(Line(name=name, labels={**labels, **own}, value=value, age_seconds=age_seconds))

    def set(self, name: str, value: str, **labels: str) -> None:
        """Another value for the series of that name and labels."""
        (line,) = [
            one for one in self.lines if one.name == name and labels.items() <= one.labels.items()
        ]  # fmt: skip
        line.value = value

    def forget(self, name: str) -> None:
        """Not to know a metric any more."""
        self.lines = [one for one in self.lines if one.name != name]

    # ----------------------------------------------------------------------------------------------------

    def answer(self, query: str) -> tuple[int, str, bytes]:
        if self.raw is not None:
            return self.raw
        if self.refused and self.refused in query:
            said = {"status": "error", "errorType": "execution", "error": "many-to-many matching not allowed"}
            return 422, "application/json", json.dumps(said).encode()
        now = self.clock()
        if query.endswith("]"):
            data: object = {"resultType": "matrix", "result": [self._range(one, now) for one in self._of(query)]}
        else:
            result = [
                {"metric": labels, "value": [now, value]}
                for part in re.split(r" or (?=label_replace)", query)
                for labels, value in self._part(part, now)
            ]
            data = {"resultType": "vector", "result": result}
        return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()

    def _part(self, part: str, now: float) -> list[tuple[Labels, str]]:
        marked = re.fullmatch(r'label_replace\((.*),"(\w+)","(\w+)","",""\)', part)
        if marked:
            return [({**labels, marked[2]: marked[3]}, value) for labels, value in self._part(marked[1], now)]
        counted = re.fullmatch(r"count(?: by \(([^)]*)\) )?\((.*)\)", part)
        if counted:
            names = (counted[1] or "").replace(" ", "").split(",")
            groups = [
                {name: labels[name] for name in names if name in labels} for labels, _ in self._part(counted[2], now)
            ]
            return [(one, f"{groups.count(one)}") for number, one in enumerate(groups) if one not in groups[:number]]
        timed = re.fullmatch(r"timestamp\((.*)\)", part)
        if timed:
            return [(one.labels, f"{now - one.age_seconds}") for one in self._of(timed[1])]
        most = re.fullmatch(r"max\((.*)\)", part)
        if most:
            return [({}, max((value for _, value in self._part(most[1], now)), key=float))]
        if part.startswith("(") and part.endswith(")"):
            return self._part(part[1:-1], now)
        bare, equals, wanted = part.partition(" == ")
        found = [one for one in self._of(bare) if not equals or one.value == wanted]
        return [({"__name__": one.name, **one.labels}, one.value) for one in found]

    def _of(self, selector: str) -> list[Line]:
        name, inside = re.fullmatch(r"(\w*)(?:\{(.*)\})?(?:\[\w+\])?", selector).groups()  # type: ignore[union-attr]
        matchers = re.findall(r'(\w+)(=~?)"((?:[^"\\]|\\.)*)"', inside or "")
        found = []
        for one in self.lines:
            labels = {"__name__": one.name, **one.labels}
            fits = all(
                re.fullmatch(text.replace("\\\\", "\\") if sign == "=~" else re.escape(text), labels.get(label, ""))
                for label, sign, text in matchers
            )
            if fits and name in ("", one.name):
                found.append(one)
        return found

    def _range(self, line: Line, now: float) -> object:
        moments = [[now - step * self.scrape_seconds, line.value] for step in range(3, -1, -1)]
        return {"metric": {"__name__": line.name, **line.labels}, "values": moments}


def serve(fake: FakePrometheus) -> ThreadingHTTPServer:
    """Answer on loopback, from a thread of its own, until it is shut down."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Two pieces would wait for an acknowledgement, 40 ms each.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer(urllib.parse.urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, fields: str) -> None:
            (query,) = urllib.parse.parse_qs(fields)["query"]
            fake.asked.append((self.command, query, self.headers.get("Authorization", "")))
            if fake.only_get and self.command == "POST":
                status, kind, body = 405, "text/plain", b"method not allowed"
            else:
                status, kind, body = fake.answer(query)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", f"{len(body)}")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    return server
