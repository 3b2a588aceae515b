"""Functions on notices, unknown outcomes, recipient lists and drafts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.matrix.cases import ALLOWED, Case, Who, row
from tests.matrix.rows_clubs import NOT_SHOWN, not_shown
from tests.matrix.world import TARGET, World

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_staff
from lastcall.db.ids import new_id
from lastcall.operations import drafts, effects, notices, settling
from lastcall.operations.schedules import Immediate
from lastcall.operations.services import dismiss, lists, settle
from lastcall.operations.services import drafts as writing
from lastcall.operations.settling import Verdict
from lastcall.people.scopes import Scope

P = Permission

UNKNOWN = """
    update operations
       set state = 'indeterminate', code = 'submission_outcome_unknown', completed_at = lastcall_now(),
           claim_nonce = id, claim_account_id = $3, claim_worker_id = id, claim_journal_id = id,
           claim_fencing_token = 1, claim_generation = 1, claim_expires_at = lastcall_now() - interval '1 second',
           submitted_at = lastcall_now() - interval '3 minutes', actor_id = $4
     where club_id = $1 and id = $2
"""
POST = {"title": "Tonight", "text": "Doors at nine."}


async def unknown(w: World, tx: Any, actor: Any) -> Any:
    """The action that is there ended unknown, under the authority of whoever calls; with a notice."""
    operation_id = w.queued.operation_ids[0]
    await tx.raw.execute(UNKNOWN, w.club_id, operation_id, w.account_id, actor.person_id)
    await tx.raw.execute("select note_outcomes($1, $2, lastcall_now())", w.club_id, [operation_id])
    return operation_id


async def settled(w: World, tx: Any, actor: Any) -> object:
    operation_id = await unknown(w, tx, actor)
    return await settle.settle_unknown(w.db, actor, w.club_id, operation_id, Verdict.HAPPENED, "I saw it.")


def of_unknown(function: Any) -> Any:
    async def call(w: World, tx: Any, actor: Any) -> object:
        operation_id = await unknown(w, tx, actor)
        standing = await require_staff(tx, actor, w.club_id, scope=Scope.READ)
        return await function(tx, standing, actor, w.club_id, operation_id)

    return call


async def noticed(w: World, tx: Any, actor: Any) -> None:
    await unknown(w, tx, actor)
    standing = await require_staff(tx, actor, w.club_id, scope=Scope.READ)
    if not await notices.notices(tx, standing, actor, w.club_id):
        not_shown()


async def dismissed(w: World, tx: Any, actor: Any) -> None:
    await dismiss.dismiss_notices(w.db, actor, w.club_id, [await unknown(w, tx, actor)])


def inviting(case: Case) -> str | None:
    """Either permission is enough."""
    may = case.is_staff and not case.is_blocked and P.MANAGE_INSTANCES in case.permissions
    return ALLOWED if may and case.has(Scope.OPERATIONS) else None


def on_list(change: Callable[[World, Any, Any], Awaitable[object]]) -> Any:
    async def call(w: World, _: Any, actor: Any) -> object:
        made = await lists.create_list(w.db, w.owner, w.club_id, "Regulars", [TARGET])
        return await change(w, actor, made.id)

    return call


def save(w: World, actor: Any, draft_id: Any) -> Any:
    return writing.save_draft(w.db, actor, w.club_id, draft_id, POST, Immediate(), seen=0)


def on_draft(change: Callable[[World, Any, Any, Any], Awaitable[object]]) -> Any:
    async def call(w: World, tx: Any, actor: Any) -> object:
        draft_id = new_id()
        await tx.raw.execute(
            "insert into post_drafts (club_id, id, created_by, fields, schedule, revision)"
            """ values ($1, $2, $3, '{"title": "Tonight", "text": "Nine."}', '{"kind": "immediate"}', 1)""",
            w.club_id,
            draft_id,
            actor.person_id,
        )
        return await change(w, tx, actor, draft_id)

    return call


async def own_drafts(w: World, tx: Any, actor: Any, _: Any) -> None:
    found, _ = await drafts.post_drafts(tx, actor, w.club_id)
    if not found:
        not_shown()


def approved(w: World, _: Any, actor: Any) -> Any:
    body = {
        "payloads": [{"kind": "invite_member", "targetUserId": TARGET}],
        "schedule": {"kind": "immediate"},
    }
    return effects.OperationsEffect().apply(w.db, actor, w.club_id, new_id(), body, {})


HIDES = {"hides": (P.INVITE_GROUP_MEMBERS,), "hidden": "operation_unknown"}

NOTICES = [
    row(notices.notices, Who.STAFF, Scope.READ, noticed, hides=(P.INVITE_GROUP_MEMBERS,), hidden=NOT_SHOWN),
    row(
        dismiss.dismiss_notices,
        Who.STAFF,
        Scope.OPERATIONS,
        dismissed,
        hides=(P.INVITE_GROUP_MEMBERS,),
        hidden="notice_unknown",
    ),
    row(settle.settle_unknown, Who.STAFF, Scope.OPERATIONS, settled, **HIDES),
    row(settling.evidence_of, Who.STAFF, Scope.READ, of_unknown(settling.evidence_of), **HIDES),
    row(settling.findings_of, Who.STAFF, Scope.READ, of_unknown(settling.findings_of), **HIDES),
    *(
        row(function, Who.STAFF, Scope.OPERATIONS, call, P.INVITE_GROUP_MEMBERS, special=inviting)
        for function, call in (
            (
                lists.create_list,
                lambda w, _, a: lists.create_list(w.db, a, w.club_id, "Regulars", [TARGET]),
            ),
            (
                lists.edit_list,
                on_list(lambda w, a, one: lists.edit_list(w.db, a, w.club_id, one, "Others", [TARGET], 1)),
            ),
            (lists.delete_list, on_list(lambda w, a, one: lists.delete_list(w.db, a, w.club_id, one, 1))),
        )
    ),
    *(
        row(function, Who.STAFF, scope, on_draft(call), P.PUBLISH_POSTS)
        for function, scope, call in (
            (drafts.post_drafts, Scope.READ, own_drafts),
            (drafts.post_draft, Scope.READ, lambda w, tx, a, one: drafts.post_draft(tx, a, w.club_id, one)),
            (
                writing.discard_draft,
                Scope.OPERATIONS,
                lambda w, _, a, one: writing.discard_draft(w.db, a, w.club_id, one, 1),
            ),
            (
                writing.queue_draft,
                Scope.OPERATIONS,
                lambda w, _, a, one: writing.queue_draft(w.db, a, w.club_id, one, 1),
            ),
        )
    ),
    row(
        writing.save_draft,
        Who.STAFF,
        Scope.OPERATIONS,
        lambda w, _, a: save(w, a, new_id()),
        P.PUBLISH_POSTS,
    ),
    row(effects.OperationsEffect.apply, Who.STAFF, Scope.OPERATIONS, approved, P.INVITE_GROUP_MEMBERS),
]
