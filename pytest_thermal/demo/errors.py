"""What can keep the embedded gateway from doing what is asked of it."""

from __future__ import annotations


class DemoError(RuntimeError):
    """The embedded gateway cannot do this on this machine; the text says why and what to try."""
