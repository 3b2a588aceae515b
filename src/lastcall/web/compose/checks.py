"""What a review can have looked up before anything is queued: whom an invitation reaches, and who is banned.

Nothing is asked before somebody presses the button, and who was not looked at is shown as not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import LastcallError
from lastcall.reads.asking import request_read
from lastcall.reads.kinds import KINDS
from lastcall.reads.kinds.fields import PAGE_MOST
from lastcall.web.access import Visitor
from lastcall.web.awaited import Awaited, look
from lastcall.web.compose.form import Form
from lastcall.web.looks import Look
from lastcall.web.room import Web

ELIGIBILITY, BANS = "eligibility", "bans"
_UNCHECKED = Look("", "question", "Not checked")
_MARKS = {
    "friend": Look("ok", "check", "Can be invited"),
    "not_friend": Look("bad", "cross", "No friend of the account"),
}


@dataclass(frozen=True)
class Check:
    """``name`` is the read; ``awaited`` is None before the button was pressed. ``marks`` are by user id in small
    letters. ``next_offset``: where the bans begin that were not looked at yet.
    """

    name: str
    awaited: Awaited | None = None
    problem: LastcallError | None = None
    marks: Mapping[str, Look] = field(default_factory=dict)
    is_closed: bool = False
    next_offset: int | None = None

    def mark(self, user_id: str) -> Look | None:
        """What is known of that person's eligibility; bans are told apart from it, above the list."""
        return self.marks.get(user_id.lower(), _UNCHECKED) if self.name == ELIGIBILITY else None


def check_for(form: Form) -> str | None:
    """The read that tells something about this review, if the visitor may ask for it."""
    kind = form.kind
    name = ELIGIBILITY if kind.needs_friend else BANS if kind.lifts_ban else None
    is_open = name is not None and form.page.standing.holds(KINDS[name].permission)
    return name if is_open and form.card is not None else None


async def ask(web: Web, visitor: Visitor, form: Form, offset: int) -> str:
    """Have it read; the id of the read. Raises what ``request_read`` does."""
    name = check_for(form)
    assert name is not None
    params: dict[str, Any] = {"n": PAGE_MOST, "offset": offset}
    if name == ELIGIBILITY:
        place = {key: form.given.fields[key] for key in ("worldId", "instanceId") if key in form.given.fields}
        params = {"targetUserIds": [one.user_id for one in form.given.recipients.people], **place}
    asked = await request_read(web.database, visitor.actor, form.page.club.id, name, params)
    return encode_id(asked.id)


async def checked(
    tx: Reader, web: Web, visitor: Visitor, form: Form, read_id: str, problem: LastcallError | None = None
) -> Check | None:
    """How the check stands; None for a review that has none."""
    name = check_for(form)
    if name is None:
        return None
    if not read_id:
        return Check(name, problem=problem)
    found = await look(tx, web, visitor, form.page, form.card, read_id)
    if found.read is None or found.read.kind.name != name:
        return Check(name, Awaited(None, found.now, found.is_heard), problem)
    items: tuple[Any, ...] = tuple(found.read.items)
    if name == BANS:
        return Check(name, found, problem, next_offset=found.read.next_offset)
    return Check(
        name,
        found,
        problem,
        marks={item.user_id.lower(): _MARKS[item.friendship] for item in items},
        is_closed=any(item.destination == "closed" for item in items),
    )
