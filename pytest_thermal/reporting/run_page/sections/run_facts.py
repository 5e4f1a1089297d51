"""What was run: bench, host, devices, load, phases, and what ties the page to its run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_thermal.findings.subjects import in_order
from pytest_thermal.reporting.run_page.curves import event_words, extent
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import elapsed, length, utc
from pytest_thermal.reporting.run_page.subject import Subject
from pytest_thermal.reporting.run_page.tables import table

MOST_EVENTS = 300
_DRIVER_WORDS = ("driver", "firmware", "vbios", "bios", "board")


def run_facts(subject: Subject) -> Markup:
    """A list of facts, and the events."""
    words = subject.words
    rows = [
        joined(tag("dt", words(key)), tag("dd", *_lines(value)))
        for key, value in _facts(subject)
        if value not in (None, "", [], ())
    ]
    return tag("section", tag("h2", words("what_was_run")), tag("dl", *rows), _events(subject), id="run")


def _lines(value: object) -> Iterator[Markup]:
    for line in value if isinstance(value, (list, tuple)) else (value,):
        yield tag("div", line)


def _facts(subject: Subject) -> Iterator[tuple[str, object]]:
    words, recording, facts = subject.words, subject.recording, subject.recording.facts
    host = _mapping(facts.get("host"))
    if facts:
        yield "bench", facts.get("bench") or words("unknown")
    else:
        yield "log", recording.path.name
    simulated = tag("strong", words("simulated")) if subject.simulated else words("measured")
    yield "evidence", simulated
    yield "host", host.get("name")
    yield "product", _joined(host.get("product"), host.get("board"))
    yield "system", _joined(host.get("system"), host.get("kernel"), host.get("container"))
    cores = host.get("cpus")
    yield "processor", _joined(host.get("cpu"), f"× {cores}" if cores else None)
    memory = host.get("memory_bytes")
    yield "memory", f"{memory / 2**30:.0f} GiB" if isinstance(memory, (int, float)) else None
    yield "drivers", _drivers(facts, host)
    yield "devices", _devices(subject)
    yield "load", _load(facts)
    yield "gateways", [f"{name}: {url}" for name, url in _mapping(facts.get("gateways")).items()]
    yield "started", utc(facts.get("start_seconds")) if facts else None
    yield "ended", utc(facts.get("end_seconds")) if facts else None
    yield "state", _joined(recording.state, facts.get("ended_because"))
    yield "phases", list(_phases(subject))
    against = _mapping(subject.summary.get("against"))
    if against:
        why = against.get("why")
        yield "against", [str(against.get("run") or words("none")), *map(str, why if isinstance(why, list) else ())]
    yield "versions", ", ".join(f"{name} {version}" for name, version in _mapping(facts.get("versions")).items())
    for name, value in _mapping(facts.get("metadata")).items():
        yield "note", f"{name}: {value}"
    if subject.fingerprint:
        yield "fingerprint", tag("code", subject.fingerprint)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part)


def _drivers(facts: Mapping[str, Any], host: Mapping[str, Any]) -> list[str]:
    """Versions of what stands between the devices and their readings, wherever the run noted them."""
    found = [f"BIOS {host['bios']}"] if host.get("bios") else []
    for name, source in _mapping(facts.get("sources")).items():
        for key, value in _mapping(source).items():
            if any(word in key for word in _DRIVER_WORDS) and isinstance(value, (str, int, float)):
                found.append(f"{name}: {key.replace('_', ' ')} {value}")
    for key, value in facts.items():
        if any(word in key for word in _DRIVER_WORDS):
            told = _mapping(value).items() if isinstance(value, Mapping) else [(key, value)]
            found += [f"{name} {version}" for name, version in told]
    return found


def _devices(subject: Subject) -> list[str]:
    """Each device with what it is known by; alike ones together."""
    groups: dict[str, list[str]] = {}
    for sensor in in_order(series.sensor for series in subject.recording.series.values()):
        known = sensor.identity if sensor.identity != sensor.device else ""
        names = groups.setdefault(f"{known}|{sensor.source}", [])
        if sensor.device not in names:
            names.append(sensor.device)
    lines: dict[str, str] = {}
    for key, names in groups.items():
        identity, _, source = key.partition("|")
        for name in names:
            lines.setdefault(name, f"{name}{': ' if identity else ''}{identity} ({source})")
    return list(lines.values())


def _load(facts: Mapping[str, Any]) -> list[str]:
    load = _mapping(facts.get("load"))
    told = [f"{name.replace('_', ' ')} {value}" for name, value in load.items() if value not in (None, "", {}, [])]
    works = facts.get("works")
    tools = [
        f"{work.get('kind')}: {work.get('tool')}"
        for work in (works if isinstance(works, list) else ())
        if isinstance(work, Mapping) and work.get("tool")
    ]
    return [", ".join(told), *tools] if told else tools


def _phases(subject: Subject) -> Iterator[str]:
    start, _ = extent(subject.recording)
    plan = _mapping(_mapping(subject.recording.facts.get("plan")).get("seconds"))
    for phase in subject.recording.phases:
        lasted = phase.duration_seconds / subject.time_scale
        text = f"{subject.words(f'phase_{phase.name}')}: {length(lasted)}"
        if phase.name in plan:
            text += f" ({subject.words('planned', seconds=length(plan[phase.name]))})"
        yield f"{text}, {elapsed(phase.start_seconds - start)} – {elapsed(phase.end_seconds - start)}"


def _events(subject: Subject) -> Markup | None:
    words, events = subject.words, subject.recording.events
    if not events:
        return None
    start, _ = extent(subject.recording)
    shown = events[:MOST_EVENTS]
    rows: list[list[object]] = [
        [elapsed(event.time_seconds - start), event.kind, event_words(event.detail, words)] for event in shown
    ]
    if len(events) > len(shown):
        rows.append(["", "", words("and_more", count=len(events) - len(shown))])
    return tag(
        "details",
        tag("summary", words("events", count=len(events))),
        table([words("time"), words("event"), words("seen")], rows),
    )
