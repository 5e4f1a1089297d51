"""A real llama.cpp server with a model of random weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.parts import installs
from tests.real.parts.keys import fresh_key
from tests.real.parts.process import CHILDREN, line_after, served

MODEL = "tiny-random"


@dataclass(frozen=True, kw_only=True)
class Llama:
    """A running engine: what a bench needs to know of it, and where it writes its log."""

    url: str
    key: str = field(repr=False)
    model: str
    slots: int
    log: Path

    @property
    def address(self) -> str:
        """`host:port`, as a proxy in front wants it."""
        return self.url.removeprefix("http://").removesuffix("/v1")


@contextlib.contextmanager
def llama_server(
    work: Path, *, name: str = "llama", slots: int = 4, size: str = "tiny", prefix: tuple[str, ...] = ()
) -> Iterator[Llama]:
    """Serve a model of `size` in that many slots.

    `tiny` takes 0.5 ms a token and `slow` 18 ms; `noise` is as fast as `tiny` and writes any byte, visible
    or not. `prefix` goes in front of the command, as `ip netns exec NAME`.
    """
    python = installs.python_environment("engine")
    folder = work / name
    folder.mkdir()
    models = work / "models"
    models.mkdir(exist_ok=True)
    key = fresh_key(name)
    log = folder / "server.log"
    server = [str(python), str(CHILDREN / "llama_server.py"), str(models), size, str(slots), MODEL]
    with served(
        [*prefix, *server],
        log=log,
        ready=lambda: line_after(log, "port chosen: "),
        environ={"LLAMA_KEY": key, "PYTHONDONTWRITEBYTECODE": "1"},
    ) as address:
        yield Llama(url=f"{address}/v1", key=key, model=MODEL, slots=slots, log=log)
