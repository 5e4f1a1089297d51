"""The embedded demo bench: a simulated OpenAI-compatible gateway on loopback, healthy or with a fault.

Imports nothing else of this package, and its server only when one starts.
"""

from __future__ import annotations

from .call import ServedRequest
from .errors import DemoError
from .faults import FAULTS, Fault
from .server import DemoGateway

__all__ = ["FAULTS", "DemoError", "DemoGateway", "Fault", "ServedRequest"]
