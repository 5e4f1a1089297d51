"""Which certificates are trusted: one answer for the TLS probe and for every client."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import certifi


def tls_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """A verifying client context that trusts the system's store, certifi's, and what ``environ`` adds.

    The system's store (or ``$SSL_CERT_FILE``, ``$SSL_CERT_DIR``) holds a site's own issuer, which certifi
    does not know; certifi serves machines whose Python sees no system store. Raises OSError where a file that
    ``environ`` names cannot be read, since a trust that silently lacks it would blame the gateway.
    """
    context = ssl.create_default_context()
    context.load_verify_locations(cafile=certifi.where())
    file, folder = environ.get("SSL_CERT_FILE") or None, environ.get("SSL_CERT_DIR") or None
    if file or folder:
        context.load_verify_locations(cafile=file, capath=folder)
    return context
