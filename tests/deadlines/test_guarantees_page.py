"""The page of guarantees says what is not guaranteed, each limit in words of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lastcall.deadlines.wake import REREAD_EVERY

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "guarantees.md"

LIMITS = {
    "an independent SQL writer": r"writes to the tables by itself is not noticed, with the wake channel either",
    "another instance": r"second server process or a `lastcall` command .* not noticed without the wake channel",
    "a sleeping host": r"deadline inside a process wakes no sleeping host",
    "what to do about it": r"`GET /ops/next-wake`",
    "serializability": r"[Nn]othing is serializable across tables beyond the locks that a step names",
    "a crash before the notification": r"crash between a commit and its notification is bounded by one reread a day",
}
"""SCH-08, and what follows from it for whoever runs this."""


def limits(page: str) -> str:
    """The part that states them, on one line."""
    _, _, rest = page.partition("Limits, said plainly:")
    return re.sub(r"\s+", " ", rest)


@pytest.mark.clause("SCH-08")
@pytest.mark.parametrize("said", LIMITS.values(), ids=LIMITS)
def test_the_page_states_each_limit(said: str) -> None:
    assert re.search(said, limits(PAGE.read_text(encoding="utf-8")))


def test_the_bound_it_names_is_the_one_that_is_kept() -> None:
    assert REREAD_EVERY.days == 1
    assert REREAD_EVERY.seconds == 0
