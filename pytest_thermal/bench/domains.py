"""The scale-up domains of a bench: one way in each, with what it inherits from the bench."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_thermal.bench.candidates import Candidate, Findings
from pytest_thermal.bench.dialects import DOMAIN, Place
from pytest_thermal.bench.files import CONFIG, SETTINGS
from pytest_thermal.bench.merge import Merge, of_setting
from pytest_thermal.bench.model import Domain, ModelRoute
from pytest_thermal.model.said import say

_INHERITED: Final = ("base_url", "key", "route.default", "route.fallback")
_OWN: Final = ("interconnect", "latency_target_us", "memory_pool")


@dataclass(frozen=True, kw_only=True)
class Domains:
    """The domains, and where their settings came from."""

    domains: tuple[Domain, ...]
    origins: dict[str, str]


def build_domains(
    count: int, *, findings: Findings, merge: Merge, only_name: tuple[str, str], files: Sequence[str], complete: bool
) -> Domains:
    """Build the `count` domains of the files; a bench with one that has no name gets `only_name` (name, origin).

    What is missing or contradictory goes into the findings' problems. `complete` says that every file could be read,
    so that what is missing is really missing.
    """
    single = count <= 1
    names = _names(max(count, 1), findings, merge, only_name)
    domains: list[Domain] = []
    origins: dict[str, str] = {}
    shared = {setting: of_setting(setting, findings.candidates) for setting in _INHERITED}
    for index, (name, name_origin) in enumerate(names):
        own = {
            setting: [one for one in of_setting(DOMAIN + setting, findings.candidates) if one.index == index]
            for setting in (*_INHERITED, *_OWN)
        }
        found = {
            **{setting: merge.pick(f"domains.{name}.{setting}", own[setting]) for setting in _OWN},
            **(_one_way_in(own, shared, merge) if single else _own_or_shared(name, own, shared, merge)),
        }
        origins |= {f"domains.{name}.{setting}": one.origin if one else "default" for setting, one in found.items()}
        origins[f"domains.{name}.name"] = name_origin
        if found["base_url"] is not None:
            domains.append(_domain(name, found))
        elif complete and not findings.failed & {"base_url", f"{DOMAIN}base_url"}:
            _add_missing_address(name, None if single else index, files, findings)
    for setting in _INHERITED:
        first = shared[setting][0].origin if shared[setting] else "default"
        origins[setting] = origins[f"domains.{names[0][0]}.{setting}"] if single else first
    return Domains(domains=tuple(domains), origins=origins)


_Lists = dict[str, list[Candidate]]


def _one_way_in(own: _Lists, shared: _Lists, merge: Merge) -> dict[str, Candidate | None]:
    """With one domain, its own keys and the bench's are places for the same thing."""
    return {
        setting: merge.pick(
            setting,
            [
                *(one for one in shared[setting] if one.override),
                *own[setting],
                *(one for one in shared[setting] if not one.override),
            ],
        )
        for setting in _INHERITED
    }


def _own_or_shared(name: str, own: _Lists, shared: _Lists, merge: Merge) -> dict[str, Candidate | None]:
    """With several, the bench's keys are for those domains that have none of their own."""
    found: dict[str, Candidate | None] = {}
    for setting in _INHERITED:
        overrides = [one for one in shared[setting] if one.override]
        if own[setting]:
            found[setting] = merge.pick(f"domains.{name}.{setting}", [*overrides, *own[setting]])
        elif setting == "route.fallback" and own["route.default"] and not overrides:
            found[setting] = None  # a domain that serves other models need not serve the bench's fallback
        else:
            found[setting] = merge.pick(setting, shared[setting])
    return found


def _domain(name: str, found: dict[str, Candidate | None]) -> Domain:
    value = {setting: one.value for setting, one in found.items() if one is not None}
    key = found["key"]
    return Domain.model_validate(
        {
            "name": name,
            "base_url": value["base_url"],
            "key": value.get("key"),
            "key_origin": key.key_origin if key else "none",
            "route": ModelRoute.model_validate(
                {"default": value.get("route.default"), "fallback": value.get("route.fallback")}
            ),
            **{setting: value.get(setting) for setting in _OWN},
        }
    )


def _names(count: int, findings: Findings, merge: Merge, only_name: tuple[str, str]) -> list[tuple[str, str]]:
    """Name and origin of each domain: fit for a test's id, and each only once."""
    names: list[tuple[str, str]] = []
    given = of_setting(f"{DOMAIN}name", findings.candidates)
    for index in range(count):
        fallback = only_name if count == 1 else (f"domain{index}", "default")
        own = merge.pick(
            say("the name of [[scale_up]] #{index}", index=index + 1), [one for one in given if one.index == index]
        )
        said, origin = (str(own.value), own.origin) if own else fallback
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", said.strip())
        if not re.search(r"[A-Za-z0-9]", name):
            name = f"domain{index}"  # of a name in another script nothing would be left
        if name != said:
            merge.remarks.append(
                say('{origin}: the domain "{said}" is called {name} in test ids', origin=origin, said=said, name=name)
            )
        taken = next((number for number, (other, _) in enumerate(names) if other == name), None)
        if taken is not None:
            place = Place(file=CONFIG, path=("scale_up", "name"), index=index)
            findings.add_problem(
                place.where,
                say("the domain's name {name} is that of [[scale_up]] #{taken} too", name=name, taken=taken + 1),
                say("a table was copied, or the names differ only in characters that a test id cannot have"),
                say("give each domain a name of its own, of letters, digits, _ . and -"),
            )
        names.append((name, origin))
    return names


def _add_missing_address(name: str, index: int | None, files: Sequence[str], findings: Findings) -> None:
    if index is not None:
        findings.add_problem(
            Place(file=CONFIG, path=("scale_up",), index=index).where,
            say("the domain {name} has no address, and the bench has none that it could inherit", name=name),
            say("its api_base was forgotten"),
            say('api_base = "https://gateway.example/v1" in this [[scale_up]], or api_endpoint in settings.json'),
        )
        return
    remedy = (
        say('"api": {"base_url": "http://127.0.0.1:8000/v1"}, or "api_endpoint" at the top level')
        if SETTINGS in files
        else say('[api] base_url = "http://127.0.0.1:8000/v1", or [token_scheduler] api_base')
    )
    findings.add_problem(
        " and ".join(files),
        say("no address of the API: none of api.base_url, api_endpoint, [api] base_url, [token_scheduler] api_base"),
        say("the address was forgotten, or the file that holds it is not in this folder"),
        remedy,
    )
