"""No child outlives the nursery it came from, whatever ends that."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lastcall.testing.nursery import Nursery
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually

SOURCES = Path(__file__).parents[2] / "src"


def is_running(pid: int) -> bool:
    """One that merely was not buried yet has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("end", ["interrupted", "closed"])
async def test_no_child_outlives_its_nursery(tmp_path: Path, end: str) -> None:
    (tmp_path / "barriers").mkdir()
    time = SharedTime(tmp_path / "clock")
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "LASTCALL_SIMULATOR_PORT": "0"}
    nursery = Nursery(environment, tmp_path, tmp_path / "clock", tmp_path / "barriers")
    child = nursery.start("simulator", tmp_path / "log")
    child.send_signal(signal.SIGSTOP)  # it does not end by itself
    assert is_running(child.pid)
    if end == "interrupted":
        nursery._process.send_signal(signal.SIGINT)
    nursery.close()
    await eventually(lambda: not is_running(child.pid))
    time.clock.close()
