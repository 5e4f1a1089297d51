"""The key as an `Authorization` header, and why it may not fit into one."""

from __future__ import annotations

from collections.abc import Generator

import httpx
from pydantic import SecretStr


class KeyAuth(httpx.Auth):
    """Sends ``Authorization: Bearer <key>``; its repr shows no key."""

    def __init__(self, key: SecretStr) -> None:
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header to each request, the redirected and retried ones too."""
        request.headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        yield request

    def __repr__(self) -> str:
        return "KeyAuth(**********)"


def unsendable(key: SecretStr) -> str | None:
    """Why ``key`` cannot stand in a header (RFC 9110 field value: visible ASCII), or None; never quotes the key."""
    text = key.get_secret_value()
    if not text.isascii():
        return "it holds characters that are not ASCII (a full-width character, a typographic dash or quote?)"
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        return "it holds a line break or another control character"
    return None
