"""The real command in a process of its own, with nothing of this shell's settings in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start ``lastcall …`` in an empty folder; whatever still runs at the end is stopped."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        given = {"PYTHONPATH": str(SOURCE), "LASTCALL_HOME": str(tmp_path / "home")} | environment
        process = subprocess.Popen(
            [sys.executable, "-m", "lastcall", *arguments],
            cwd=tmp_path,
            env=kept | {name: value for name, value in given.items() if value},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=30)
    # Root's databases lie outside of the home, which only names them.
    pointer = tmp_path / "home" / "database-folder"
    if pointer.is_file():
        shutil.rmtree(pointer.read_text().strip())


@pytest.fixture
def command(start: Start) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``lastcall …`` to its end."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = start(*arguments, **environment)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    return run
