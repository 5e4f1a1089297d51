"""A name server that answers each name under gateway.test in its own way: `python names.py ADDRESS PORT`."""

from __future__ import annotations

import socket
import struct
import sys

_A, _AAAA = 1, 28
_SERVFAIL, _NXDOMAIN, _REFUSED = 2, 3, 5
_CODES = {"servfail": _SERVFAIL, "nxdomain": _NXDOMAIN, "refused": _REFUSED}
_ADDRESSES = {
    ("here", _A): socket.inet_aton("127.0.0.1"),
    ("here6", _AAAA): socket.inet_pton(socket.AF_INET6, "::1"),
}
_LIFETIME_SECONDS = 1
_NAME_IN_THE_QUESTION = 0xC00C  # a pointer to its offset in the message


def answer(query: bytes) -> bytes | None:
    """The reply to a query with one question; None is silence. An unlisted name has no addresses."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
        at += 1 + query[at]
    question = query[12 : at + 5]
    (kind,) = struct.unpack("!H", query[at + 1 : at + 3])
    host = labels[0]
    if host == "silent":
        return None
    address = _ADDRESSES.get((host, kind))
    code = _CODES.get(host, 0) if labels[1:] == ["gateway", "test"] else _NXDOMAIN
    (flags,) = struct.unpack("!H", query[2:4])
    header = query[:2] + struct.pack("!HHHHH", 0x8480 | (flags & 0x0100) | code, 1, 0 if address is None else 1, 0, 0)
    if address is None:
        return header + question
    record = struct.pack("!HHHIH", _NAME_IN_THE_QUESTION, kind, 1, _LIFETIME_SECONDS, len(address))
    return header + question + record + address


def main(address: str, port: int) -> None:
    """Answer until killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, port))
        sys.stdout.write("answering names\n")
        sys.stdout.flush()
        while True:
            query, asker = server.recvfrom(1232)
            try:
                reply = answer(query)
            except (IndexError, struct.error):
                continue  # not a query
            if reply is not None:
                server.sendto(reply, asker)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
