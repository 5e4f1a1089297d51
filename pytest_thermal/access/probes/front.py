"""HTTP, key, model list: what the gateway's own front says before an engine is asked."""

from __future__ import annotations

import difflib
import socket
import time
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.reading import describe, model_ids, transcript
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.bench import describe_key
from pytest_thermal.model import is_outside
from pytest_thermal.model.said import joined, say
from pytest_thermal.transport import Exchange, Fault, exchange, unsendable
from pytest_thermal.transport.dates import http_date

CLOCK_SKEW_SECONDS = 60
PATHS_SECONDS = 15.0
"""For all other paths together."""
BANNER_SECONDS = 1.0
COMMON_PREFIXES = ("", "/api", "/openai", "/llm", "/gateway", "/gw", "/ai")


def http(gateway: Gateway) -> Verdict:
    """Something answers in HTTP, and it is the gateway: no proxy's page, no 5xx, no silence."""
    # A key that fits into no header stops the request on this side; the next layer says so.
    answer = gateway.models_without_key if _unsendable(gateway) else gateway.models
    found = gateway.diagnose(_with_banner(gateway, answer), "models")
    if found is not None and not is_outside("http", found.layer):
        # A page with 200 is also what a console says to every path that is not its API's.
        return (_path_verdict(gateway, answer) if answer.ok and answer.is_html else None) or found.verdict(answer)
    server = answer.headers.get("server", "")
    return passed(
        say("{status_line} from {answer}", status_line=answer.status_line, answer=answer.line)
        + (say(", server: {server}", server=server[:40]) if server else ""),
        warnings=_clock_warning(answer),
        status=answer.status,
        server=server[:80],
        latency_ms=round(answer.latency_seconds * 1000, 1),
    )


def key(gateway: Gateway) -> Verdict:
    """The gateway takes this bench's key, shown by an answer that it does not give without one."""
    reason = _unsendable(gateway)
    if reason:
        return failed(
            say(
                "the key in {key_origin} ({describe_key}) cannot be sent: {reason}",
                key_origin=gateway.domain.key_origin,
                describe_key=describe_key(gateway.domain.key),
                reason=reason,
            ),
            likely=say("it was copied from a document or a terminal that changed or wrapped it"),
            advice=say(
                "set {key_origin} again: plain ASCII, one line, no quotes", key_origin=gateway.domain.key_origin
            ),
        )
    answer = gateway.models
    found = gateway.diagnose(answer, "models")
    if found is not None and found.layer == "models":
        other = _answering_elsewhere(gateway)
        if other is not None and other.ok:
            answer, found = other, gateway.diagnose(other, "models")
    if found is not None and found.layer in ("key", "quota"):
        return found.verdict(answer)
    if found is None and not _open_to_all(gateway, answer):
        return _good(gateway, say("{answer} answers with it and not without it", answer=answer.line), answer)
    return _key_by_chat(gateway, answer)


def models(gateway: Gateway) -> Verdict:
    """`GET /v1/models` answers 200 with a list in OpenAI's form."""
    answer = gateway.models
    found = gateway.diagnose(answer, "models")
    if found is not None:
        return _path_verdict(gateway, answer) or found.verdict(answer)
    listed = model_ids(answer.json)
    if listed is None:
        return failed(
            say(
                "{status_line} from {answer} is no model list ({shape})",
                status_line=answer.status_line,
                answer=answer.line,
                shape=_shape(answer),
            ),
            likely=say("another API answers at this address (a native engine's, or a console's)"),
            advice=say(
                "compare base_url {base_url} with the gateway's OpenAI-compatible address",
                base_url=gateway.domain.base_url,
            ),
            transcript=transcript(answer),
        )
    if not listed:
        return failed(
            say("{answer} lists no model", answer=answer.line),
            likely=say("no engine has registered with the gateway, or the key's project may use none"),
            advice=say("look at the gateway's engines; give the key's project a model"),
            transcript=transcript(answer),
        )
    warnings: tuple[str, ...] = ()
    if answer.content_type != "application/json":
        warnings = (
            say(
                "the list is labelled {content_type}, not application/json",
                content_type=answer.content_type or say("with no type"),
            ),
        )
    return passed(
        say("{count} listed: {some}", count=len(listed), some=_some(listed)),
        warnings=warnings,
        models=joined(", ", listed[:50]),
    )


def models_route_default(gateway: Gateway) -> Verdict:
    """The default model of `model_route` is listed."""
    return _route(gateway, "default", gateway.domain.route.default)


