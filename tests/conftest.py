"""Every room's tests use the test kit's database."""

from __future__ import annotations

import pytest

pytest_plugins = ["lastcall.testing.database"]

LONGEST_FIRST = ("tests/quiet/", "tests/kill/", "tests/web/test_browser")
"""One idles for two minutes, the others start many processes: begun first, they do not make a tail."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        places = [n for n, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)]
        return places[0] if places else len(LONGEST_FIRST)

    items.sort(key=rank)
