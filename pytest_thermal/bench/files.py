"""The names of the bench files."""

from __future__ import annotations

from typing import Final

CONFIG: Final = "config.toml"
SETTINGS: Final = "settings.json"
FILES: Final = (CONFIG, SETTINGS)
