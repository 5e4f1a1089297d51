"""A way to the terminal that pytest's capture leaves alone."""

from __future__ import annotations

import os
import sys

import pytest

from pytest_thermal.plugin.keys import TERMINAL


def keep_terminal(config: pytest.Config) -> None:
    """Keep a way to the terminal that capturing does not close. Call it while nothing is captured."""
    if hasattr(config, "workerinput"):
        return
    try:
        descriptor = os.dup(sys.__stderr__.fileno()) if sys.__stderr__ is not None else -1
    except (OSError, ValueError):
        return  # no standard error, as under pythonw or a closed one
    if descriptor >= 0:
        config.stash[TERMINAL] = descriptor
        config.add_cleanup(lambda: os.close(descriptor))
