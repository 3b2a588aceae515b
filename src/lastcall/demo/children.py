"""The demo's other processes: the simulated VRChat and the collector. They end with the demo, however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from lastcall.errors import Unavailable

PATIENCE = 15.0
"""Seconds a child may take to say that it is ready, or to end when asked."""

_ADDRESS = re.compile(r"http://\S+")


def why_it_failed(said: str, log: Path) -> tuple[str, str]:
    """Sentence and advice of a child that did not start: its own where it gave some."""
    _, found, own = said.rpartition("lastcall: ")
    if not found:
        return "A process of the demo did not start.", f"What it said is in {log}."
    sentence, _, advice = own.strip().partition("\n")
    return sentence, advice.strip()


class Child:
    """One process of our own. ``log`` is the file that gets everything it says."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, said_before: int) -> None:
        self._process = process
        self._log = log
        self._said_before = said_before

    @classmethod
    async def start(
        cls,
        *arguments: str,
        environment: Mapping[str, str],
        log: Path,
        module: str = "lastcall.demo.tied",
    ) -> Child:
        """Run ``module``, which is ``lastcall`` itself, with these arguments. Its settings are ``environment`` alone,
        not the demo's."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("LASTCALL_") and name != "DATABASE_URL"
        }
        with log.open("ab") as output:
            said_before = output.tell()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module, *arguments),
                env={**inherited, **environment},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                cwd=log.parent,
            )
        return cls(process, log, said_before)

    async def address(self) -> str:
        """The address that the child prints once it answers."""
        assert self._process.stdout is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                async for line in self._process.stdout:
                    found = _ADDRESS.search(line.decode(errors="replace"))
                    if found:
                        return found[0]
        said = self._log.read_bytes()[self._said_before :].decode(errors="replace")
        sentence, advice = why_it_failed(said, self._log)
        raise Unavailable("demo_child_failed", sentence, advice=advice)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def kill(self) -> None:
        """SIGKILL: nothing of it runs on, nothing is tidied up."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def stop(self) -> None:
        """Ask it to end in good order, and insist after a while."""
        if not self.is_running:
            return
        # Not send_signal: it reaps a child that has just ended, and asyncio then complains that it cannot.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE)
        except TimeoutError:
            await self.kill()
