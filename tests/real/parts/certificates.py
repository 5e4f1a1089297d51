"""Certificates for a TLS front, made with trustme: a good one and one of each kind of bad one."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """PEM files: of the authority to trust, and per name a chain with its private key in one file."""

    authority: Path
    good: Path
    expired: Path
    wrong_host: Path
    unknown_issuer: Path
    client: Path


def make_certificates(folder: Path) -> Certificates:
    """Write them all into `folder`; every one but `unknown_issuer` is signed by `authority`."""
    folder.mkdir(parents=True, exist_ok=True)
    known, stranger = trustme.CA(), trustme.CA()
    today = dt.datetime.now(dt.timezone.utc)
    here = ("localhost", "127.0.0.1")
    issued = {
        "good": known.issue_cert(*here),
        "expired": known.issue_cert(
            *here,
            not_before=today - dt.timedelta(days=90),
            not_after=today - dt.timedelta(days=3),
        ),
        "wrong_host": known.issue_cert("gateway.example", "*.models.example"),
        "unknown_issuer": stranger.issue_cert(*here),
        "client": known.issue_cert("operator@bench.example"),
    }
    files = {name: folder / f"{name}.pem" for name in issued}
    for name, certificate in issued.items():
        certificate.private_key_and_cert_chain_pem.write_to_path(str(files[name]))
    authority = folder / "authority.pem"
    known.cert_pem.write_to_path(str(authority))
    return Certificates(authority=authority, **files)
