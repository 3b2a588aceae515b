"""Starts the roles of ``lastcall.testing.run`` again and again without importing them again.

A process that has imported them forks one for each ``start`` it reads on its stdin. The child is a process like any
other: it runs the real entry point, and it is killed and stopped like one. That too is asked of the nursery, because
its own child's number is nobody else's before it was waited for.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
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

    def start(self, role: str, log: Path, environment: Mapping[str, str] | None = None) -> Child:
        """Start ``role``; what it says goes to the end of ``log``. ``environment``: of this child alone."""
        own = (f"{name}={value}" for name, value in (environment or {}).items())
        return Child(self, self.ask("start", role, str(log), *own))

    def ask(self, *words: str) -> int:
        """One line there, one number back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the nursery and every child. The same happens when the test's process ends in whatever way."""
        self._process.communicate()


class Child:
    """A started process."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid

    def send_signal(self, number: signal.Signals) -> None:
        """Nothing happens to one that has ended."""
        self._nursery.ask("signal", str(self.pid), str(number.value))

    def is_running(self) -> bool:
        """Whether it lives."""
        return bool(self._nursery.ask("lives", str(self.pid)))

    def kill(self) -> None:
        """SIGKILL, and return when it has ended."""
        self._nursery.ask("kill", str(self.pid))


def main() -> None:
    """The nursery itself."""
    import lastcall.cli.server
    import lastcall.collector.main
    import lastcall.testing.barriers  # noqa: F401 - all this is imported for the children

    clock, barriers = Path(sys.argv[1]), Path(sys.argv[2])
    gc.freeze()
    living: set[int] = set()
    try:
        for line in sys.stdin:
            print(_answer(line.rstrip("\n").split("\t"), living, clock, barriers), flush=True)  # noqa: T201
    finally:  # ^C reaches the nursery as well, and children that are stopped hear nothing
        for orphan in living:
            os.kill(orphan, signal.SIGKILL)


def _answer(words: list[str], living: set[int], clock: Path, barriers: Path) -> int:
    match words:
        case ["start", role, log, *own]:
            answer = os.fork()
            if answer == 0:
                os.environ.update({name: value for name, _, value in (pair.partition("=") for pair in own)})
                _live(role, Path(log), clock, barriers)
            living.add(answer)
        case ["lives", pid]:
            answer = _lives(living, int(pid), os.WNOHANG)
        case ["signal", pid, number]:
            answer = _lives(living, int(pid), os.WNOHANG)
            if answer:
                os.kill(int(pid), int(number))
        case ["kill", pid]:
            if _lives(living, int(pid), os.WNOHANG):
                os.kill(int(pid), signal.SIGKILL)
            answer = _lives(living, int(pid), 0)
        case _:
            raise ValueError(f"nobody here understands {words}")
    return answer


def _lives(living: set[int], pid: int, options: int) -> int:
    """1 while it lives, else 0."""
    if pid in living and os.waitpid(pid, options)[0] == pid:
        living.discard(pid)
    return int(pid in living)


def _live(role: str, log: Path, clock: Path, barriers: Path) -> None:
    """Never returns."""
    status = 1
    try:
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
