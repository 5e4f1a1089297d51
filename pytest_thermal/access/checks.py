"""Every access check, in order from outside in: the test plan as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.probes import capacity, front, inference, interconnect, network
from pytest_thermal.access.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check: its id (as in the test's name), its layer, and the probe that measures it."""

    id: str
    layer: str
    probe: Callable[[Gateway], Verdict]
    advisory: bool = False
    """Told, but blocks nothing and fails nothing."""
    through_gateway: bool = True
    """Whether it can only be measured when the outer layers hold. The interconnect does not pass the gateway: its
    checks stand each for itself, and asked for alone they are measured alone."""

    @property
    def leads(self) -> bool:
        """Whether this is its layer's first check, on which the others of the layer rest."""
        return self.id == self.layer


CHECKS: tuple[Check, ...] = (
    Check(id="name", layer="name", probe=network.name),
    Check(id="connection", layer="connection", probe=network.connection),
    Check(id="tls", layer="tls", probe=network.tls),
    Check(id="tls_lifetime", layer="tls", probe=network.tls_lifetime, advisory=True),
    Check(id="http", layer="http", probe=front.http),
    Check(id="key", layer="key", probe=front.key),
    Check(id="models", layer="models", probe=front.models),
    Check(id="models_route_default", layer="models", probe=front.models_route_default),
    Check(id="models_route_fallback", layer="models", probe=front.models_route_fallback),
    Check(id="chat", layer="chat", probe=inference.chat),
    Check(id="chat_usage", layer="chat", probe=inference.chat_usage),
    Check(id="chat_model", layer="chat", probe=inference.chat_model),
    Check(id="chat_fallback", layer="chat", probe=inference.chat_fallback),
    Check(id="chat_limit", layer="chat", probe=inference.chat_limit, advisory=True),
    Check(id="stream", layer="stream", probe=inference.stream),
    Check(id="stream_done", layer="stream", probe=inference.stream_done, advisory=True),
    Check(id="stream_usage", layer="stream", probe=inference.stream_usage, advisory=True),
    Check(id="concurrency", layer="concurrency", probe=capacity.concurrency),
    Check(id="concurrency_answers", layer="concurrency", probe=capacity.concurrency_answers),
    Check(id="concurrency_usage", layer="concurrency", probe=capacity.concurrency_usage),
    Check(id="quota", layer="quota", probe=capacity.quota),
    Check(id="quota_tried", layer="quota", probe=capacity.quota_tried),
    Check(id="scheduler", layer="scheduler", probe=capacity.scheduler),
    Check(id="scheduler_parallel", layer="scheduler", probe=capacity.scheduler_parallel),
    Check(id="interconnect", layer="interconnect", probe=interconnect.interconnect, through_gateway=False),
    Check(id="interconnect_fallback", layer="interconnect", probe=interconnect.fallback, through_gateway=False),
    Check(id="interconnect_latency", layer="interconnect", probe=interconnect.latency, through_gateway=False),
)
