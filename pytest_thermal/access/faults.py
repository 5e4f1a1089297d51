"""From a fault of transport (no answer, or not a whole one) to its layer, its likely cause, and what to try next."""

from __future__ import annotations

import re

from pytest_thermal.access.case import Diagnosis, Setting
from pytest_thermal.access.reading import quote
from pytest_thermal.model.said import say
from pytest_thermal.transport import Exchange, Fault, Route


def from_fault(exchange: Exchange, fault: Fault, setting: Setting) -> Diagnosis:
    """The layer and the words for a fault of transport."""
    what = say("{status_line} from {line}", status_line=exchange.status_line, line=exchange.line)
    layer = "http" if setting.endpoint == "models" else setting.endpoint
    if fault is Fault.UNSENDABLE:
        return Diagnosis(
            layer="key" if setting.domain.key else layer,
            seen=say("the request could not be formed ({fault_text})", fault_text=exchange.fault_text),
            likely=say("{key_text} holds a character that cannot stand in a header", key_text=setting.key_text),
            advice=say(
                "set {key_origin} again, copied as plain ASCII without quotes or line breaks",
                key_origin=setting.domain.key_origin,
            ),
        )
    if fault is Fault.PROXY and setting.route.proxy is not None:
        return proxy_refused(exchange.fault_text, setting.route)
    if fault in _OUTER:
        hop = setting.route.proxy.shown if setting.route.proxy else setting.route.origin
        return Diagnosis(
            layer=_OUTER[fault],
            seen=say("{what}, although {hop} answered earlier in this run", what=what, hop=hop),
            likely=say("the gateway went down or was restarted during the run"),
            advice=say("look at the gateway's own log and uptime, then run again"),
        )
    if fault is Fault.NOT_HTTP:
        return Diagnosis(
            layer="http",
            seen=say(
                "something that is not HTTP answers at {route_origin} ({fault_text})",
                route_origin=setting.route.origin,
                fault_text=quote(exchange.fault_text),
            ),
            likely=say(
                "the port belongs to another service (SSH, gRPC, a database), or it speaks HTTPS and the "
                "address says http"
            ),
            advice=say(
                "check the port in base_url: ss -ltnp on {host}; try https:// in the address", host=setting.route.host
            ),
        )
    return _broken_answer(exchange, fault, setting, layer)


_OUTER = {
    Fault.RESOLVE: "name",
    Fault.REFUSED: "connection",
    Fault.UNREACHABLE: "connection",
    Fault.CONNECT_TIMEOUT: "connection",
    Fault.TLS: "tls",
    Fault.PROXY: "http",
}


def _broken_answer(exchange: Exchange, fault: Fault, setting: Setting, layer: str) -> Diagnosis:
    """The connection stood, and the answer did not come, or not whole."""
    front = layer == "http"
    curl = say(
        "curl -v -m 5 {base_url}/models on the gateway's own machine, and its log", base_url=setting.domain.base_url
    )
    if fault is Fault.SILENCE:
        return Diagnosis(
            layer=layer,
            seen=say(
                "no answer to {line} in {latency_seconds:.1f} s, though the connection stands",
                line=exchange.line,
                latency_seconds=exchange.latency_seconds,
            ),
            likely=say("the gateway process hangs, or a balancer in front holds a dead backend")
            if front
            else say("the engine behind the gateway hangs: loading, out of memory, or stuck on an earlier request"),
            advice=curl,
        )
    if fault is Fault.SLOW:
        return Diagnosis(
            layer=layer,
            seen=say("the answer to {line} was {fault_text}", line=exchange.line, fault_text=exchange.fault_text),
            likely=say(
                "something on the way lets the bytes through one by one: a firewall that inspects them, "
                "a limit on bandwidth"
            )
            if front
            else say(
                "the request waits in a queue, and the gateway sends blanks meanwhile; or something on "
                "the way lets the bytes through one by one"
            ),
            advice=curl,
        )
    if fault is Fault.OVERSIZE:
        return Diagnosis(
            layer=layer,
            seen=say(
                "the answer to {line} is {fault_text}, and was not read to its end",
                line=exchange.line,
                fault_text=exchange.fault_text,
            ),
            likely=say(
                "another service answers at this address (a download, a log), or the gateway ignores max_tokens"
            ),
            advice=say("curl -v {base_url}/models | head -c 1000", base_url=setting.domain.base_url),
        )
    if fault in (Fault.CLOSED, Fault.RESET):
        return Diagnosis(
            layer=layer,
            seen=say("the connection was closed without an answer to {line}", line=exchange.line),
            likely=say(
                "a firewall or balancer with no live backend, a port that expects TLS, or a crash on this request"
            )
            if front
            else say("the gateway or its engine crashed on this request"),
            advice=say("the gateway's log at this minute; try https:// in the address")
            if front
            else say("the gateway's and the engine's log at this minute"),
        )
    if fault is Fault.CUT:
        return Diagnosis(
            layer=layer,
            seen=say(
                "the answer to {line} broke off after {count} bytes: {fault_text}",
                line=exchange.line,
                count=len(exchange.body),
                fault_text=exchange.fault_text,
            ),
            likely=say("the gateway or a proxy between closed it: a crash, or a timeout or size limit on the way"),
            advice=say("the logs of the gateway and of each proxy at this minute"),
        )
    return Diagnosis(
        layer=layer,
        seen=say("{status_line} from {line}", status_line=exchange.status_line, line=exchange.line),
        likely=say("the network, this machine or a server on the way refused the exchange"),
        advice=say("curl -v {base_url}/models from this machine", base_url=setting.domain.base_url),
    )


def proxy_refused(answer: str, route: Route) -> Diagnosis:
    """The proxy on the way opened no tunnel; ``answer`` is its status line."""
    status = re.search(r"\b[45]\d\d\b", answer)
    likely = {
        "407": say("the proxy wants a login of its own"),
        "403": say("the proxy's rules do not let this bench through to the gateway"),
    }.get(
        status.group() if status else "", say("the proxy cannot reach the gateway, or does not let this bench through")
    )
    return Diagnosis(
        layer="http",
        seen=say(
            "the proxy {proxy} opens no way to {host}: {answer}",
            proxy=route.proxy.shown if route.proxy else "",
            host=route.host,
            answer=quote(answer),
        ),
        likely=likely,
        advice=say("if {host} is reached directly, add it to $no_proxy; else ", host=route.host)
        + (
            say("put user and password into the proxy's address")
            if "407" in answer
            else say("ask for the proxy's rule")
        ),
    )
