"""What is written: nothing that a header's value could add to it."""

from __future__ import annotations

import pytest

from pytest_thermal.transport import Fault
from pytest_thermal.transport.fast.errors import LineError
from pytest_thermal.transport.fast.request import head_of, with_body


def test_a_request_as_bytes() -> None:
    head = head_of("POST", b"/v1/chat/completions?a=1", [("Host", "gateway:80"), (b"X-\xc3".decode("latin-1")[:2], "")])
    assert with_body(head, b"{}") == (
        b"POST /v1/chat/completions?a=1 HTTP/1.1\r\nHost: gateway:80\r\nX-: \r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(
    "method, target, name, value",
    [
        ("GET", b"/", "Authorization", "Bearer canary\r\nX-More: 1"),
        ("GET", b"/", "Authorization", "Bearer canary\n"),
        ("GET", b"/", "Authorization", "Bearer canary\0"),
        ("GET", b"/", "Authorization", " canary"),
        ("GET", b"/", "Authorization", "canary "),
        ("GET", b"/", "Authorization", "canary–"),
        ("GET", b"/", "X canary", "1"),
        ("GET", b"/", "X\r\ncanary", "1"),
        ("GET", b"/", "", "canary"),
        ("GET", b"/canary HTTP/1.1\r\nX: 1", "A", "1"),
        ("GET", b"/canary two", "A", "1"),
        ("GET", b"", "A", "canary"),
        ("GET canary", b"/", "A", "1"),
        ("GETcanary\r\n", b"/", "A", "1"),
    ],
)
def test_what_would_end_its_line_is_not_sent_and_not_quoted(method: str, target: bytes, name: str, value: str) -> None:
    with pytest.raises(LineError) as caught:
        head_of(method, target, [(name, value)])
    assert caught.value.fault is Fault.UNSENDABLE
    assert "canary" not in repr(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
