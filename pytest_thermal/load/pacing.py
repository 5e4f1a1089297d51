"""When the next item comes, and what it is."""

from __future__ import annotations

from pytest_thermal.load.share import Share

BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 4.0
LONGEST_RETRY_AFTER_SECONDS = 30.0
"""A gateway that asks for an hour would end the load: it is asked again after this."""
_MOST_DOUBLINGS = 16


class Backoff:
    """How long to wait after a failure: it grows while nothing succeeds, for all slots together."""

    def __init__(self) -> None:
        self._failures = 0

    def after(self, *, ok: bool, slots: int, retry_after_seconds: float | None = None) -> float:
        """Seconds to wait before the next request of this slot, beside its interval."""
        if ok:
            self._failures = 0
            return 0.0
        rounds = min(self._failures // max(1, slots), _MOST_DOUBLINGS)
        self._failures += 1
        own_seconds = min(LONGEST_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0**rounds)
        return max(own_seconds, min(LONGEST_RETRY_AFTER_SECONDS, retry_after_seconds or 0.0))


class Mixture:
    """Deals out requests and compute bursts so that a share is reached evenly, without dice."""

    def __init__(self, share: float, *, part: Share = Share()) -> None:  # noqa: B008 - frozen
        self._share = share
        self._owed = (part.index + 0.5) / part.of
        """Half, so that neither kind is dealt late: the error stays within half an item. Processes that share a load
        begin at different places, or all of them would err the same way."""

    def next_is_request(self) -> bool:
        """Whether the next item is a request."""
        self._owed += self._share
        if self._owed >= 1.0 - 1e-9:
            self._owed -= 1.0
            return True
        return False
