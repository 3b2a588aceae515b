"""What several forms hold: the moment that an edit is compared with, and choices of ids."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from lastcall.db.ids import decode_id
from lastcall.errors import Invalid, NotFound
from lastcall.web.pages import PageRequest


def seen_text(moment: datetime | None) -> str:
    """What a form carries of the row it was made from; empty where there was none."""
    return "" if moment is None else moment.isoformat()


def read_seen(text: str) -> datetime:
    """The moment that a form carried. Raises ``Invalid`` for a form that was tampered with or cut."""
    try:
        seen = datetime.fromisoformat(text)
    except ValueError:
        seen = None
    if seen is None or seen.tzinfo is None:
        raise Invalid("form_incomplete", "This form is not complete.", advice="Reload the page.")
    return seen


def known_id(text: str) -> UUID:
    """An id from the address; one that is none is as unknown as one that nobody has."""
    try:
        return decode_id(text)
    except Invalid as error:
        raise NotFound("not_found", "There is no such page.") from error


def read_revision(fields: Mapping[str, str], name: str = "seen") -> int:
    """The revision that a form was made from. Raises ``Invalid`` for a form that was tampered with or cut."""
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Invalid("form_incomplete", "This form is not complete.", advice="Open it again.")
    return int(text)


async def chosen_ids(request: PageRequest, name: str) -> frozenset[UUID]:
    """The ids ticked under one name. Raises ``Invalid`` for what is no id."""
    form = await request.form()
    return frozenset(decode_id(str(value)) for value in form.getall(name, []))
