"""Runs the command in its arguments, and takes it down when whoever holds our standard input is gone.

Started by its path and free of imports from this package: it has to be up in milliseconds. A test run that is
killed outright cannot clean up; the end of the pipe it held tells us, and the command's whole process group goes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

NOT_STARTED = 126


def _end_with_holder() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def main(argv: list[str]) -> int:
    """Run ``argv`` to its end; returns its exit status as a shell tells it (128 + n for a signal)."""
    threading.Thread(target=_end_with_holder, daemon=True).start()
    try:
        status = subprocess.call(argv, stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stderr.write(f"{Path(argv[0]).name} could not be started: {error.strerror or error}\n")
        return NOT_STARTED
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
