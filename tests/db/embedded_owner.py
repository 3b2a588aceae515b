"""Another process that owns an embedded server, and a look at what runs."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lastcall.db.connect import connect
from lastcall.db.embedded import binaries

OWNER = Path(__file__).with_name("owner.py")
START = 30.0
"""Seconds for a start in another process on a busy machine."""


@dataclass(frozen=True)
class Owner:
    process: asyncio.subprocess.Process
    server_pid: int
    url: str

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@asynccontextmanager
async def owned_elsewhere(home: Path, *arguments: str, user: str | None = None) -> AsyncIterator[Owner]:
    python, path = sys.executable, os.environ.get("PYTHONPATH", "")
    if user is not None:
        python, path = python_for_others()
    process = await asyncio.create_subprocess_exec(
        *(python, str(OWNER), str(home), *arguments),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        **({"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}),
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START)
        pid, url = line.decode().split()
        yield Owner(process, int(pid), url)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def python_for_others() -> tuple[str, str]:
    """An interpreter that other users may run, and the path of this project and its libraries."""
    source = Path(binaries.__file__).parents[3]
    libraries = Path(pytest.__file__).parents[1]
    return "/usr/bin/python3", f"{source}{os.pathsep}{libraries}"


def is_running(pid: int) -> bool:
    """Whether the process lives; one that merely was not buried yet has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


async def execute(url: str, statement: str) -> None:
    connection = await connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def value(url: str, query: str) -> object:
    connection = await connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()
