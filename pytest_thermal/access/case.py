"""What is known of a request before its answer is judged, and what is concluded from it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_thermal.access.reading import transcript
from pytest_thermal.access.verdict import Verdict, failed
from pytest_thermal.bench import Domain, describe_key
from pytest_thermal.model.said import say
from pytest_thermal.transport import Exchange, Route


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a rule may know besides the exchange itself."""

    domain: Domain
    route: Route
    endpoint: str
    """The layer whose request this was: ``models`` for the model list, else ``chat``, ``stream`` …"""
    model: str | None = None
    key_proven: bool = False
    """Whether this key is already known to be good."""
    key_variables: tuple[str, ...] = ()
    """Other environment variables that look as if they held a key (names only)."""

    @property
    def key_text(self) -> str:
        """The key as it may be shown: where it came from, its head and length."""
        if self.domain.key is None:
            return say("no key")
        return say(
            "the key in {key_origin} ({describe_key})",
            key_origin=self.domain.key_origin,
            describe_key=describe_key(self.domain.key),
        )


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The layer at fault and the words for it."""

    layer: str
    seen: str
    likely: str
    advice: str

    def verdict(self, exchange: Exchange) -> Verdict:
        """As a failed verdict with the exchange as its proof."""
        return failed(
            self.seen,
            layer=self.layer,
            likely=self.likely,
            advice=self.advice,
            transcript=transcript(exchange),
            status=exchange.status,
            latency_ms=round(exchange.latency_seconds * 1000, 1),
        )
