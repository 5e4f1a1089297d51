"""A process that records and then does something until it is ended: ``parent.py ARCHIVE``.

Prints the run and the process ids of the recorder and of a child that holds a copy of every descriptor.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.recording.fakes import order
from tests.recording.helpers import recorder_of


def main() -> None:
    """Record until interrupted."""
    # Whoever is started in the background by a shell ignores it, and so do all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    recorder = recorder_of(Path(sys.argv[1]), order("a", devices=2), order("b", behaviour="hang"))
    child = os.fork()  # as multiprocessing does: it inherits the write end of the recorder's lifeline
    if child == 0:
        time.sleep(600)
        os._exit(0)
    with recorder:
        recorder.wait_ready()
        recorder.phase("baseline")
        sys.stdout.write(json.dumps({"run": str(recorder.run), "recorder": recorder.process_id, "child": child}) + "\n")
        sys.stdout.flush()
        time.sleep(600)


if __name__ == "__main__":
    main()
