"""The one text of a place in a list."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from lastcall.db.cursor import CURSOR_LENGTH, Cursor, cut, read_cursor, write_cursor
from lastcall.db.ids import new_id
from lastcall.errors import Invalid

CURSORS = (
    Cursor(datetime(2026, 3, 4, 5, 6, 7, 123457, UTC), new_id()),
    Cursor(datetime(1, 1, 2, tzinfo=UTC), UUID(int=0)),
    Cursor(datetime(9999, 12, 30, 23, 59, 59, 999999, UTC), UUID(int=2**128 - 1)),
)


@pytest.mark.parametrize("cursor", CURSORS)
def test_a_cursor_comes_back_to_the_microsecond_and_a_tampered_one_is_refused(cursor: Cursor) -> None:
    text = write_cursor("a list", cursor)
    assert read_cursor("a list", text) == cursor
    assert len(text) == CURSOR_LENGTH
    tampered = [text[:n] + ("A" if text[n] != "A" else "B") + text[n + 1 :] for n in range(len(text))]
    tampered += ["", "x", text[:-1], text + "A", text + "=", text.swapcase(), "é" * 38, "🦉", "\0" * 38]
    tampered += [write_cursor("another list", cursor), "_" * 38, "A" * 38]
    for wrong in tampered:
        with pytest.raises(Invalid) as caught:
            read_cursor("a list", wrong, field="cursor")
        assert (caught.value.code, caught.value.field) == ("cursor_invalid", "cursor")


def test_a_page_leads_on_only_when_there_is_more() -> None:
    rows = list(CURSORS)
    assert cut(rows, 3, "a list", lambda row: row) == (rows, None)
    assert cut(rows, 2, "a list", lambda row: row) == (rows[:2], write_cursor("a list", rows[1]))
    assert read_cursor("a list", None) is None
