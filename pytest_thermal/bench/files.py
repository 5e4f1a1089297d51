"""The names of the bench files."""

from __future__ import annotations

from typing import Final

CONFIG: Final = "config.toml"
SETTINGS: Final = "settings.json"
FILES: Final = (CONFIG, SETTINGS)
IPMI_PASSWORD = "IPMI_PASSWORD"  # noqa: S105 - the variable's name
"""The variable that `ipmitool -E` takes the password of a BMC on the network from."""
PROMETHEUS_TOKEN = "PROMETHEUS_TOKEN"  # noqa: S105 - the variable's name
"""The variable that holds what is sent to Prometheus as `Bearer`."""
PROMETHEUS_PASSWORD = "PROMETHEUS_PASSWORD"  # noqa: S105 - the variable's name
"""The variable that holds the password of `prometheus_user`."""
