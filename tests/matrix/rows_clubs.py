"""Functions on clubs, access, actions and retention."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from typing import Any, NoReturn

from tests.matrix.cases import Case, Who, row
from tests.matrix.world import SLUG, TARGET, VRCHAT_ROLE, World

from lastcall.access import acceptance, deciding, invites, request_queries
from lastcall.access import queries as access_queries
from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import PersonSubject, record_join_request
from lastcall.clubs import activity_log, export, life, ownership, roles, service, staff, visibility
from lastcall.clubs import queries as clubs
from lastcall.clubs.activity_log import ExportForm
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_staff
from lastcall.clubs.queries import read_role, read_settings
from lastcall.clubs.roles import RoleFields
from lastcall.clubs.service import ClubFields
from lastcall.clubs.visibility import Audience, Category
from lastcall.decisions.retention import controls, explain, many
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.decisions.retention.many import Control, Seen
from lastcall.errors import NotFound
from lastcall.operations import queries as operations
from lastcall.operations.schedules import Immediate
from lastcall.operations.services import cancel, enqueue
from lastcall.people.scopes import Scope

P = Permission
NOT_SHOWN = "not_shown"
A_ROLE = RoleFields("Another")


def not_shown() -> NoReturn:
    raise NotFound(NOT_SHOWN, "It is not in the answer.")


async def shown(answer: Awaitable[Any], thing: object = None) -> None:
    """Raise as for an unknown thing where the answer holds nothing of it."""
    found = await answer
    if not found or (thing is not None and thing not in found):
        not_shown()


async def role_seen(w: World, tx: Any, name: str = "spare") -> datetime:
    return (await read_role(tx, w.club_id, w.roles[name])).updated_at


async def edit_club(w: World, tx: Any, actor: Any) -> object:
    seen = (await read_settings(tx, w.club_id)).updated_at
    return await service.edit_club(w.db, actor, w.club_id, ClubFields("Matrix", SLUG, "UTC", 30), seen)


async def edit_role(w: World, tx: Any, actor: Any) -> object:
    seen = await role_seen(w, tx)
    return await roles.edit_role(w.db, actor, w.club_id, w.roles["spare"], A_ROLE, seen)


async def delete_role(w: World, tx: Any, actor: Any) -> object:
    return await roles.delete_role(w.db, actor, w.club_id, w.roles["spare"], await role_seen(w, tx))


PAUSED = (
    "update clubs set state = 'paused', paused_at = lastcall_now(), pause_reason = 'manual' where id = $1"
)
ARCHIVED = "update clubs set state = 'archived', archived_at = lastcall_now() where id = $1"


async def resume(w: World, tx: Any, actor: Any) -> object:
    await tx.raw.execute(PAUSED, w.club_id)
    return await life.resume_club(w.db, actor, w.club_id)


async def unarchive(w: World, tx: Any, actor: Any) -> object:
    await tx.raw.execute(ARCHIVED, w.club_id)
    return await life.unarchive_club(w.db, actor, w.club_id)


async def delete(w: World, tx: Any, actor: Any) -> object:
    await tx.raw.execute(ARCHIVED, w.club_id)
    return await life.delete_club(w.db, actor, w.club_id, confirm_slug=SLUG)


async def clubs_of(w: World, tx: Any, actor: Any) -> None:
    found = await clubs.clubs_of(tx, actor)
    await shown(_given({one.id for one in found}), w.club_id)


async def _given(value: object) -> object:
    return value


async def withdraw_own(w: World, tx: Any, actor: Any) -> object:
    made = await create_invite(w.db, w.owner, w.club_id, [w.roles["spare"]])
    subject = PersonSubject(actor.person_id, None)
    request_id = await record_join_request(w.db, w.club_id, made.id, subject)
    return await deciding.withdraw_join_request(w.db, actor, w.club_id, request_id)


def queued(kind: str) -> Any:
    payload = {"kind": kind, "targetUserId": TARGET} | (
        {"roleId": VRCHAT_ROLE} if kind == "assign_role" else {}
    )
    return lambda w, _, a: enqueue.enqueue(w.db, a, w.club_id, "request-of-matrix", [payload], Immediate())


def listed(function: Any, *ids: str) -> Any:
    """A read of actions: it takes the standing that its caller asked for."""

    async def call(w: World, tx: Any, actor: Any) -> None:
        standing = await require_staff(tx, actor, w.club_id, scope=Scope.READ)
        given = {"operation": w.queued.operation_ids[0], "request": w.queued.request_id}
        await shown(function(tx, standing, actor, w.club_id, *(given[one] for one in ids)))

    return call


async def history(w: World, tx: Any, actor: Any) -> None:
    await tx.raw.execute(
        "select settle_unsent($1, $2, 'cancelled', 'cancelled_by_staff', lastcall_now())",
        w.club_id,
        w.queued.operation_ids[0],
    )
    await listed(operations.history)(w, tx, actor)


def controlled(function: Any) -> Any:
    """A control of retention, by hand, on an item that nobody looked at yet."""
    return lambda w, _, a: function(w.db, a, w.club_id, JOIN_REQUEST, w.request_id, seen_version=0)


async def control_one_of_many(w: World, _: Any, actor: Any) -> None:
    item = Seen(JOIN_REQUEST, w.request_id, 0)
    (outcome,) = await many.control_many(w.db, actor, w.club_id, Control.KEEP, [item])
    if outcome.refusal is not None:
        raise outcome.refusal


def owner_cannot_accept(case: Case) -> str | None:
    if case.is_owner and case.has(Scope.ACCESS):
        return "invite_of_ones_own"
    return None


def new_invite(kind: InviteKind) -> Any:
    return lambda w, _, a: invites.create_invite(w.db, a, w.club_id, [w.roles["spare"]], kind=kind)


def on_club(function: Any, *values: Any) -> Any:
    return lambda w, _, a: function(w.db, a, w.club_id, *values)


def of_club(function: Any, *values: Any) -> Any:
    return lambda w, tx, a: function(tx, a, w.club_id, *values)


def spare(function: Any) -> Any:
    """Give or take the role of which everybody may hand on."""
    return lambda w, _, a: function(w.db, a, w.club_id, w.roles["spare"], w.guest.person_id)


def add_club(w: World, _: Any, actor: Any) -> Any:
    return service.add_club(w.db, actor, "New", "new", "UTC", w.keeper.person_id)


def create_club(w: World, _: Any, actor: Any) -> Any:
    return service.create_club(w.db, actor, "New", "new", "UTC", "newcomer@example.org")


def transfer(w: World, _: Any, actor: Any) -> Any:
    return ownership.transfer_club(w.db, actor, w.club_id, w.keeper.person_id)


def set_visibility(w: World, _: Any, actor: Any) -> Any:
    return visibility.set_visibility(w.db, actor, w.club_id, Category.GROUP_SIZE, Audience.OWNER, [], None)


UNREAD = "join_request_unknown"
OWNER_OR_OPERATOR = Who.OWNER_OR_OPERATOR

CLUBS = [
    row(clubs.clubs_of, Who.STAFF, Scope.READ, clubs_of, unknown=NOT_SHOWN),
    row(clubs.club_by_slug, Who.STAFF, Scope.READ, lambda _, tx, a: clubs.club_by_slug(tx, a, SLUG)),
    row(clubs.club_settings, OWNER_OR_OPERATOR, Scope.READ, of_club(clubs.club_settings)),
    row(clubs.clubs_page, Who.OPERATOR, Scope.OPERATOR, lambda _, tx, a: clubs.clubs_page(tx, a)),
    row(clubs.staff_roles, Who.STAFF, Scope.READ, of_club(clubs.staff_roles), P.MANAGE_STAFF),
    row(
        clubs.role,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: clubs.role(tx, a, w.club_id, w.roles["spare"]),
        P.MANAGE_STAFF,
    ),
    row(clubs.roster, Who.STAFF, Scope.READ, of_club(clubs.roster), P.MANAGE_STAFF),
    row(service.create_club, Who.OPERATOR, Scope.OPERATOR, create_club),
    row(service.add_club, Who.OPERATOR, Scope.OPERATOR, add_club),
    row(service.edit_club, OWNER_OR_OPERATOR, Scope.CLUBS, edit_club),
    row(life.pause_club, OWNER_OR_OPERATOR, Scope.CLUBS, on_club(life.pause_club)),
    row(life.resume_club, OWNER_OR_OPERATOR, Scope.CLUBS, resume),
    row(life.archive_club, OWNER_OR_OPERATOR, Scope.CLUBS, on_club(life.archive_club), is_recent=True),
    row(life.unarchive_club, OWNER_OR_OPERATOR, Scope.CLUBS, unarchive),
    row(life.delete_club, OWNER_OR_OPERATOR, Scope.CLUBS, delete, is_recent=True),
    row(ownership.transfer_club, OWNER_OR_OPERATOR, Scope.CLUBS, transfer, is_recent=True),
    row(export.export_club, Who.OWNER, Scope.CLUBS, on_club(export.export_club)),
    row(roles.create_role, Who.OWNER, Scope.STAFF, on_club(roles.create_role, A_ROLE)),
    row(roles.edit_role, Who.OWNER, Scope.STAFF, edit_role),
    row(roles.delete_role, Who.OWNER, Scope.STAFF, delete_role),
    row(staff.assign_role, Who.STAFF, Scope.STAFF, spare(staff.assign_role), P.MANAGE_STAFF),
    row(staff.revoke_role, Who.STAFF, Scope.STAFF, spare(staff.revoke_role), P.MANAGE_STAFF),
    row(visibility.visibility_of, Who.OWNER, Scope.READ, of_club(visibility.visibility_of)),
    row(visibility.set_visibility, Who.OWNER, Scope.CLUBS, set_visibility),
    row(
        visibility.readable,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: shown(visibility.readable(tx, w.club_id, a), Category.GROUP_SIZE),
        unknown=NOT_SHOWN,
        no_actor=NOT_SHOWN,
    ),
    row(
        activity_log.activity_page, Who.STAFF, Scope.READ, of_club(activity_log.activity_page), P.MANAGE_STAFF
    ),
    row(
        activity_log.export_activity,
        Who.STAFF,
        Scope.READ,
        on_club(activity_log.export_activity, ExportForm.CSV),
        P.MANAGE_STAFF,
    ),
]

ACCESS = [
    row(invites.create_invite, Who.STAFF, Scope.ACCESS, new_invite(InviteKind.PERSON), P.MANAGE_STAFF),
    row(
        invites.create_invite,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: invites.create_invite(w.db, a, w.club_id, [], kind=InviteKind.AGENT),
        P.MANAGE_AGENTS,
        variant="for an agent",
    ),
    row(
        invites.create_invite,
        Who.STAFF,
        Scope.ACCESS,
        new_invite(InviteKind.BOTH),
        P.MANAGE_STAFF,
        P.MANAGE_AGENTS,
        variant="for both",
    ),
    row(
        invites.revoke_invite,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: invites.revoke_invite(w.db, a, w.club_id, w.invite.id),
        P.MANAGE_STAFF,
    ),
    row(
        access_queries.invite_summary,
        Who.ANYBODY,
        None,
        lambda w, _, a: access_queries.invite_summary(w.db, w.invite.token, a),
    ),
    row(
        acceptance.accept_invite,
        Who.SELF,
        Scope.ACCESS,
        lambda w, _, a: acceptance.accept_invite(w.db, a, w.invite.token),
        is_judged_again=True,
        special=owner_cannot_accept,
    ),
    row(
        request_queries.join_requests_page,
        Who.STAFF,
        Scope.READ,
        of_club(request_queries.join_requests_page),
        hides=(P.DECIDE_ACCESS,),
        unknown=UNREAD,
    ),
    row(
        request_queries.join_request,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: request_queries.join_request(tx, a, w.club_id, w.request_id),
        hides=(P.DECIDE_ACCESS,),
        unknown=UNREAD,
    ),
    *(
        row(
            one,
            Who.STAFF,
            Scope.ACCESS,
            lambda w, _, a, one=one: one(w.db, a, w.club_id, w.request_id),
            hides=(P.DECIDE_ACCESS,),
            unknown=UNREAD,
        )
        for one in (deciding.approve_join_request, deciding.reject_join_request)
    ),
    row(deciding.withdraw_join_request, Who.SELF, Scope.ACCESS, withdraw_own, variant="one's own"),
    row(
        deciding.withdraw_join_request,
        Who.SELF,
        Scope.ACCESS,
        lambda w, _, a: deciding.withdraw_join_request(w.db, a, w.club_id, w.request_id),
        answer=UNREAD,
        variant="somebody else's",
    ),
    *(
        row(
            control,
            Who.STAFF,
            Scope.ACCESS,
            controlled(control),
            P.MANAGE_RETENTION,
            hides=(P.DECIDE_ACCESS,),
            unknown=UNREAD,
        )
        for control in (controls.keep, controls.unkeep, controls.archive, controls.revive)
    ),
    row(
        many.control_many,
        Who.STAFF,
        Scope.ACCESS,
        control_one_of_many,
        P.MANAGE_RETENTION,
        hides=(P.DECIDE_ACCESS,),
    ),
    row(
        explain.explain_item,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: explain.explain_item(tx, a, w.club_id, JOIN_REQUEST, w.request_id),
        hides=(P.DECIDE_ACCESS,),
        unknown=UNREAD,
    ),
]

OPERATIONS = [
    *(
        row(enqueue.enqueue, Who.STAFF, Scope.OPERATIONS, queued(kind), needed, variant=kind)
        for kind, needed in {
            "assign_role": P.ASSIGN_VRCHAT_ROLES,
            "invite_member": P.INVITE_GROUP_MEMBERS,
            "ban_member": P.MANAGE_BANS,
        }.items()
    ),
    row(
        cancel.cancel,
        Who.STAFF,
        Scope.OPERATIONS,
        lambda w, _, a: cancel.cancel(w.db, a, w.club_id, w.queued.operation_ids[0], 1),
        P.MANAGE_SCHEDULED_ACTIONS,
        hides=(P.INVITE_GROUP_MEMBERS,),
        hidden="operation_unknown",
    ),
    *(
        row(one, Who.STAFF, Scope.READ, call, hides=(P.INVITE_GROUP_MEMBERS,), hidden=hidden)
        for one, call, hidden in (
            (operations.upcoming, listed(operations.upcoming), NOT_SHOWN),
            (operations.history, history, NOT_SHOWN),
            (operations.operation, listed(operations.operation, "operation"), "operation_unknown"),
            (
                operations.request_operations,
                listed(operations.request_operations, "request"),
                "request_unknown",
            ),
        )
    ),
]
