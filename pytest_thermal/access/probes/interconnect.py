"""Interconnect: RDMA ports and their links, the fallback in use, and the latency that was promised.

None of it passes the gateway: it is about the machine that the tests run on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.interconnect.ascend import read_npu_ports
from pytest_thermal.access.interconnect.commands import child_environment
from pytest_thermal.access.interconnect.fabric import Fabric, asked_fabrics, scale_out_fabric, scale_up_fabric
from pytest_thermal.access.interconnect.fallbacks import forced_fallbacks
from pytest_thermal.access.interconnect.latency_runs import EXAMPLE, Measurement, Unavailable, measure
from pytest_thermal.access.interconnect.latency_tools import Kind, us_text
from pytest_thermal.access.interconnect.rdma import INFINIBAND, Port, read_ports
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say

MOST_NAMED = 8
"""Ports named in a message; the evidence has them all."""


def interconnect(gateway: Gateway) -> Verdict:
    """The links of this machine that the bench's interconnect needs are up, and as fast as their siblings."""
    asked = asked_fabrics(gateway.bench, gateway.domain)
    if not asked:
        return skipped(
            say(
                "the bench names no interconnect: neither [scale_up] interconnect, nor [scale_out] "
                "enabled with a protocol"
            )
        )
    readable = [fabric for fabric in asked if fabric.readable]
    if not readable:
        return skipped(
            say(
                "nothing was measured: the bench names {named}, and only the links of RDMA adapters and "
                "Ascend NPUs can be read here",
                named=_named(asked),
            )
        )
    ports = _ports(gateway, readable)
    judged = [fabric for fabric in readable if _wanted(ports, fabric) or (ports and fabric.rdma)]
    if not judged:
        return skipped(
            say(
                "nothing was measured: {no_device}, and the bench names {named}",
                no_device=_no_device(gateway, ports),
                named=_named(readable),
            )
        )
    verdict = _judge(ports, judged)
    left_out = [fabric for fabric in asked if fabric not in judged]
    untold = (say("nothing was measured of {named}", named=_named(left_out)),) if left_out else ()
    return replace(verdict, warnings=verdict.warnings + untold, evidence=_evidence(ports))


def fallback(gateway: Gateway) -> Verdict:
    """The protocol between domains is RDMA as configured, and not the fallback."""
    fabric = scale_out_fabric(gateway.bench)
    other = gateway.bench.scale_out.fallback if gateway.bench.scale_out else None
    if fabric is None:
        return skipped(say("the bench configures no protocol between domains ([scale_out] is missing or switched off)"))
    if not other:
        return skipped(say("the bench names {words} and no fallback from it", words=fabric.words))
    if not fabric.rdma or Fabric(text=other, origin="").rdma:
        return skipped(
            say(
                "whether {other} is in use for {words} cannot be told: only RDMA from TCP can",
                other=other,
                words=fabric.words,
            )
        )
    forced = forced_fallbacks(gateway.environ, etc=_root(gateway) / "etc")
    try:
        ports = _ports(gateway, [fabric])
    except CannotMeasure:
        if not forced:
            raise
    else:
        if not ports:
            return skipped(
                say(
                    "nothing was measured: {no_device}, and the bench names {words}",
                    no_device=_no_device(gateway, ports),
                    words=fabric.words,
                )
            )
    if forced:
        return failed(
            say("fallback {other} is in use: {names}", other=other, names=joined("; ", forced)),
            likely=say(
                "set while something else was looked for, and never taken back; the bench names {words}",
                words=fabric.words,
            ),
            advice=say(
                "unset {names}, also where the service sets it",
                names=" ".join(text.partition("=")[0] for text in forced),
            ),
        )
    carriers = [port for port in _wanted(ports, fabric) if port.active]
    if not carriers:
        return failed(
            say(
                "fallback {other} is in use: no port for {words} is active ({list})",
                other=other,
                words=fabric.words,
                list=_list(ports),
            ),
            likely=say("the links are down, so the libraries take what is left"),
            advice=say("rdma link; ibstat; the cables and the switch ports"),
        )
    return replace(
        passed(
            say(
                "{fabric} is carried by {list}; nothing in this environment forces {other}",
                fabric=fabric.text,
                list=_list(carriers, state=False),
                other=other,
            )
        ),
        evidence=_evidence(ports),
    )


