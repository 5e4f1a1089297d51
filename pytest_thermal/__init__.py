"""Sign off AI machines with pytest: access gate, thermal run, evidence."""

from __future__ import annotations

__version__ = "0.1.0"
