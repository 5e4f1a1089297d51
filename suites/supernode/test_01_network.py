"""Name, connection, TLS: is the gateway reachable at all?"""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Access


@pytest.mark.critical
def test_name(access: Access) -> None:
    """The gateway's host name resolves on this machine."""
    access.require("name")


@pytest.mark.critical
def test_connection(access: Access) -> None:
    """The gateway accepts a TCP connection."""
    access.require("connection")


@pytest.mark.critical
def test_tls(access: Access) -> None:
    """The certificate is valid today, for this host, and from an issuer that this machine trusts."""
    access.require("tls")


@pytest.mark.advisory
def test_tls_lifetime(access: Access) -> None:
    """The certificate does not end within the next three weeks."""
    access.require("tls_lifetime")