def latency(gateway: Gateway) -> Verdict:
    """The measured latency of the interconnect is within the domain's target."""
    domain = gateway.domain
    target_us = domain.latency_target_us
    if target_us is None:
        return skipped(say("the bench sets no latency_target_us for this domain"))
    fabric = scale_up_fabric(gateway.bench, domain) or scale_out_fabric(gateway.bench)
    done = measure(gateway, fabric, ports=lambda: _rdma_ports(gateway), dev=_dev(gateway))
    if isinstance(done, Unavailable):
        return skipped(
            say(
                "nothing was measured: {names}; this would measure it: {example}",
                names=joined("; ", done.reasons),
                example=EXAMPLE,
            )
        )
    origin = gateway.bench.origins.get(f"domains.{domain.name}.latency_target_us", say("bench file"))
    return replace(
        _judge_latency(done, target_us, origin),
        transcript=done.transcript,
        evidence={
            "tool": done.figure.tool,
            "measured": done.figure.kind.value,
            "statistic": done.figure.statistic,
            "latency_us": done.figure.microseconds,
            "message_bytes": done.figure.size_bytes,
            "target_us": target_us,
            "command": done.command,
            "way": done.way or "as the command says",
            **{f"{name}_us": value for name, value in done.figure.others_us.items()},
        },
    )


# --- what is there -------------------------------------------------------------------------------------------


def _root(gateway: Gateway) -> Path:
    """The root of the machine that ``plan.sysfs`` belongs to: the host's, where that is mounted in a container."""
    return gateway.plan.sysfs.parent


def _dev(gateway: Gateway) -> Path:
    beside = _root(gateway) / "dev"
    return beside if beside.is_dir() else Path("/dev")


def _rdma_ports(gateway: Gateway) -> tuple[Port, ...]:
    return gateway.once(say("ports of RDMA devices"), lambda: read_ports(gateway.plan.sysfs))


def _ports(gateway: Gateway, fabrics: Sequence[Fabric]) -> tuple[Port, ...]:
    """All ports that may carry ``fabrics``: those of NPUs too, unless only InfiniBand is asked for."""
    if all(fabric.link_layer == INFINIBAND for fabric in fabrics):
        return _rdma_ports(gateway)
    environ = child_environment(gateway.environ, gateway.bench.secrets())
    npus = gateway.once(say("ports of NPUs"), lambda: read_npu_ports(_dev(gateway), environ))
    return _rdma_ports(gateway) + npus


def _wanted(ports: Sequence[Port], fabric: Fabric) -> list[Port]:
    """Those of ``ports`` that can carry ``fabric``."""
    if not fabric.rdma:
        return [port for port in ports if _is_npu(port)]
    return [port for port in ports if fabric.link_layer is None or port.link_layer in ("", fabric.link_layer)]


def _no_device(gateway: Gateway, ports: Sequence[Port]) -> str:
    if ports:
        return say("this machine has no Ascend NPU")
    return say(
        "this machine has no RDMA device (in {sysfs}) and no Ascend NPU",
        sysfs=gateway.plan.sysfs / "class" / "infiniband",
    )


def _named(fabrics: Sequence[Fabric]) -> str:
    return joined(", ", dict.fromkeys(fabric.words for fabric in fabrics))


