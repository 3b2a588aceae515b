"""What lists take in their addresses: how much of them, from where, and what to look for."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from lastcall.db.cursor import CURSOR_LENGTH

PAGE_MOST = 100
"""Rows of one page at most."""

Search = Annotated[
    str, QueryParameter(max_length=100, description="Found anywhere in the name, in any case.")
]
Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MOST, description="How many to answer with at most.")]
After = Annotated[
    str | None,
    QueryParameter(
        name="cursor",
        max_length=CURSOR_LENGTH,
        description="`next` of the page before; without it the first page is answered.",
    ),
]
CURSOR = "cursor"
"""The name of that parameter, for a refusal."""
