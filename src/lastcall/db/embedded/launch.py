"""Run by path as its own small process: become the server's user, tie the server's life to the caller's, exec
it.

python launch.py UID GID PARENT PROGRAM ARGUMENT…

It exists because none of this may run between fork and exec of a process with threads, and because the other
user may not be able to read this interpreter. ``PARENT`` is the pid whose death stops the server, 0 for none.
Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    uid, gid, parent = (int(argument) for argument in arguments[:3])
    program = arguments[3:]
    # A group of its own: Ctrl-C in a terminal reaches the caller, who stops the server when it is done with
    # it.
    os.setsid()
    os.umask(0o077)
    if os.geteuid() != uid:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if parent:
        # After setuid, which would clear it. SIGINT is PostgreSQL's fast and clean shutdown.
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
        if os.getppid() != parent:
            sys.exit("the process that started this is gone")
    os.execv(program[0], program)  # noqa: S606 - the point of this file


if __name__ == "__main__":
    main(sys.argv[1:])
