"""Dates as HTTP headers write them."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime


def http_date(text: str) -> datetime | None:
    """The moment that ``text`` (``Mon, 30 Nov 2026 07:14:48 GMT``) names, in UTC where it names no zone.

    None where it is no date.
    """
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError, IndexError):  # what odd text makes of the standard library
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)
