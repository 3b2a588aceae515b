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


class Child:
    """One process of our own. ``log`` is the file that gets everything it says."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, *arguments: str, environment: Mapping[str, str], log: Path) -> Child:
        """Run ``lastcall`` with these arguments. Its settings are ``environment`` alone, not the demo's."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("LASTCALL_") and name != "DATABASE_URL"
        }
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "lastcall.demo.tied", *arguments),
                env={**inherited, **environment},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                cwd=log.parent,
            )
        return cls(process, log)

    async def address(self) -> str:
        """The address that the child prints once it answers."""
        assert self._process.stdout is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                async for line in self._process.stdout:
                    found = _ADDRESS.search(line.decode(errors="replace"))
                    if found:
                        return found[0]
        raise Unavailable(
            "demo_child_failed",
            "A process of the demo did not start.",
            advice=f"The last thing it said: {self._last_words()}",
        )

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing"

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def kill(self) -> None:
        """SIGKILL: nothing of it runs on, nothing is tidied up."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Ask it to end in good order, and insist after a while."""
        if not self.is_running:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE)
        except TimeoutError:
            await self.kill()