def _list(ports: Sequence[Port], *, state: bool = True) -> str:
    def words(port: Port) -> str:
        if state:
            return f"{port.name} {port.state_text}"
        facts = joined(", ", (text for text in (port.link_layer, port.rate_text) if text))
        return say("{port_name} ({facts})", port_name=port.name, facts=facts) if facts else port.name

    more = say(" and {count} more", count=len(ports) - MOST_NAMED) if len(ports) > MOST_NAMED else ""
    return joined(", ", (words(port) for port in ports[:MOST_NAMED])) + more


def _evidence(ports: Sequence[Port]) -> dict[str, Scalar]:
    return {port.name: port.words for port in ports}


# --- links ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Problem:
    seen: str
    likely: str
    advice: str


def _judge(ports: Sequence[Port], fabrics: Sequence[Fabric]) -> Verdict:
    carriers = {fabric: _wanted(ports, fabric) for fabric in fabrics}
    wanted = [port for port in ports if any(port in group for group in carriers.values())]
    active = [port for port in wanted if port.active]
    spare = [port for port in wanted if port.unused and not _is_npu(port)]
    problems = [_half_up(port) for port in wanted if port.half_up]
    problems += [_npu_down(port) for port in wanted if port.unused and _is_npu(port)]
    for fabric, group in carriers.items():
        if not group and fabric.rdma:
            problems.append(_no_such_port(fabric, ports))
        elif group and all(port.unused and not _is_npu(port) for port in group):
            problems.append(_none_active(group))
    problems += _slower(active)
    warnings = [say("{list}: not in use, or its cable is out", list=_list(spare))] if spare and active else []
    warnings += [
        say("{port_name} is active without an address: its first GID is empty", port_name=port.name)
        for port in active
        if not port.has_address
    ]
    if problems:
        return failed(
            _joined([problem.seen for problem in problems]),
            likely=_joined([problem.likely for problem in problems]),
            advice=_joined([problem.advice for problem in problems]),
            warnings=tuple(warnings),
        )
    return passed(
        say("1 port active: {list}", list=_list(active, state=False))
        if len(active) == 1
        else say("{count} ports active: {list}", count=len(active), list=_list(active, state=False)),
        warnings=tuple(warnings),
    )


def _no_such_port(fabric: Fabric, ports: Sequence[Port]) -> _Problem:
    return _Problem(
        seen=say("the bench names {words}, and no port of this machine is that: ", words=fabric.words)
        + joined(", ", (f"{port.name} {port.link_layer} {port.state_text}" for port in ports[:MOST_NAMED])),
        likely=say("the ports are set to the other link type, the adapter is missing, or the bench file is wrong"),
        advice=say("ibstat | grep -i layer; mlxconfig -d DEVICE query | grep LINK_TYPE; lspci | grep -i mellanox"),
    )


def _joined(texts: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(texts))
    more = say("; and {count} more", count=len(distinct) - MOST_NAMED) if len(distinct) > MOST_NAMED else ""
    return joined("; ", distinct[:MOST_NAMED]) + more


def _is_npu(port: Port) -> bool:
    return port.number is None


def _half_up(port: Port) -> _Problem:
    seen = say("{port_name} is {state_text}", port_name=port.name, state_text=port.state_text)
    if port.state in ("INIT", "ARMED") and port.link_layer in ("", INFINIBAND):
        return _Problem(
            seen=seen,
            likely=say("the cable is good, and no subnet manager has brought the port up"),
            advice=say("sminfo; systemctl status opensm (or the switch's own) on the manager's node; ibstat"),
        )
    return _Problem(
        seen=seen,
        likely=say("the link does not come up whole: cable, transceiver, or the switch port's settings"),
        advice=say("mlxlink -d {device}; reseat or swap the cable; the switch port's log", device=port.device),
    )


