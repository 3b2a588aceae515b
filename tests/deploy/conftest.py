"""Units as they are written, and their commands in processes of their own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SYSTEMD = PROJECT / "deploy" / "systemd"
INSTANCE = "night-shift"
PROGRAM = "/srv/lastcall/.venv/bin/lastcall"

Start = Callable[..., "subprocess.Popen[str]"]


@dataclass(frozen=True)
class Unit:
    """``values``: of each key of ``[Service]``, in their order."""

    values: dict[str, list[str]]

    def one(self, key: str) -> str:
        (value,) = self.values[key]
        return value

    def seconds(self, key: str) -> int:
        return int(self.one(key))

    def filled(self, text: str, state: Path) -> str:
        """``text`` as systemd reads it for the instance, with ``state`` for its folder of states."""
        return text.replace("%S", str(state)).replace("%i", INSTANCE)


def unit(name: str) -> Unit:
    """The service of that file. No line is continued, so a line is a setting."""
    values: dict[str, list[str]] = {}
    section = ""
    for line in (SYSTEMD / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values.setdefault(key, []).append(value)
    return Unit(values)


def settings_of(name: str, *, with_examples: bool = False) -> dict[str, str]:
    """The settings of an environment file; ``with_examples``: with those that it only shows."""
    pairs = {}
    for line in (SYSTEMD / name).read_text(encoding="utf-8").splitlines():
        is_example = line.startswith("#") and not line.startswith("# ")
        if line and (not line.startswith("#") or (is_example and with_examples)):
            key, _, value = line.removeprefix("#").partition("=")
            pairs[key] = value
    return pairs


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """``start(arguments, environment, folder)``: ``lastcall …`` with nothing of this shell's settings in it."""
    started: list[subprocess.Popen[str]] = []

    def begin(
        arguments: list[str], environment: dict[str, str], folder: Path | None = None
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "lastcall", *arguments],
            cwd=folder or tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")} | environment,
            stdin=subprocess.DEVNULL,
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
        process.communicate(timeout=60)


@pytest.fixture
def start_unit(start: Start, tmp_path: Path) -> Start:
    """``start_unit(name, given)``: its ``ExecStart`` as systemd would, in a state folder of the test's, with ``given``
    for what its environment file says."""

    def begin(name: str, given: dict[str, str]) -> subprocess.Popen[str]:
        service = unit(name)
        folder = Path(service.filled(service.one("WorkingDirectory"), tmp_path))
        assert folder == tmp_path / service.filled(service.one("StateDirectory"), tmp_path)
        folder.mkdir(parents=True, mode=int(service.one("StateDirectoryMode"), 8))
        program, *arguments = shlex.split(service.one("ExecStart"))
        assert program == PROGRAM
        fixed = [
            service.filled(value, tmp_path).partition("=") for value in service.values.get("Environment", [])
        ]
        return start(arguments, {key: value for key, _, value in fixed} | given, folder)

    return begin


def read_until(process: subprocess.Popen[str], text: str, *, of: str = "stdout") -> list[str]:
    """The lines up to the first with ``text``; the test's own limit ends a wait for what never comes."""
    stream = getattr(process, of)
    lines: list[str] = []
    for line in stream:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(
        f"it ended without {text!r}: {''.join(lines)}{process.stderr and process.stderr.read()}"
    )
