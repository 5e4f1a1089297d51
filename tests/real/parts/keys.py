"""Keys that can be told from any other text, so that a search for them proves something."""

from __future__ import annotations

import secrets


def fresh_key(label: str) -> str:
    """A new key such as `sk-canary-llama-…`; no two are alike and none is a key anywhere else."""
    return f"sk-canary-{label}-{secrets.token_hex(12)}"
