"""pytest's own plugin tester, for tests/."""

from __future__ import annotations

pytest_plugins = ["pytester"]
