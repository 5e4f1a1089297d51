"""The system's Chromium, driven by Playwright: one for all tests, each in a window of its own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, Error, expect, sync_playwright

from tests.real.parts.errors import PartUnavailableError
from tests.support.patience import PATIENCE_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_QUIET = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")
"""No sandbox, since tests may be root; nothing that Chromium fetches for itself."""
_PATIENCE_MILLISECONDS = 1000 * PATIENCE_SECONDS


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A running Chromium.

    Raises:
        PartUnavailableError: There is none here, or it does not start.
    """
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise PartUnavailableError("no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as driver:
        expect.set_options(timeout=_PATIENCE_MILLISECONDS)
        try:
            running = driver.chromium.launch(executable_path=path, args=list(_QUIET), timeout=_PATIENCE_MILLISECONDS)
        except Error as error:
            raise PartUnavailableError(f"{path} does not start: {str(error).splitlines()[0]}") from error
        try:
            yield running
        finally:
            running.close()