def _none_active(down: Sequence[Port]) -> _Problem:
    seen = say("no port is active: {list}", list=_list(down))
    if all(port.physical_state == "Disabled" for port in down):
        netdevs = " ".join(port.netdev for port in down if port.netdev) or "NETDEV"
        return _Problem(
            seen=seen,
            likely=say("the ports are switched off here: their network interfaces are down, or someone disabled them"),
            advice=say("rdma link; ip link set {split} up; ibportstate", split=netdevs.split()[0]),
        )
    return _Problem(
        seen=seen,
        likely=say("no cable, or the switch ports are off"),
        advice=say("rdma link; ibstat; the cables, and the ports on the switch"),
    )


def _npu_down(port: Port) -> _Problem:
    number = port.device.removeprefix("npu")
    return _Problem(
        seen=say("the network port of {port_name} is DOWN", port_name=port.name),
        likely=say("its cable or optical module is out or bad, or the switch port is off"),
        advice=say(
            "hccn_tool -i {number} -optical -g; hccn_tool -i {number} -net_health -g; the switch port", number=number
        ),
    )


def _slower(active: Sequence[Port]) -> list[_Problem]:
    problems = []
    for port in active:
        siblings = [other for other in active if (other.link_layer, other.model) == (port.link_layer, port.model)]
        best = max(other.gigabits_per_second or 0.0 for other in siblings)
        if port.gigabits_per_second is not None and port.gigabits_per_second < best:
            problems.append(
                _Problem(
                    seen=say(
                        "{port_name} runs at {rate_text}, its siblings at up to {best:g} Gb/s",
                        port_name=port.name,
                        rate_text=port.rate_text,
                        best=best,
                    ),
                    likely=say(
                        "the link came up slower: a bad or slower cable, lost lanes, or the switch port's settings"
                    ),
                    advice=say("mlxlink -d DEVICE; swap the cable with a sibling's and see which end it follows"),
                )
            )
    return problems


# --- latency -------------------------------------------------------------------------------------------------


def _judge_latency(done: Measurement, target_us: float, origin: str) -> Verdict:
    figure = done.figure
    way = f" {done.way}" if done.way else ""
    whole = say(", the time of a whole collective operation") if figure.kind is Kind.COLLECTIVE else ""
    seen = say(
        "{words}{whole}{way}, target {us_text} ({origin})",
        words=figure.words,
        whole=whole,
        way=way,
        us_text=us_text(target_us),
        origin=origin,
    )
    if figure.wrong:
        return failed(
            say(
                "{tool} says that data arrived wrong: {wrong}; {seen}", tool=figure.tool, wrong=figure.wrong, seen=seen
            ),
            likely=say("an adapter, a cable or memory corrupts data, or the driver and the library do not fit"),
            advice=say("run it again between fewer devices, to find the one; dmesg | tail; the ECC counters"),
        )
    if figure.microseconds <= target_us:
        alone = figure.kind is Kind.LINK and way
        return passed(
            seen,
            warnings=(say("the way to a peer was not measured; this would: {example}", example=EXAMPLE),)
            if alone
            else (),
        )
    if figure.kind is Kind.COLLECTIVE and done.chosen_here:
        raise CannotMeasure(
            say("{seen}: above the target, which by itself condemns no link", seen=seen),
            likely=say("an all-reduce holds a kernel's launch and many messages; the target is one message's"),
            advice=EXAMPLE,
        )
    if figure.kind is Kind.COLLECTIVE:
        likely = say("a collective holds many messages and a kernel's launch: the links need not be slow")
        advice = say("set latency_target_us for what is measured, or measure a link: {example}", example=EXAMPLE)
    elif way:
        likely = say(
            "the adapter itself is slow: a narrow or slow PCIe slot, power saving of the processor, virtualisation"
        )
        advice = say("lspci -vv | grep LnkSta; cpupower frequency-set -g performance; cpupower idle-set -D 0")
    else:
        likely = say("a detour over more switches, congestion, the wrong NUMA node, or power saving of the processor")
        advice = say("the same over loopback, to tell adapter from network; ibtracert; numactl; cpupower idle-set -D 0")
    return failed(seen, likely=likely, advice=advice)
