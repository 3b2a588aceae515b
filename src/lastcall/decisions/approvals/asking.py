"""The asker's side of an approval: ask, change what it says, take it back, comment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import log
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.decisions.approvals.machine import Event, Status
from lastcall.decisions.approvals.rows import (
    TABLE,
    TOPIC,
    fresh,
    hold,
    move_of,
    moved_now,
    require_seen,
    require_theirs,
    tell,
    write,
)
from lastcall.decisions.approvals.tables import Approval, ApprovalComment, ApprovalRevision
from lastcall.decisions.askers import BODY_MOST, TITLE_MOST
from lastcall.decisions.asking import (
    Asker,
    asked_row,
    digest_of,
    is_theirs,
    let_in,
    made_before,
    require_asker,
    valid_key,
    valid_text,
    valid_title,
)
from lastcall.decisions.effects import effect_named
from lastcall.decisions.retention.due import announce, refresh
from lastcall.decisions.retention.kinds.approval import APPROVAL, approval_unknown
from lastcall.errors import Conflict, Invalid
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.scopes import Scope

COMMENTS_MOST = 200
"""Comments on one approval."""
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,59}\Z")


@dataclass(frozen=True)
class Carried:
    """What approving does: the name of an effect, and the body that the effect alone understands."""

    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Subject:
    """What an approval is about, in the asker's words. ``is_only_one``: while one of its type waits about this
    subject, no second one does."""

    kind: str
    key: str
    is_only_one: bool = False


@dataclass(frozen=True)
class Ask:
    """What is put to staff. ``type`` is what sort of question it is: small letters, digits and ``_``."""

    type: str
    title: str
    body: str = ""
    subject: Subject | None = None
    effect: Carried | None = None


async def ask_approval(
    db: Database, asker: Actor | AgentActor, club_id: UUID, ask: Ask, *, key: str | None = None
) -> UUID:
    """Put a question to staff; answers the id of the approval. Any staff may ask, and an agent with the grant.

    The same asker, ``key`` and ask again answer the approval that was made, whatever became of it. Raises ``Conflict``
    for another ask under that key (``idempotency_key_used``), where one waits about the subject already
    (``approval_waiting``, with its id) and in an archived club; ``Invalid`` for what breaks a rule, the effect's too.
    """
    async with db.transaction() as tx:
        await require_asker(tx, asker, club_id)
        return await ask_in(tx, asker, club_id, ask, key=key)


async def ask_in(tx: Transaction, asker: Asker, club_id: UUID, ask: Ask, *, key: str | None = None) -> UUID:
    """The same in the caller's transaction, for an asker whom the caller let in: a part of Lastcall, say."""
    values = _valid(ask)
    digest = digest_of(values)
    row = values | await asked_row(tx, asker, club_id, key, digest)
    await announce(tx, club_id, row["activity_at"], kind=APPROVAL)
    while True:
        # Waits for whoever inserts the same key or subject at this moment, and then sees what became of theirs.
        made: UUID | None = await tx.scalar(
            upsert(Approval).values(row).on_conflict_do_nothing().returning(Approval.id)
        )
        if made is not None:
            break
        before = await made_before(tx, TABLE, asker, club_id, key, digest)
        if before is not None:
            return before
        await _refuse_second(tx, club_id, ask)
    await refresh(tx, club_id, [made], kind=APPROVAL)
    details = {"type": ask.type, "effect": values["effect_name"]}
    await log(tx, club_id, asker, "approval.asked", "approval", made, details)
    tx.publish(Hint(club_id, TOPIC))
    return made


async def resubmit(
    db: Database,
    asker: Actor | AgentActor,
    club_id: UUID,
    approval_id: UUID,
    *,
    seen_revision: int,
    title: str,
    body: str,
    effect_body: Mapping[str, Any] | None = None,
) -> int:
    """Change what an approval says and put it to staff again; answers its new revision. What it said stays on record.

    For its asker, while it can still be decided. Without an ``effect_body`` it goes on carrying what it carried. Raises
    ``Conflict`` when it was changed or decided meanwhile, and ``Invalid`` for an effect's body where it has no effect.
    """
    async with db.transaction() as tx:
        await require_asker(tx, asker, club_id)
        row = await hold(tx, club_id, approval_id)
        require_theirs(row, asker)
        move = move_of(row, Event.RESUBMIT)
        require_seen(row, seen_revision)
        if effect_body is not None:
            if row.effect_name is None:
                raise Invalid(
                    "effect_fixed",
                    "This approval does nothing by itself, and that stays so.",
                    advice="Withdraw it and ask anew.",
                    field="effectBody",
                )
            effect_named(row.effect_name).validate(effect_body)
        await tx.execute(
            insert(ApprovalRevision).values(
                club_id=club_id,
                id=new_id(),
                approval_id=approval_id,
                revision=row.revision,
                title=row.title,
                body=row.body,
                effect_body=row.effect_body,
            )
        )
        values: dict[str, Any] = {
            "title": valid_title(title, most=TITLE_MOST),
            "body": valid_text(body, "body", most=BODY_MOST),
            "revision": row.revision + 1,
            "activity_at": moved_now(),
        }
        if effect_body is not None:
            values["effect_body"] = dict(effect_body)
        await write(tx, asker, row, move, values)
    return int(row.revision) + 1


