"""Run by path as its own small process where the kernel cannot tie two lives together: stop a server when its
owner is gone.

    python watchdog.py PID < pipe

The owner holds the other end of the pipe and never writes: end of file means it ended, in whatever way.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main(arguments: list[str]) -> None:
    # Ctrl-C is meant for the owner; this waits for its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    sys.stdin.buffer.read()
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(arguments[0]), signal.SIGINT)


if __name__ == "__main__":
    main(sys.argv[1:])
