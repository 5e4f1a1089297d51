"""Which machines a server's series are of: two are never taken for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.prometheus.answer import Sample

_HOST_LABELS = frozenset({
    "instance", "Hostname", "hostname", "host", "node", "nodename", "kubernetes_node", "exported_instance", "target",
})  # fmt: skip
"""Labels that name the machine: who narrowed by one of them has said which."""
_HERE = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MOST_SHOWN = 6


def hosts_of(series: Sequence[Mapping[str, str]]) -> list[str]:
    """The machines that series are of: by what an exporter calls its own, else by the address without the port."""
    named: dict[str, set[str]] = {}
    for labels in series:
        address = labels.get("instance", "")
        host, colon, port = address.rpartition(":")
        host = host if colon and port.isdigit() else address
        own = labels.get("Hostname", "")
        named.setdefault("localhost" if host in _HERE else host, set()).update({own} - {""})
    return sorted({host for address, own in named.items() for host in own or {address}} - {""})


def several_hosts(
    known: Sequence[Sample], down: Sequence[Sample], labels: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Why it cannot be told which machine is the bench, and what to do, line by line; empty where it can.

    ``down`` has targets that do not answer: one of a job whose others are known may be the bench itself.
    """
    if _HOST_LABELS & set(labels):
        return ()
    jobs = {one.labels.get("job", "") for one in known}
    also = [one for one in down if one.labels.get("job", "") in jobs]
    hosts = hosts_of([one.labels for one in (*known, *also)])
    if len(hosts) < 2:
        return ()
    label = "Hostname" if any(one.labels.get("Hostname") == hosts[0] for one in known) else "instance"
    names = joined(", ", hosts[:_MOST_SHOWN])
    if len(hosts) > _MOST_SHOWN:
        names = say("{names} and {count} more", names=names, count=len(hosts) - _MOST_SHOWN)
    return (
        say("it knows {count} machines: {names}", count=len(hosts), names=names),
        say("likely: it watches more than this bench, or calls this bench by several names"),
        say(
            "try: say in config.toml which it is, with all of its names: {setting}",
            setting=f'prometheus_labels = {{{label} = "{hosts[0]}"}}',
        ),
    )