async def withdraw(db: Database, asker: Actor | AgentActor, club_id: UUID, approval_id: UUID) -> None:
    """Take one's own approval back while it can still be decided. Taking it back again changes nothing; somebody else's
    is unknown. Raises ``Conflict`` for one that was decided."""
    async with db.transaction() as tx:
        await let_in(tx, asker, club_id, Scope.DECISIONS)
        row = await hold(tx, club_id, approval_id)
        require_theirs(row, asker)
        if row.status == Status.WITHDRAWN:
            return
        move = move_of(row, Event.WITHDRAW)
        await write(tx, asker, row, move, {"decided_at": NOW})


async def comment(
    db: Database, author: Actor | AgentActor, club_id: UUID, approval_id: UUID, body: str
) -> UUID:
    """Say something about an approval, as its asker or as somebody who may decide it; answers the comment's id.

    What somebody else says is told to the asker. What the asker says to one that waits is new activity, as a change of
    it is. Raises ``NotFound`` for an approval that they may not see, and ``Conflict`` after ``COMMENTS_MOST``.
    """
    text = valid_text(body, "body", most=BODY_MOST)
    if not text:
        raise Invalid("comment_empty", "The comment is empty.", advice="Write something.", field="body")
    async with db.transaction() as tx:
        may_decide = await let_in(tx, author, club_id, Scope.DECISIONS)
        row = await hold(tx, club_id, approval_id)
        is_asker = is_theirs(row, author)
        if not (is_asker or may_decide):
            raise approval_unknown()
        comment_id = await say(tx, author, row, text)
        if not is_asker:
            await tell(tx, row, "approval.commented", str(comment_id))
        elif row.status == Status.PENDING:
            await tx.execute(
                update(Approval)
                .where(Approval.club_id == club_id, Approval.id == approval_id)
                .values(activity_at=moved_now())
            )
            await refresh(tx, club_id, [approval_id], kind=APPROVAL)
        await log(tx, club_id, author, "approval.commented", "approval", approval_id)
        tx.publish(Hint(club_id, TOPIC))
    return comment_id


async def say(
    tx: Transaction, author: Actor | AgentActor, row: Any, text: str, *, kind: str = "comment"
) -> UUID:
    """Keep what was said about the approval, whose row the caller holds."""
    mine = (ApprovalComment.club_id == row.club_id, ApprovalComment.approval_id == row.id)
    if await tx.scalar(select(func.count()).select_from(ApprovalComment).where(*mine)) >= COMMENTS_MOST:
        raise Conflict(
            "comments_most",
            f"There are {COMMENTS_MOST} comments on this already.",
            advice="Decide it, or ask anew.",
        )
    comment_id = new_id()
    who = {"person_id": author.person_id} if isinstance(author, Actor) else {"agent_id": author.agent_id}
    await tx.execute(
        insert(ApprovalComment).values(
            club_id=row.club_id, id=comment_id, approval_id=row.id, kind=kind, body=text, **who
        )
    )
    return comment_id


def _valid(ask: Ask) -> dict[str, Any]:
    if not _TYPE.match(ask.type):
        raise Invalid(
            "type_malformed",
            "A type is one word of small letters, digits and _, such as budget_override.",
            advice="Name the sort of question so.",
            field="type",
        )
    if ask.effect is not None:
        effect_named(ask.effect.name).validate(ask.effect.body)
    subject = ask.subject
    return {
        "type": ask.type,
        "title": valid_title(ask.title, most=TITLE_MOST),
        "body": valid_text(ask.body, "body", most=BODY_MOST),
        "subject_kind": None if subject is None else valid_key(subject.kind, field="about.kind"),
        "subject_key": None if subject is None else valid_key(subject.key, field="about.key"),
        "is_only_one": subject is not None and subject.is_only_one,
        "effect_name": None if ask.effect is None else ask.effect.name,
        "effect_body": None if ask.effect is None else dict(ask.effect.body),
    }


async def _refuse_second(tx: Transaction, club_id: UUID, ask: Ask) -> None:
    if ask.subject is None:
        return
    waiting = (
        await tx.execute(
            select(Approval.id, Approval.status, Approval.revision).where(
                Approval.club_id == club_id,
                Approval.type == ask.type,
                Approval.subject_kind == ask.subject.kind,
                Approval.subject_key == ask.subject.key,
                Approval.is_only_one,
                Approval.status.in_(("pending", "revision_requested")),
            )
        )
    ).one_or_none()
    if waiting is not None:
        raise Conflict(
            "approval_waiting",
            "An approval of this type waits about this already.",
            advice="Wait until it is decided, or change that one.",
            fresh=fresh(waiting),
        )
