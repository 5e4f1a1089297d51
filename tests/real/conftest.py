"""Fixtures that start the real parts, each once for all tests that want it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

# `pytest` alone, unlike `python -m pytest`, does not make the checkout importable.
_CHECKOUT = str(Path(__file__).resolve().parents[2])
if _CHECKOUT not in sys.path:
    sys.path.append(_CHECKOUT)

from tests.real.parts.bmc import BROKEN_NAME, Bmc, simulated_bmc  # noqa: E402
from tests.real.parts.dead_ends import DeadEnds, dead_ends  # noqa: E402
from tests.real.parts.errors import PartUnavailableError  # noqa: E402
from tests.real.parts.litellm_proxy import (  # noqa: E402
    LiteLLM,
    PlainLiteLLM,
    litellm_proxy,
    plain_litellm_proxy,
)
from tests.real.parts.llama import Llama, llama_server  # noqa: E402
from tests.real.parts.mocked_sys import MockedRun, recorded_sys  # noqa: E402
from tests.real.parts.mocks import Aimock, Llmock, aimock_server, llmock_server  # noqa: E402
from tests.real.parts.netns import NetworkNamespace, network_namespace  # noqa: E402
from tests.real.parts.nginx import Nginx, nginx_front  # noqa: E402
from tests.real.parts.prometheus import Prometheus, prometheus_chain  # noqa: E402
from tests.real.parts.slurm import Slurm, slurm  # noqa: E402
from tests.real.parts.sshd import Sshd, ssh_server  # noqa: E402

Part = TypeVar("Part")


@contextlib.contextmanager
def or_skip(part: contextlib.AbstractContextManager[Part]) -> Iterator[Part]:
    """Skip with the reason where the machine cannot run the part; an error if `REAL_PARTS=required`."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(part)
        except PartUnavailableError as reason:
            if os.environ.get("REAL_PARTS") == "required":
                raise
            pytest.skip(str(reason))
        yield running


def or_skip_made(
    make: Callable[[], contextlib.AbstractContextManager[Part]],
) -> contextlib.AbstractContextManager[Part]:
    """The same for a part that may be refused before there is a context."""

    @contextlib.contextmanager
    def made() -> Iterator[Part]:
        with make() as part:
            yield part

    return or_skip(made())


@pytest.fixture(scope="session")
def parts_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the parts keep their configurations and logs."""
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="session")
def ends() -> Iterator[DeadEnds]:
    """A closed port, and one that accepts and never answers."""
    with dead_ends() as made:
        yield made


@pytest.fixture(scope="session")
def bmc(parts_folder: Path) -> Iterator[Bmc]:
    """A simulated BMC, whose sensors the test sets."""
    with or_skip(simulated_bmc(parts_folder)) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(parts_folder: Path) -> Iterator[Prometheus]:
    """A BMC of its own, the exporters, and the Prometheus that asks them."""
    with (
        or_skip(simulated_bmc(parts_folder, name="bmc-of-prometheus", without=[BROKEN_NAME])) as bmc,
        or_skip(prometheus_chain(parts_folder, bmc)) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def cluster(parts_folder: Path) -> Iterator[Slurm]:
    """A Slurm with two virtual nodes."""
    with or_skip_made(lambda: slurm(parts_folder)) as running:
        yield running


@pytest.fixture(scope="module")
def mocked_sys(parts_folder: Path) -> Iterator[MockedRun]:
    """A recording of a mocked /sys that goes on."""
    with or_skip(recorded_sys(parts_folder)) as running:
        yield running


@pytest.fixture(scope="module")
def sshd(parts_folder: Path) -> Iterator[Sshd]:
    """An ssh server that leads to this machine."""
    with or_skip_made(lambda: ssh_server(parts_folder)) as running:
        yield running


@pytest.fixture(scope="session")
def llama(parts_folder: Path) -> Iterator[Llama]:
    """A real llama.cpp server with four slots."""
    with or_skip(llama_server(parts_folder)) as running:
        yield running


@pytest.fixture(scope="session")
def llama_one_slot(parts_folder: Path) -> Iterator[Llama]:
    """One with a single slot and a model slow enough for its queue to show: about 80 ms an answer."""
    with or_skip(llama_server(parts_folder, name="llama-one-slot", slots=1, size="slow")) as running:
        yield running


@pytest.fixture(scope="session")
def llama_noise(parts_folder: Path) -> Iterator[Llama]:
    """One whose answers are control characters and broken UTF-8, at times nothing visible at all."""
    with or_skip(llama_server(parts_folder, name="llama-noise", size="noise")) as running:
        yield running


@pytest.fixture(scope="session")
def litellm(parts_folder: Path, llama: Llama, ends: DeadEnds) -> Iterator[LiteLLM]:
    """The LiteLLM proxy with limited keys, in front of the engine."""
    with or_skip(litellm_proxy(parts_folder, llama, ends)) as running:
        yield running


@pytest.fixture(scope="session")
def litellm_plain(parts_folder: Path, ends: DeadEnds) -> Iterator[PlainLiteLLM]:
    """The LiteLLM proxy with a master key and no database."""
    with or_skip(plain_litellm_proxy(parts_folder, ends)) as running:
        yield running


@pytest.fixture(scope="session")
def nginx(parts_folder: Path, llama: Llama, llama_one_slot: Llama, ends: DeadEnds) -> Iterator[Nginx]:
    """A real nginx in front of the engine."""
    with or_skip(nginx_front(parts_folder, llama, llama_one_slot, ends)) as running:
        yield running


@pytest.fixture(scope="session")
def netns(parts_folder: Path) -> Iterator[NetworkNamespace]:
    """A network namespace where packets and names are lost, with an engine inside."""
    with or_skip(network_namespace(parts_folder)) as running:
        yield running


@pytest.fixture(scope="session")
def aimock_with(parts_folder: Path) -> Iterator[Callable[..., Aimock]]:
    """Factory: aimock with these command-line options, one server for equal options."""
    running: dict[tuple[str, ...], Aimock] = {}
    with contextlib.ExitStack() as stack:

        def start(*options: str) -> Aimock:
            if options not in running:
                part = aimock_server(parts_folder, f"aimock-{len(running)}", options)
                running[options] = stack.enter_context(or_skip(part))
            return running[options]

        yield start


@pytest.fixture(scope="session")
def aimock(aimock_with: Callable[..., Aimock]) -> Aimock:
    """A well-behaved aimock."""
    return aimock_with()


@pytest.fixture(scope="session")
def llmock_with(parts_folder: Path) -> Iterator[Callable[..., Llmock]]:
    """Factory: llmock with these command-line options, one server for equal options, its record empty."""
    running: dict[tuple[str, ...], Llmock] = {}
    with contextlib.ExitStack() as stack:

        def start(*options: str) -> Llmock:
            if options not in running:
                part = llmock_server(parts_folder, f"llmock-{len(running)}", options)
                running[options] = stack.enter_context(or_skip(part))
            running[options].forget()
            return running[options]

        yield start


@pytest.fixture
def llmock(llmock_with: Callable[..., Llmock]) -> Llmock:
    """A well-behaved llmock that has seen nobody yet."""
    return llmock_with()
