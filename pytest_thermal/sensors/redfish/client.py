"""DMTF's Redfish client as we want it: certificates checked, nothing followed, nothing asked twice.

The library checks no certificate unless it is told to, follows redirects with the session's token, whoever they lead
to, and takes proxies and passwords from the environment and ``~/.netrc``. Imported where it is used: it is an extra.
"""

from __future__ import annotations

import logging
import os
import ssl
from typing import Any

import certifi
import requests.adapters
from redfish.rest.v1 import HttpClient, RestResponse

from pytest_thermal.transport.tls import tls_context

CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 3.0
"""For whatever has no deadline of its own, as the session's end."""


class Client(HttpClient):  # type: ignore[misc]  # ships no types
    """One service. Nothing is asked when it is made."""

    def __init__(self, base_url: str, *, ca: str | None) -> None:
        """Args tell who is asked.

        Args:
            base_url: Scheme, host and port.
            ca: File with the certificate that is trusted, instead of the system's.

        Raises:
            OSError: It cannot be read, or is no certificate.
        """
        # At INFO it tells whole answers, at DEBUG the session's token.
        logging.getLogger("redfish").setLevel(logging.WARNING)
        super().__init__(
            base_url=base_url,
            cafile=ca or certifi.where(),
            timeout=(CONNECT_SECONDS, CLOSE_SECONDS),
            max_retry=0,
            check_connectivity=False,
            https_adapter=_Adapter(_trust(ca)) if base_url.startswith("https:") else None,
        )
        self._session.trust_env = False

    def _rest_request(self, *args: Any, **more: Any) -> RestResponse:
        return super()._rest_request(*args, **{**more, "allow_redirects": False})


class _Adapter(requests.adapters.HTTPAdapter):
    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__()

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **{**more, "ssl_context": self._context})


def _trust(ca: str | None) -> ssl.SSLContext:
    if ca is None:
        return tls_context(os.environ)
    context = ssl.create_default_context(cafile=ca)
    # A BMC's own certificate is often all there is to trust, and seldom has all that newer Pythons ask of an issuer's.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
