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

pytest_plugins = ["lastcall.testing.database"]

LONGEST_FIRST = ("tests/quiet/", "tests/kill/", "tests/web/test_browser")
"""One idles for two minutes, the others start many processes: begun first, they do not make a tail."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        places = [n for n, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)]
        return places[0] if places else len(LONGEST_FIRST)

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
