"""A page as a collector sends it, held to what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lastcall.errors import Invalid
from lastcall.protocol.constants import READ_BYTES_MOST
from lastcall.reads.kinds.fields import Item, PageParams, Params
from lastcall.reads.kinds.kind import ReadKind

_SAME_RELEASE = "Run a collector of the same release as the server."


@dataclass(frozen=True)
class Page:
    """Items as they came, how the list goes on, and how long it is as far as VRChat says."""

    items: Sequence[dict[str, Any]]
    next_offset: int | None = None
    total: int | None = None


def checked_page(kind: ReadKind[Any, Any], params: Params, page: Page) -> tuple[Item, ...]:
    """The items as the kind has them. Raises ``Invalid`` for more than was asked for, for other fields, and for a
    next page that does not begin where this one ends.
    """
    if len(page.items) > kind.most(params):
        raise _refused(f"It has {len(page.items)} items; {kind.most(params)} were asked for.", "items")
    if len(msgspec.json.encode(page.items)) > READ_BYTES_MOST:
        raise _refused(f"It has more than {READ_BYTES_MOST} bytes.", "items")
    try:
        items = msgspec.convert(list(page.items), tuple[kind.item, ...], strict=True)  # type: ignore[name-defined]
    except msgspec.ValidationError as error:
        raise _refused(f"An item is none of the kind “{kind.name}”: {error}.", "items") from None
    if page.next_offset is not None and page.next_offset != _end(params, items):
        raise _refused("The next page does not begin where this one ends.", "nextOffset")
    checked: tuple[Item, ...] = items
    return checked


def _end(params: Params, items: Sequence[Item]) -> int | None:
    """Where a page that has another one behind it ends."""
    return params.offset + len(items) if isinstance(params, PageParams) and items else None


def _refused(why: str, field: str) -> Invalid:
    return Invalid(
        "answer_refused", f"This page is not what was asked for. {why}", advice=_SAME_RELEASE, field=field
    )
