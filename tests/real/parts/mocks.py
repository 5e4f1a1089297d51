"""Two mocks by other people: aimock (npm) answers as OpenAI does, llmock (PyPI) judges its client."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.real.parts import installs
from tests.real.parts.keys import fresh_key
from tests.real.parts.process import free_ports, line_after, retried_on_taken_address, served
from tests.support.patience import PATIENCE_SECONDS

_MODEL = "gpt-4o-mini"
# First match wins. The model is listed because a fixture names it.
_AIMOCK_ANSWERS = {
    "fixtures": [
        {
            "match": {"model": "retired-model"},
            "response": {
                "status": 404,
                "error": {
                    "message": "The model `retired-model` does not exist or you do not have access to it.",
                    "type": "invalid_request_error",
                    "code": "model_not_found",
                },
            },
        },
        {
            "match": {"model": "cut-model"},
            "response": {"content": "one two three four five six seven eight nine ten " * 4},
            "latency": 20,  # ms between chunks, so that what comes before the cut is really on its way
            "truncateAfterChunks": 2,
        },
        {
            "match": {"model": "forbidden-model"},
            "response": {
                "status": 403,
                "error": {
                    "message": "You are not allowed to sample from this model",
                    "type": "invalid_request_error",
                    "code": "forbidden",
                },
            },
        },
        {"match": {"model": _MODEL}, "response": {"content": "Yes."}},
    ]
}


@dataclass(frozen=True, kw_only=True)
class Aimock:
    """A running aimock; other models of it fail as their names say."""

    url: str
    key: str = field(repr=False)
    log: Path
    model: str = _MODEL
    retired_model: str = "retired-model"
    forbidden_model: str = "forbidden-model"
    cut_model: str = "cut-model"


@contextlib.contextmanager
def aimock_server(work: Path, name: str, options: Sequence[str] = ()) -> Iterator[Aimock]:
    """Start one; `options` such as `--chaos-ratelimit 1` as its command line takes them."""
    program = installs.npm_package("aimock", "llmock")
    folder = work / name
    folder.mkdir()
    answers = folder / "answers.json"
    answers.write_text(json.dumps(_AIMOCK_ANSWERS))
    key = fresh_key("aimock")
    log = folder / "server.log"
    with served(
        [*program, "-h", "127.0.0.1", "-p", "0", "-f", str(answers), *options],
        log=log,
        ready=lambda: line_after(log, "server listening on "),
        environ={"AIMOCK_API_KEYS": key},
    ) as address:
        yield Aimock(url=f"{address}/v1", key=key, log=log)


@dataclass(frozen=True, kw_only=True)
class Llmock:
    """A running llmock; it takes any key and keeps a record of what its clients do."""

    url: str
    key: str = field(repr=False)
    log: Path
    model: str = _MODEL

    def scenario(self, *behaviours: Mapping[str, Any]) -> None:
        """From now on misbehave in these ways, such as `{"type": "fail", "status": 429, "times": 1}`."""
        self._ask("POST", "scenario", json={"behaviors": list(behaviours)})

    def forget(self) -> None:
        """Drop the scenario and the record of requests."""
        self._ask("POST", "reset")

    def verdict(self) -> dict[str, Any]:
        """What it thinks of its clients so far."""
        answer: dict[str, Any] = self._ask("GET", "verdict").json()
        return answer

    def requests(self) -> Any:
        """Every request it was sent, with times and bodies."""
        return self._ask("GET", "requests").json()

    def _ask(self, method: str, what: str, **more: Any) -> httpx.Response:
        address = self.url.removesuffix("/v1")
        answer = httpx.request(method, f"{address}/_llmock/{what}", trust_env=False, timeout=PATIENCE_SECONDS, **more)
        return answer.raise_for_status()


@contextlib.contextmanager
def llmock_server(work: Path, name: str, options: Sequence[str] = ()) -> Iterator[Llmock]:
    """Start one; `options` such as `--rpm 3` as its command line takes them."""
    python = installs.python_environment("llmock")
    folder = work / name
    folder.mkdir()
    log = folder / "server.log"

    def start() -> contextlib.AbstractContextManager[Llmock]:
        (port,) = free_ports(1)
        address = f"http://127.0.0.1:{port}"
        mock = Llmock(url=f"{address}/v1", key=fresh_key("llmock"), log=log)
        command = [str(python.with_name("llmock")), "serve", "--host", "127.0.0.1", "--port", str(port)]
        return served([*command, *options], log=log, ready=_when_healthy(address, mock), environ={"NO_COLOR": "1"})

    with retried_on_taken_address(start) as mock:
        yield mock


def _when_healthy(address: str, mock: Llmock) -> Callable[[], Llmock | None]:
    def ready() -> Llmock | None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{address}/_llmock/scenario", timeout=20.0, trust_env=False).status_code == 200:
                return mock
        return None

    return ready
