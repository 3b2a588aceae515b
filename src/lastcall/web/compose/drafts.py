"""The form of a post as a draft, and back."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from lastcall.db.database import Database
from lastcall.db.ids import decode_id, encode_id, new_id
from lastcall.errors import Invalid
from lastcall.operations.drafts import DraftView
from lastcall.operations.kinds import publish_post
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.schedules import EventRelative, Fixed, Immediate, read_schedule
from lastcall.operations.services.drafts import save_draft
from lastcall.people.actor import Actor
from lastcall.web.compose.fields import Given, values_of
from lastcall.web.compose.timing import Timing, When, when_of
from lastcall.web.fields import known_id

_ANY = datetime.fromisoformat("2000-01-01T00:00:00+00:00")


def takes_drafts(kind: Kind[Any]) -> bool:
    """Whether a form of that kind can be kept as a draft: a new post's alone."""
    return kind is publish_post.KIND


def draft_named(draft: DraftView) -> str:
    """What a form carries of the draft that it was made from."""
    return f"{encode_id(draft.id)}.{draft.revision}"


def draft_to_be() -> str:
    """What a fresh form carries: the id its draft will have, so that sending it twice keeps one draft and queues one
    post (ENQ-11)."""
    return f"{encode_id(new_id())}.0"


def values_of_draft(draft: DraftView, zone: ZoneInfo) -> tuple[dict[str, str], When]:
    """The form that a draft was kept from."""
    values = values_of(publish_post.KIND, draft.fields)
    match read_schedule(draft.schedule, _ANY):
        case Immediate(event_id=event_id):
            return values, When(event="" if event_id is None else encode_id(event_id))
        case Fixed(due_at=due_at, event_id=event_id):
            return values, when_of("fixed", due_at, event_id, None, zone)
        case EventRelative(event_id=event_id, offset=offset):
            return values, when_of("event_relative", _ANY, event_id, offset, zone)


async def keep_draft(
    db: Database, actor: Actor, club_id: UUID, given: Given, timing: Timing, named: str
) -> str:
    """Keep what the form says, however incomplete; the draft and its revision then. A time that is none yet is kept as
    now. Raises what ``save_draft`` does."""
    draft_id, _, revision = named.partition(".")
    seen = int(revision) if revision.isascii() and revision.isdigit() and len(revision) < 10 else 0
    wrong = {name: problem for name, problem in given.problems.items() if given.values.get(name)}
    if wrong:
        name = next(iter(wrong))
        raise Invalid("draft_invalid", f"The draft cannot be kept like this: {name}.", advice=wrong[name])
    kept = await save_draft(
        db,
        actor,
        club_id,
        known_id(draft_id),
        given.fields,
        timing.schedule or Immediate(_event(timing)),
        seen=seen,
    )
    return draft_named(kept)


def _event(timing: Timing) -> UUID | None:
    return decode_id(timing.when.event) if timing.event else None
