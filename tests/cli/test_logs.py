"""What a log line of an error shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
FAILING = """
import sys
sys.stderr.isatty = lambda: {readable}
import structlog
from lastcall.cli.logs import set_up_logs

def fail():
    key = "lck_" + "secret" * 5
    raise ValueError("the reason")

set_up_logs()
try:
    fail()
except ValueError as error:
    structlog.get_logger().error("request_failed", exc_info=error)
"""


@pytest.mark.parametrize("readable", [True, False])
def test_the_trace_of_an_error_shows_no_values_of_variables(readable: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FAILING.format(readable=readable)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "request_failed" in ended.stderr
    assert "ValueError" in ended.stderr
    assert "the reason" in ended.stderr
    assert "lck_secret" not in ended.stderr