def models_route_fallback(gateway: Gateway) -> Verdict:
    """The fallback model of `model_route` is listed."""
    return _route(gateway, "fallback", gateway.domain.route.fallback)


def _route(gateway: Gateway, which: str, wanted: str | None) -> Verdict:
    if not wanted:
        return skipped(say("the bench names no {which} model", which=which))
    listed = model_ids(gateway.models.json) or []
    if wanted in listed:
        return passed(say("{which} model {wanted!r} is listed", which=which, wanted=wanted))
    nearest = difflib.get_close_matches(wanted, listed, n=1, cutoff=0.4)
    same = [name for name in listed if name.lower() == wanted.lower() or name.split("/")[-1] == wanted.split("/")[-1]]
    near = same or nearest
    return failed(
        say("{which} model {wanted!r} is not among the {count} listed", which=which, wanted=wanted, count=len(listed))
        + (say("; nearest is {near!r}", near=near[0]) if near else say(": {some}", some=_some(listed))),
        likely=say("a spelling mistake in the route")
        if near
        else say("it is not deployed here, or this key's project may not use it"),
        advice=(say("{near!r} as {which} model in the bench file, or ", near=near[0], which=which) if near else "")
        + say("deploy {wanted!r}, or give the key's project access to it", wanted=wanted),
        transcript=transcript(gateway.models),
        listed=joined(", ", listed[:50]),
    )


# --- the key -------------------------------------------------------------------------------------------------


def _unsendable(gateway: Gateway) -> str | None:
    return unsendable(gateway.domain.key) if gateway.domain.key is not None else None


def _with_banner(gateway: Gateway, answer: Exchange) -> Exchange:
    """The exchange, but told as "not HTTP" where the port greets whoever connects, as SSH, SMTP or a database does.

    Such a service closes on our request before its greeting is read.
    """
    if answer.fault not in (Fault.CLOSED, Fault.RESET) or gateway.route.uses_tls or gateway.route.proxy:
        return answer
    try:
        with socket.create_connection(gateway.route.hop, timeout=gateway.connect_seconds) as sock:
            sock.settimeout(BANNER_SECONDS)
            greeting = sock.recv(200)
    except OSError:
        return answer
    if not greeting:
        return answer
    return replace(answer, fault=Fault.NOT_HTTP, fault_text=greeting.decode("latin-1"))


def _good(gateway: Gateway, how: str, answer: Exchange) -> Verdict:
    gateway.key_proven = True
    return passed(
        say(
            "{describe_key} from {key_origin} is good: {how}",
            describe_key=describe_key(gateway.domain.key),
            key_origin=gateway.domain.key_origin,
            how=how,
        ),
        status=answer.status,
        key_origin=gateway.domain.key_origin,
    )


def _open_to_all(gateway: Gateway, answer: Exchange) -> bool:
    """Whether the model list says nothing about the key: it comes without one too, or it failed just then."""
    if gateway.domain.key is None:
        return True
    bare = (
        gateway.models_without_key
        if answer is gateway.models
        else exchange(gateway.client, "GET", answer.url, auth=None, read_seconds=gateway.answer_seconds)
    )
    return _is_failure(bare) or gateway.diagnose(bare, "models") is None


def _is_failure(answer: Exchange) -> bool:
    """Whether an answer (or none) comes from a gateway in trouble, so that it says nothing about the key."""
    return answer.fault is not None or answer.status in (408, 429, 502, 503, 504)


def _key_by_chat(gateway: Gateway, listing: Exchange) -> Verdict:
    """The model list is open, or fails for everyone: let a minimal chat decide."""
    if not listing.ok and listing.status in (404, 405, 410, 501) and gateway.domain.route.default is None:
        return skipped(
            say("not proven: {describe}, and the bench names no model to ask for", describe=describe(listing))
        )
    answer = gateway.chat
    found = gateway.diagnose(answer, "chat")
    if found is not None and found.layer in ("key", "quota"):
        return found.verdict(answer)
    if found is not None and not answer.ok:
        # Not the key's fault; the layer at fault speaks for itself further in.
        return skipped(say("not proven: the model list is open, and {describe}", describe=describe(answer)))
    if gateway.domain.key is None:
        return skipped(say("the bench names no key, and this gateway asks for none"))
    bare = gateway.chat_without_key
    if gateway.diagnose(bare, "chat") is None:
        return skipped(say("not proven: this gateway checks no key; a chat without one is answered too"))
    if _is_failure(bare):
        raise CannotMeasure(
            say(
                "the model list is open, and a chat without the key ended in: {status_line}",
                status_line=bare.status_line,
            ),
            likely=say("the gateway drops requests without a key, or failed just then"),
            advice=say("run again"),
        )
    return _good(
        gateway,
        say("{answer} answers with it and not without it (the model list is open to all)", answer=answer.line),
        answer,
    )


