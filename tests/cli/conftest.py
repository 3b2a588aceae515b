"""The real command in a process of its own, with nothing of this shell's settings in it; and the nouns in this
one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lastcall.cli import cli

SOURCE = Path(__file__).resolve().parents[2] / "src"
Say = Callable[..., Result]
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


@pytest.fixture
def say(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    """``say("club", "add", …)``. Logs are set up by a process once, and this process is the tests'."""
    monkeypatch.setattr("lastcall.cli.running.set_up_logs", lambda: None)
    monkeypatch.chdir(tmp_path)
    environment = {"DATABASE_URL": database_url, "LASTCALL_HOME": str(tmp_path)}

    def run(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=typed, env=environment, catch_exceptions=False)

    return run
