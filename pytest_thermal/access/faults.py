"""From a fault of transport (no answer, or not a whole one) to its layer, its likely cause, and what to try next."""

from __future__ import annotations

import re

from pytest_thermal.access.case import Diagnosis, Setting
from pytest_thermal.access.reading import quote
from pytest_thermal.transport import Exchange, Fault, Route


def from_fault(exchange: Exchange, fault: Fault, setting: Setting) -> Diagnosis:
    """The layer and the words for a fault of transport."""
    what = f"{exchange.status_line} from {exchange.line}"
    layer = "http" if setting.endpoint == "models" else setting.endpoint
    if fault is Fault.UNSENDABLE:
        return Diagnosis(
            layer="key" if setting.domain.key else layer,
            seen=f"the request could not be formed ({exchange.fault_text})",
            likely=f"{setting.key_text} holds a character that cannot stand in a header",
            advice=f"set {setting.domain.key_origin} again, copied as plain ASCII without quotes or line breaks",
        )
    if fault is Fault.PROXY and setting.route.proxy is not None:
        return proxy_refused(exchange.fault_text, setting.route)
    if fault in _OUTER:
        hop = setting.route.proxy.shown if setting.route.proxy else setting.route.origin
        return Diagnosis(
            layer=_OUTER[fault],
            seen=f"{what}, although {hop} answered earlier in this run",
            likely="the gateway went down or was restarted during the run",
            advice="look at the gateway's own log and uptime, then run again",
        )
    if fault is Fault.NOT_HTTP:
        return Diagnosis(
            layer="http",
            seen=f"something that is not HTTP answers at {setting.route.origin} ({quote(exchange.fault_text)})",
            likely="the port belongs to another service (SSH, gRPC, a database), or it speaks HTTPS and the address"
            " says http",
            advice=f"check the port in base_url: ss -ltnp on {setting.route.host}; try https:// in the address",
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
    curl = f"curl -v -m 5 {setting.domain.base_url}/models on the gateway's own machine, and its log"
    if fault is Fault.SILENCE:
        return Diagnosis(
            layer=layer,
            seen=f"no answer to {exchange.line} in {exchange.latency_seconds:.1f} s, though the connection stands",
            likely="the gateway process hangs, or a balancer in front holds a dead backend"
            if front
            else "the engine behind the gateway hangs: loading, out of memory, or stuck on an earlier request",
            advice=curl,
        )
    if fault is Fault.SLOW:
        return Diagnosis(
            layer=layer,
            seen=f"the answer to {exchange.line} was {exchange.fault_text}",
            likely="something on the way lets the bytes through one by one: a firewall that inspects them, a limit on"
            " bandwidth"
            if front
            else "the request waits in a queue, and the gateway sends blanks meanwhile; or something on the way lets"
            " the bytes through one by one",
            advice=curl,
        )
    if fault is Fault.OVERSIZE:
        return Diagnosis(
            layer=layer,
            seen=f"the answer to {exchange.line} is {exchange.fault_text}, and was not read to its end",
            likely="another service answers at this address (a download, a log), or the gateway ignores max_tokens",
            advice=f"curl -v {setting.domain.base_url}/models | head -c 1000",
        )
    if fault in (Fault.CLOSED, Fault.RESET):
        return Diagnosis(
            layer=layer,
            seen=f"the connection was closed without an answer to {exchange.line}",
            likely="a firewall or balancer with no live backend, a port that expects TLS, or a crash on this request"
            if front
            else "the gateway or its engine crashed on this request",
            advice="the gateway's log at this minute; try https:// in the address"
            if front
            else "the gateway's and the engine's log at this minute",
        )
    if fault is Fault.CUT:
        return Diagnosis(
            layer=layer,
            seen=f"the answer to {exchange.line} broke off after {len(exchange.body)} bytes: {exchange.fault_text}",
            likely="the gateway or a proxy between closed it: a crash, or a timeout or size limit on the way",
            advice="the logs of the gateway and of each proxy at this minute",
        )
    return Diagnosis(
        layer=layer,
        seen=f"{exchange.status_line} from {exchange.line}",
        likely="the network, this machine or a server on the way refused the exchange",
        advice=f"curl -v {setting.domain.base_url}/models from this machine",
    )


def proxy_refused(answer: str, route: Route) -> Diagnosis:
    """The proxy on the way opened no tunnel; ``answer`` is its status line."""
    status = re.search(r"\b[45]\d\d\b", answer)
    likely = {
        "407": "the proxy wants a login of its own",
        "403": "the proxy's rules do not let this bench through to the gateway",
    }.get(status.group() if status else "", "the proxy cannot reach the gateway, or does not let this bench through")
    return Diagnosis(
        layer="http",
        seen=f"the proxy {route.proxy.shown if route.proxy else ''} opens no way to {route.host}: {quote(answer)}",
        likely=likely,
        advice=f"if {route.host} is reached directly, add it to $no_proxy; else "
        + ("put user and password into the proxy's address" if "407" in answer else "ask for the proxy's rule"),
    )
