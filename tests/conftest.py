"""Every room's tests use the test kit's database."""

from __future__ import annotations

import gc
import os
import sys

import pytest

# Many images forbid it. Then each of the processes that tests start would compile the product anew, for a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What is imported and collected lives to the end: the garbage collector need not walk it again and again.
gc.disable()

pytest_plugins = ["lastcall.testing.database", "lastcall.testing.signatures", "lastcall.testing.templates"]

LONGEST_FIRST = (
    "tests/quiet/",
    "tests/kill/",
    "tests/operations/test_operations_stateful",
    "tests/hostile/",
    "tests/decisions/test_writers_matrix",
    "tests/web/test_every_route",
    "tests/web/test_browser",
    "tests/matrix/",
    "tests/db/test_embedded",
    "tests/cli/test_commands",
    "tests/api/test_v1_schema",
    "tests/collector/test_whole_life",
    "tests/collector/test_vertical",
    "tests/operations/test_operations_terminal",
    "tests/demo/",
    "tests/web/test_ways_browser",
    "tests/deploy/",
)
"""One idles for two minutes, others start many processes or browsers: begun first, they do not make a tail.

``make test`` says --no-loadscope-reorder, without which the files with the fewest tests would come last."""


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: of a test's time, half is waiting for somebody else."""
    return len(os.sched_getaffinity(0)) + 2 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 2) + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        places = [n for n, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)]
        return places[0] if places else len(LONGEST_FIRST)

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    gc.freeze()
    # Each test's application goes as a whole: looking for garbage at the usual rate took an eighth of the time.
    gc.set_threshold(20_000, 20, 10)
    gc.enable()
