"""One shape for the address of a gateway, whatever part of it a person pasted."""

from __future__ import annotations

import difflib
import ipaddress
import re
from urllib.parse import quote, urlsplit

from pytest_thermal.bench.secrets import looks_like_key
from pytest_thermal.model.said import joined, say

_VERSION = re.compile(r"v\d+(\.\d+)?((alpha|beta|preview)\d*)?", re.IGNORECASE)
# First segments of the paths below the version: with one of them the address names a call, not the gateway.
_CALLS = frozenset(
    {
        "audio", "batches", "chat", "completions", "embeddings", "files", "fine_tuning", "images", "messages",
        "models", "moderations", "rerank", "responses",
    }
)  # fmt: skip
_WIDE = str.maketrans("：／．。", ":/..")  # what an input method for Chinese types
_DEVIATING = frozenset("ßς\u200c\u200d")  # IDNA 2003 and 2008 encode these differently: the host would be another
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def is_loopback(address: str) -> bool:
    """Whether an address leads to this very machine; where its looks do not tell, it does not."""
    try:
        host = (urlsplit(address).hostname or "").rstrip(".")
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def normalise_base_url(text: str) -> tuple[str, str | None]:
    """Bring an address into the form `scheme://host[:port]/path/v1`, without a trailing slash.

    A path that ends in a version segment (`v1`, `v3`, `v1beta`) keeps it, and so does one with a version further
    left (`/v1beta/openai`); to any other, `/v1` is appended.

    Returns:
        The address, and one sentence on what was corrected, or None.

    Raises:
        ValueError: It is no usable address, or it holds credentials. The message says why and shows none of them.
    """
    said: list[str] = []
    address = _trimmed(text, said)
    scheme, rest = _scheme(address, said)
    authority, path, tail = _split(rest)
    if tail:
        said.append(say("query and fragment removed"))  # not shown: people put keys there
    _refuse_key(authority, schemeless=scheme is None)
    host, port = _host_and_port(authority, said)
    if scheme is None:
        scheme = "http" if _is_near(host, port) and port != 443 else "https"
        said.append(say("{scheme}:// added", scheme=scheme))
    segments = _segments(path, said)
    url = f"{scheme}://{host}{'' if port is None else f':{port}'}/{'/'.join(segments)}"
    return url, say("{names}: {url}", names=joined(", ", said), url=url) if said else None


def normalise_server_url(text: str) -> tuple[str, str | None]:
    """The address of a Prometheus, without a trailing slash and without ``/api/v1…`` or the page ``/graph``.

    Returns:
        The address, and one sentence on what was corrected, or None.

    Raises:
        ValueError: As :func:`normalise_base_url`.
    """
    said: list[str] = []
    address = _trimmed(text, said)
    scheme, rest = _scheme(address, said)
    authority, path, tail = _split(rest)
    if tail:
        said.append("query and fragment removed")
    _refuse_key(authority, schemeless=scheme is None)
    host, port = _host_and_port(authority, said)
    if scheme is None:
        scheme = "http" if _is_near(host, port) and port != 443 else "https"
        said.append(f"{scheme}:// added")
    bare = re.sub(r"(?:/api(?:/v1(?:/.*)?)?|/(?:graph|query|targets))?/*$", "", f"/{path.strip('/')}").strip("/")
    if any(part in (".", "..") for part in bare.split("/")):
        raise ValueError("there is a . or .. in the path")
    if bare != path.strip("/"):
        said.append(f"/{path.strip('/').removeprefix(bare).strip('/')} removed")
    segments = "".join(f"/{quote(part, safe='%:@!$&()*+,;=~-._')}" for part in bare.split("/") if part)
    url = f"{scheme}://{host}{'' if port is None else f':{port}'}{segments}"
    return url, f"{', '.join(said)}: {url}" if said else None


def _trimmed(text: str, said: list[str]) -> str:
    address = text.strip()
    if len(address) > 1 and address[0] in "\"'<" and address[-1] in "\"'>":
        address = address[1:-1].strip()
    if address != text:
        said.append(say("surrounding spaces or quotes removed"))
    wide = address.translate(_WIDE)
    if wide != address:
        said.append(say("full-width punctuation replaced"))
    if not wide:
        raise ValueError(say("the address is empty"))
    if re.search(r"[\s\x00-\x1f\x7f]", wide):
        raise ValueError(say("there is a space or a control character inside the address"))
    return wide


