"""Starts the roles of ``lastcall.testing.run`` again and again without importing them again.

A process that has imported them waits for a line on its stdin, *role* and *log*, forks, and says the child's pid. The
child is a process like any other: it runs the real entry point, and it is killed and stopped like one.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from lastcall.testing.run import run


class Nursery:
    """The test's side. ``environment`` and the two paths are those of every child."""

    def __init__(self, environment: Mapping[str, str], folder: Path, clock: Path, barriers: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this module
            [sys.executable, "-m", __name__, str(clock), str(barriers)],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, role: str, log: Path) -> Child:
        """Start ``role``; what it says goes to the end of ``log``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{role} {log}\n")
        self._process.stdin.flush()
        return Child(int(self._process.stdout.readline()))

    def close(self) -> None:
        """Start nothing any more. Children that run go on."""
        self._process.communicate()


class Child:
    """A started process, with what ``Popen`` has."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def is_running(self) -> bool:
        """Whether it lives. The nursery buries its dead at once."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def wait(self, timeout: float) -> None:
        """Return once it has ended. ``TimeoutError`` after so many seconds."""
        until = time.monotonic() + timeout
        while self.is_running():
            if time.monotonic() > until:
                raise TimeoutError(f"process {self.pid} goes on")
            time.sleep(0.005)


def main() -> None:
    """The nursery itself."""
    import lastcall.cli.server
    import lastcall.collector.main
    import lastcall.testing.barriers  # noqa: F401 - all this is imported for the children

    clock, barriers = Path(sys.argv[1]), Path(sys.argv[2])
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        role, _, log = line.rstrip("\n").partition(" ")
        pid = os.fork()
        if pid == 0:
            _live(role, Path(log), clock, barriers)
        print(pid, flush=True)  # noqa: T201 - the answer


def _live(role: str, log: Path, clock: Path, barriers: Path) -> None:
    """Never returns."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
            for theirs, ours in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(theirs.fileno(), ours)
        status = run(role, clock, barriers)
    except BaseException:  # noqa: BLE001 - a process that ends says why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