# --- the path ------------------------------------------------------------------------------------------------


def _candidates(base_url: str) -> list[str]:
    """Other places the API may be, on the same origin only, so that the key goes nowhere new."""
    parts = urlsplit(base_url)
    segments = [segment for segment in parts.path.split("/") if segment]
    version = segments[-1] if segments else "v1"
    above = segments[:-1]
    paths = ["/" + "/".join([*above[:depth], version]) for depth in range(len(above), -1, -1)]
    paths += ["/" + "/".join(above)] if above else [""]
    paths += [f"{prefix}/{name}" for prefix in COMMON_PREFIXES for name in dict.fromkeys((version, "v1"))]
    return [
        urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), "", ""))
        for path in dict.fromkeys(paths)
        if path.rstrip("/") != parts.path.rstrip("/")
    ]


def _answering_elsewhere(gateway: Gateway) -> Exchange | None:
    """The answer at another path that knows of models: a list, or else a refusal of the key. Remembered."""
    give_up = time.monotonic() + PATHS_SECONDS
    refusals = []
    for base in _candidates(gateway.domain.base_url):
        if base not in gateway.paths_tried:
            if time.monotonic() > give_up:
                break
            gateway.paths_tried[base] = exchange(
                gateway.client, "GET", base + "/models", read_seconds=gateway.answer_seconds
            )
        answer = gateway.paths_tried[base]
        if answer.ok and model_ids(answer.json):
            return answer
        if answer.status == 401 and not answer.is_html:
            refusals.append(answer)
    return refusals[0] if refusals else None


def _path_verdict(gateway: Gateway, answer: Exchange) -> Verdict | None:
    if answer.status not in (404, 405, 410, 501) and not (answer.ok and answer.is_html):
        return None
    other = _answering_elsewhere(gateway)
    if other is None:
        return None
    right = other.url.removesuffix("/models")
    here, there = (url.rstrip("/").count("/") for url in (gateway.domain.base_url, right))
    levels = abs(here - there)
    if here > there:
        amount = (
            say("1 level of path too many") if levels == 1 else say("{levels} levels of path too many", levels=levels)
        )
    else:
        amount = (
            say("1 level of path too few") if levels == 1 else say("{levels} levels of path too few", levels=levels)
        )
    return failed(
        say(
            "{describe}, but {status_line} from {other}",
            describe=describe(answer),
            status_line=other.status_line,
            other=other.line,
        ),
        # What came was a page for people; that the API is elsewhere only explains it.
        layer="http" if answer.ok else "models",
        likely=say("the address has {amount}", amount=amount) if levels else say("the address has another path"),
        advice=say(
            "base_url {right} instead of {base_url} (set in {get})",
            right=right,
            base_url=gateway.domain.base_url,
            get=gateway.bench.origins.get(f"domains.{gateway.domain.name}.base_url", say("the bench file")),
        ),
        transcript=transcript(answer),
        right_base_url=right,
    )


def _shape(answer: Exchange) -> str:
    data = answer.json
    if data is None:
        return say("{content_type}, not JSON", content_type=answer.content_type or say("no content type"))
    if isinstance(data, dict):
        return say("JSON with ") + (joined(", ", sorted(map(str, data))[:6]) or say("nothing in it"))
    return say("JSON {name}", name=type(data).__name__)


def _some(names: list[str]) -> str:
    return joined(", ", names[:5]) + (say(" and {count} more", count=len(names) - 5) if len(names) > 5 else "")


def _clock_warning(answer: Exchange) -> tuple[str, ...]:
    """The gateway's clock against ours, from its Date header: a skew breaks certificates, tokens and comparisons."""
    theirs = http_date(answer.headers.get("date", ""))
    if theirs is None:
        return ()
    # It was written while we waited; when, nobody knows.
    since = answer.started_unix_seconds
    skew = theirs.timestamp() - min(max(theirs.timestamp(), since), since + answer.latency_seconds)
    if abs(skew) < CLOCK_SKEW_SECONDS:
        return ()
    return (say("this machine's clock and the gateway's differ by {skew:.0f} s", skew=abs(skew)),)
