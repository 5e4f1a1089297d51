"""What the bench asks of the interconnect: which fabric it names, and where it says so."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_thermal.access.interconnect.rdma import ETHERNET, INFINIBAND
from pytest_thermal.bench import Bench, Domain
from pytest_thermal.model.said import say

_RDMA = re.compile(r"rdma|roce|iwarp|infini-?band|\bib\b|\befa\b|omni-?path|\bopa\b", re.IGNORECASE)
_INFINIBAND = re.compile(r"infini-?band|\bib\b", re.IGNORECASE)
_ETHERNET = re.compile(r"roce|iwarp", re.IGNORECASE)
_ASCEND = re.compile(r"hccs|hccl|\bub\b|unified-?\s?bus|lingqu|灵衢", re.IGNORECASE)
_NOTHING = ("", "none", "no", "off", "false")


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """A fabric that the bench names: ``text`` as it stands there, ``origin`` the place."""

    text: str
    origin: str

    @property
    def rdma(self) -> bool:
        """Whether RDMA adapters carry it."""
        return bool(_RDMA.search(self.text))

    @property
    def ascend(self) -> bool:
        """Whether Ascend NPUs carry it."""
        return bool(_ASCEND.search(self.text))

    @property
    def readable(self) -> bool:
        """Whether the state of its links can be read here at all; NVLink's cannot."""
        return self.rdma or self.ascend

    @property
    def link_layer(self) -> str | None:
        """The link layer that its ports must have; None where any will do."""
        infiniband, ethernet = bool(_INFINIBAND.search(self.text)), bool(_ETHERNET.search(self.text))
        if infiniband == ethernet:
            return None
        return INFINIBAND if infiniband else ETHERNET

    @property
    def words(self) -> str:
        """``infiniband (config.toml [scale_up] interconnect)``."""
        return say("{text} ({origin})", text=self.text, origin=self.origin)


def scale_up_fabric(bench: Bench, domain: Domain) -> Fabric | None:
    """The fabric inside ``domain``; None where the bench names none."""
    if (domain.interconnect or "").strip().lower() in _NOTHING:
        return None
    origin = bench.origins.get(f"domains.{domain.name}.interconnect", say("bench file"))
    return Fabric(text=str(domain.interconnect), origin=origin)


def scale_out_fabric(bench: Bench) -> Fabric | None:
    """The fabric between domains, where that is switched on."""
    scale_out = bench.scale_out
    if scale_out is None or not scale_out.enabled or scale_out.protocol.strip().lower() in _NOTHING:
        return None
    return Fabric(text=scale_out.protocol, origin=bench.origins.get("scale_out.protocol", say("bench file")))


def asked_fabrics(bench: Bench, domain: Domain) -> tuple[Fabric, ...]:
    """All that the bench names for ``domain``, the inner one first."""
    return tuple(found for found in (scale_up_fabric(bench, domain), scale_out_fabric(bench)) if found is not None)
