"""A process that has a load and then does something until it is ended: ``parent.py MARK``."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pytest_thermal.load import start
from tests.load.helpers import shell


def main() -> None:
    # Whoever is started in the background by a shell, or by nohup, ignores them, and so do all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    load = start(shell("setsid sleep 600 & trap '' TERM; while :; do sleep 1; done", mark=sys.argv[1]))
    if os.fork() == 0:  # as multiprocessing does: it inherits our end of the lifeline
        time.sleep(600)
        os._exit(0)
    sys.stdout.write(f"{load.process_id}\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    main()
