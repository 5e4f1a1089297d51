"""What goes over the wire: answers, and errors as OpenAI's API and the gateways before it shape them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

JSON = "application/json"
HTML = "text/html"
TEXT = "text/plain"

Json = dict[str, Any]

CertificateKind = Literal["good", "expired", "wrong-host", "unknown-issuer"]
"""What is wrong with a certificate, if anything."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One HTTP answer that is whole, not streamed."""

    status: int = 200
    body: bytes = b""
    media_type: str | None = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(data: object, *, status: int = 200, **headers: str) -> Answer:
    """JSON with the given status; `retry_after="3"` becomes the header `retry-after: 3`."""
    return Answer(status=status, body=json.dumps(data).encode(), headers=_named(headers))


def html_answer(title: str, *, status: int = 200, server: str = "nginx", **headers: str) -> Answer:
    """A page for people, like the one a proxy puts in the API's place."""
    page = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
        f"<hr><center>{server}</center>\r\n</body>\r\n</html>\r\n"
    )
    return Answer(status=status, body=page.encode(), media_type=HTML, headers=_named(headers))


def login_page() -> Answer:
    """Where a portal sends whoever is not signed in: HTML with status 200."""
    page = (
        "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in to continue</h1>"
        '<form method="post" action="/login"><input name="user"><input name="password" type="password">'
        "<button>Sign in</button></form></body></html>\n"
    )
    return Answer(body=page.encode(), media_type=HTML)


def text_answer(text: str, *, status: int, **headers: str) -> Answer:
    """Plain text, as proxies and crashed applications answer."""
    return Answer(status=status, body=text.encode(), media_type=TEXT, headers=_named(headers))


def empty_answer(status: int, **headers: str) -> Answer:
    """A status line and headers, and nothing else."""
    return Answer(status=status, media_type=None, headers=_named(headers))


def error_answer(
    status: int,
    message: str,
    *,
    type: str = "invalid_request_error",  # noqa: A002 - the wire's own word
    code: str | int | None = None,
    param: str | None = None,
    **headers: str,
) -> Answer:
    """An error in OpenAI's shape."""
    return json_answer(error_body(message, type=type, code=code, param=param), status=status, **headers)


def error_body(
    message: str,
    *,
    type: str = "invalid_request_error",  # noqa: A002 - the wire's own word
    code: str | int | None = None,
    param: str | None = None,
) -> Json:
    """The body of an error in OpenAI's shape, also sent within streams."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def model_not_found(model: str) -> Answer:
    """OpenAI's 404 for a model that is not there, or not for this key."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return error_answer(404, message, code="model_not_found")


def http_date(seconds_from_now: float = 0) -> str:
    """A date as HTTP headers write it, such as `Mon, 30 Nov 2026 07:14:48 GMT`."""
    import time  # noqa: PLC0415 - neither is needed before the first answer
    from email.utils import formatdate  # noqa: PLC0415

    return formatdate(time.time() + seconds_from_now, usegmt=True)


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