def _scheme(address: str, said: list[str]) -> tuple[str | None, str]:
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(/+)", address) or re.match(r"()(//)", address)
    if not found:
        return None, address
    scheme, slashes, rest = found[1].lower(), found[2], address[found.end() :]
    if not scheme:
        return None, rest
    if scheme not in ("http", "https"):
        near = difflib.get_close_matches(scheme, ("https", "http"), n=1)
        raise ValueError(
            say("{scheme}:// is not http:// or https://", scheme=scheme)
            + (say("; {near}:// is near", near=near[0]) if near else "")
        )
    if slashes != "//":
        count = len(slashes)
        said.append(
            say("1 slash after {scheme}: made two", scheme=scheme)
            if count == 1
            else say("{count} slashes after {scheme}: made two", count=count, scheme=scheme)
        )
    if scheme != found[1]:
        said.append(say("scheme in lower case"))
    return scheme, rest


def _split(rest: str) -> tuple[str, str, str]:
    body, mark, tail = re.fullmatch(r"([^?#]*)([?#]?)(.*)", rest).groups()  # type: ignore[union-attr]
    authority, _, path = body.partition("/")
    if "@" in authority or ("@" in rest and not re.fullmatch(r"[^:]*(:\d{1,5})?|\[[^\]]*\](:\d{1,5})?", authority)):
        raise ValueError(
            say("user name or password in the address (not shown): the key belongs in the key's own setting")
        )
    return authority, path, mark + tail


def _refuse_key(authority: str, *, schemeless: bool) -> None:
    """A key that was pasted as the address would pass for a host name."""
    if re.search(r"[.:\[]", authority):
        return
    if re.match(r"sk-[A-Za-z0-9_-]{16}", authority) or (schemeless and looks_like_key(authority)):
        raise ValueError(
            say("this looks like a key (not shown), not like an address: it belongs in the key's own setting")
        )


def _host_and_port(authority: str, said: list[str]) -> tuple[str, int | None]:
    if found := re.fullmatch(r"\[([^\]]*)\](?::(.*))?", authority):
        host, port_text = f"[{_ipv6(found[1])}]", found[2]
    elif authority.count(":") > 1:
        raise ValueError(say("an IPv6 address stands in brackets: http://[::1]:8000/v1"))
    else:
        name, colon, after = authority.partition(":")
        host, port_text = _host(name, said), after if colon else None
    if port_text == "":
        said.append(say("colon without a port removed"))
    if not port_text:
        return host, None
    if not re.fullmatch(r"[0-9]+", port_text):
        raise ValueError(say("the port is not a number"))
    if not 1 <= int(port_text[:9]) <= 65535:
        raise ValueError(say("port {port_text} is not between 1 and 65535", port_text=port_text[:9]))
    return host, int(port_text)


def _ipv6(text: str) -> str:
    if "%" in text:
        raise ValueError(
            say("an IPv6 address with a zone (%eth0) cannot be used in a URL: take a global address or a name")
        )
    try:
        return ipaddress.IPv6Address(text).compressed
    except ValueError:
        raise ValueError(say("what stands in brackets is not an IPv6 address")) from None


def _host(name: str, said: list[str]) -> str:
    if not name:
        raise ValueError(say("the address has no host name"))
    host = name.lower()
    if not host.isascii():
        if set(host) & _DEVIATING:
            raise ValueError(say("this host name is encoded in more than one way: write its xn-- form"))
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise ValueError(say("the host name cannot be encoded for the DNS: write its xn-- form")) from None
    if re.fullmatch(r"[0-9.]+", host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError(say("{host} is not an IPv4 address", host=host)) from None
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.removesuffix(".").split(".")):
        raise ValueError(say("the host name has a character, a length or an empty part that no host name can have"))
    if host != name:
        said.append(
            say("host name in lower case")
            if name.isascii()
            else say("host name as the DNS knows it ({host})", host=host)
        )
    return host


def _is_near(host: str, port: int | None) -> bool:
    """Whether a host without a scheme is spoken to in plain http: by address, by port, or on this machine."""
    return port is not None or host == "localhost" or host.startswith("[") or bool(re.fullmatch(r"[0-9.]+", host))


def _segments(path: str, said: list[str]) -> list[str]:
    given = path.split("/")
    segments = [quote(segment, safe="%:@!$&'()*+,;=~-._") for segment in given if segment]
    if any(segment in (".", "..") for segment in segments):
        raise ValueError(say("there is a . or .. in the path"))
    if any(re.match(r"sk-[A-Za-z0-9_-]{16,}", segment) for segment in segments):
        raise ValueError(say("a key stands in the path (not shown): it belongs in the key's own setting"))
    if "" in given[:-1]:
        said.append(say("double slash removed"))
    if path and given[-1] == "":
        said.append(say("trailing slash removed"))
    versions = [index for index, segment in enumerate(segments) if _VERSION.fullmatch(segment)]
    after = versions[-1] + 1 if versions else 0
    call = next((index for index in range(after, len(segments)) if _names_call(segments, index, after)), None)
    if call is not None:
        said.append(say("/{names} removed", names="/".join(segments[call:])))
        segments = segments[:call]
    if not versions:
        said.append("/v1 appended")
        segments.append("v1")
    return segments


def _names_call(segments: list[str], index: int, after: int) -> bool:
    """Right behind a version any call's name counts; elsewhere only at the end: a path may hold such a word too."""
    if segments[index] not in _CALLS:
        return False
    return (index == after and after > 0) or segments[index:] in (
        ["chat", "completions"], ["completions"], ["models"], ["embeddings"], ["responses"], ["messages"],
    )  # fmt: skip
