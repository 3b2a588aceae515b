"""What several forms hold: the moment that an edit is compared with, and choices of ids."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from lastcall.db.ids import decode_id
from lastcall.errors import Invalid
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


async def chosen_ids(request: PageRequest, name: str) -> frozenset[UUID]:
    """The ids ticked under one name. Raises ``Invalid`` for what is no id."""
    form = await request.form()
    return frozenset(decode_id(str(value)) for value in form.getall(name, []))
