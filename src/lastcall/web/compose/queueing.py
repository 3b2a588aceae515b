"""Queue what was reviewed, and warn of whom an invitation would unban."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from lastcall.connections.evidence import banned_now
from lastcall.connections.queries import ConnectionCard
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.errors import Invalid
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.services.drafts import queue_draft
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor
from lastcall.web.compose.review import Review
from lastcall.web.fields import known_id


async def banned_among(
    tx: Reader,
    club_id: UUID,
    card: ConnectionCard | None,
    now: datetime,
    kind: Kind[Any],
    user_ids: Sequence[str],
) -> frozenset[str]:
    """Of these people the ones that are known to be banned, where the kind would lift the ban."""
    if not kind.lifts_ban or card is None:
        return frozenset()
    return frozenset(await banned_now(tx, club_id, card.connection_id, card.epoch, now, user_ids))


async def queue(db: Database, actor: Actor, club_id: UUID, made: Review) -> list[UUID]:
    """The requests that it became: all of them, or it raises what ``enqueue`` does and there is none."""
    if made.draft:
        draft_id, _, revision = made.draft.partition(".")
        if not (revision.isascii() and revision.isdigit() and len(revision) < 10):
            raise Invalid("form_incomplete", "This form is not complete.", advice="Open the draft again.")
        kept = await queue_draft(db, actor, club_id, known_id(draft_id), int(revision), made.timing.due_at)
        return [kept.request_id]
    async with db.transaction():
        return [
            (
                await enqueue(
                    db,
                    actor,
                    club_id,
                    request_key,
                    part.payloads,
                    part.schedule,
                    confirm_banned=made.chosen,
                )
            ).request_id
            for request_key, part in zip(made.request_keys, made.parts, strict=True)
        ]
