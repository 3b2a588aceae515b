"""The way from one page of a list to the next."""

from __future__ import annotations

from urllib.parse import urlencode

from lastcall.db.cursor import Cursor, write_cursor


def older(path: str, listing: str, cursor: Cursor | None, **query: str) -> str | None:
    """The address of the page behind ``cursor``, with what the reader asked for; None where the list ends."""
    if cursor is None:
        return None
    kept = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(kept | {'after': write_cursor(listing, cursor)})}"
