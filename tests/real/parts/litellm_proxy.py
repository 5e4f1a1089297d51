"""The real LiteLLM proxy, with a mock model, the real engine behind it, and upstreams that are broken."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from tests.real.parts import installs
from tests.real.parts.dead_ends import DeadEnds
from tests.real.parts.keys import fresh_key
from tests.real.parts.llama import Llama
from tests.real.parts.process import CHILDREN, free_ports, retried_on_taken_address, served

KeyKind = Literal["full", "requests", "tokens", "parallel"]
_START_SECONDS = 150.0  # 10 s on an idle machine, 30 s the first time, more while others compile


@dataclass(frozen=True, kw_only=True)
class LiteLLM:
    """A running proxy. Models are named for what stands behind them."""

    url: str
    log: Path
    root: str = field(repr=False)
    serials: Iterator[int] = field(repr=False, default_factory=itertools.count)
    mock: str = "mock-chat"
    engine: str = "engine-chat"
    bad_upstream_key: str = "bad-key-chat"
    dead_upstream: str = "dead-chat"
    hanging_upstream: str = "hanging-chat"
    exhausted_upstream: str = "exhausted-chat"

    def key(self, kind: KeyKind = "full") -> str:
        """A key never used before: `requests` 3 a minute, `tokens` 60 a minute, `parallel` one at a time."""
        return f"{self.root}-{kind}-{next(self.serials)}"

    def wrong_key(self) -> str:
        """A key of the same shape that the proxy does not know."""
        return f"{fresh_key('stranger')}-full-0"


@dataclass(frozen=True, kw_only=True)
class PlainLiteLLM:
    """A proxy as most people start it: one master key and no database."""

    url: str
    key: str = field(repr=False)
    model: str
    log: Path


@contextlib.contextmanager
def litellm_proxy(work: Path, llama: Llama, ends: DeadEnds) -> Iterator[LiteLLM]:
    """The proxy whose keys come from `children/litellm_auth.py`."""
    root = fresh_key("litellm")
    folder = work / "litellm"
    folder.mkdir()
    shutil.copy(CHILDREN / "litellm_auth.py", folder / "litellm_auth.py")
    named = LiteLLM(url="", log=folder / "server.log", root=root)
    engine = f"http://{llama.address}/v1"
    models = [
        _model(named.mock, ends.closed_url, "none", mock_response="A mock's answer."),
        _model(named.engine, engine, "os.environ/ENGINE_KEY", upstream=llama.model),
        _model(named.bad_upstream_key, engine, "os.environ/STALE_ENGINE_KEY", upstream=llama.model),
        _model(named.dead_upstream, ends.closed_url, "none"),
        _model(named.hanging_upstream, ends.silent_url, "none", timeout=2),
        _model(named.exhausted_upstream, ends.closed_url, "none", mock_response="litellm.RateLimitError"),
    ]
    general = {"custom_auth": "litellm_auth.user_api_key_auth", "custom_auth_run_common_checks": True}
    environ = {
        "LITELLM_MASTER_KEY": fresh_key("master"),  # never used: the proxy does not start without one
        "GATEWAY_KEY_ROOT": root,
        "ENGINE_KEY": llama.key,
        "STALE_ENGINE_KEY": fresh_key("stale"),
    }
    with _proxy(folder, models, general, environ) as url:
        yield LiteLLM(url=url, log=named.log, root=root)


@contextlib.contextmanager
def plain_litellm_proxy(work: Path, ends: DeadEnds) -> Iterator[PlainLiteLLM]:
    """The proxy with a master key only, which tells a wrong key as a missing database."""
    key = fresh_key("master")
    folder = work / "litellm-plain"
    folder.mkdir()
    models = [_model("mock-chat", ends.closed_url, "none", mock_response="A mock's answer.")]
    environ = {"LITELLM_MASTER_KEY": key}
    with _proxy(folder, models, {"master_key": "os.environ/LITELLM_MASTER_KEY"}, environ) as url:
        yield PlainLiteLLM(url=url, key=key, model="mock-chat", log=folder / "server.log")


def _model(name: str, base: str, key: str, *, upstream: str = "any", **more: object) -> dict[str, object]:
    parameters = {"model": f"openai/{upstream}", "api_base": base, "api_key": key, "max_retries": 0, **more}
    return {"model_name": name, "litellm_params": parameters}


def _proxy(
    folder: Path, models: list[dict[str, object]], general: dict[str, object], environ: dict[str, str]
) -> contextlib.AbstractContextManager[str]:
    python = installs.python_environment("litellm")
    config = folder / "config.yaml"
    settings = {
        "model_list": models,
        "general_settings": general,
        "litellm_settings": {"telemetry": False, "num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }
    config.write_text(json.dumps(settings, indent=1))  # JSON is YAML

    def start() -> contextlib.AbstractContextManager[str]:
        (port,) = free_ports(1)
        base = f"http://127.0.0.1:{port}"
        arguments = [
            "--config",
            str(config),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--telemetry",
            "False",
        ]
        return served(
            [str(python.with_name("litellm")), *arguments],
            log=folder / "server.log",
            ready=lambda: f"{base}/v1" if _alive(base) else None,
            environ={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1", **environ},
            start_seconds=_START_SECONDS,
        )

    return retried_on_taken_address(start)


def _alive(base: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{base}/health/liveliness", timeout=20.0, trust_env=False).status_code == 200
    return False
