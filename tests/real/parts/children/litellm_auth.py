"""Which keys our LiteLLM proxy takes; copied beside its configuration, loaded by the proxy itself.

A key is `<root>-<kind>-<serial>`: the root is the session's secret, the kind says what is limited, and the
serial gives every test a key of its own whose minute nobody else has used up.
"""

from __future__ import annotations

import os

from fastapi import Request  # type: ignore[import-not-found,unused-ignore]
from litellm.proxy._types import (  # type: ignore[import-not-found,unused-ignore]
    ProxyException,
    UserAPIKeyAuth,
)

_LIMITS: dict[str, dict[str, int]] = {
    "full": {},
    "requests": {"rpm_limit": 3},
    "tokens": {"tpm_limit": 60},
    "parallel": {"max_parallel_requests": 1},
}


async def user_api_key_auth(request: Request, api_key: str | None) -> UserAPIKeyAuth:
    """The limits of this key, or a 401."""
    root, kind, *_ = [*(api_key or "").rsplit("-", 2), ""]
    if root != os.environ["GATEWAY_KEY_ROOT"] or kind not in _LIMITS:
        seen = f"Received API Key = sk-...{api_key[-4:]}" if api_key else "No api key passed in."
        raise ProxyException(
            message=f"Authentication Error, {seen}",
            type="auth_error",
            param="key",
            code=401,
        )
    return UserAPIKeyAuth(api_key=api_key, **_LIMITS[kind])
