"""The key as an `Authorization` header, and why it may not fit into one."""

from __future__ import annotations

from collections.abc import Generator

import httpx
from pydantic import SecretStr

from pytest_thermal.model.said import say


class KeyAuth(httpx.Auth):
    """Sends ``Authorization: Bearer <key>`` to the origin of ``base_url`` and nowhere else; its repr shows no key."""

    def __init__(self, key: SecretStr, *, base_url: str) -> None:
        self._key = key
        self._origin = _origin(httpx.URL(base_url))

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header. Of redirects httpx itself takes care: it drops the header where they leave the origin."""
        if _origin(request.url) == self._origin:
            request.headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        yield request

    def __repr__(self) -> str:
        return "KeyAuth(**********)"


def unsendable(key: SecretStr) -> str | None:
    """Why ``key`` cannot stand in a header (RFC 9110 field value: visible ASCII), or None; never quotes the key."""
    text = key.get_secret_value()
    if not text.strip():
        return say("it is empty")
    if not text.isascii():
        return say("it holds characters that are not ASCII (a full-width character, a typographic dash or quote?)")
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        return say("it holds a line break or another control character")
    if text != text.strip():
        return say("there is white space around it")
    return None


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
