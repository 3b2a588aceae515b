"""``python -m lastcall.demo.tied …``: run a command, and end when whoever started it is gone.

The starter holds the other end of this process's standard input; however it ends, the read below returns.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def end_with_starter() -> None:
    """From now on this process is asked to end when its standard input does."""
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    while os.read(0, 1024):  # not the buffered reader: its lock would be in the way at the end of the process
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    end_with_starter()
    from lastcall.cli import main as lastcall

    sys.argv[0] = "lastcall"
    lastcall()


if __name__ == "__main__":
    main()
