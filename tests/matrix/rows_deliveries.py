"""Functions on what people were told, and on what could not be delivered."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.matrix.cases import Who, row
from tests.matrix.rows_clubs import NOT_SHOWN, not_shown
from tests.matrix.world import World

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_staff
from lastcall.db.ids import new_id
from lastcall.decisions.deliveries import dead, notices
from lastcall.people.scopes import Scope

P = Permission
_NOTICE = """
    insert into deliveries (club_id, id, kind, channel, person_id, dedup, data, state, ended_at)
    values ($1, $2, 'retention.digest', 'app', $3, 'one', '{"day": "2026-01-01", "join_request": 1}', 'delivered',
            lastcall_now())
"""
_DEAD = """
    insert into deliveries (club_id, id, kind, channel, person_id, dedup, data, state, attempts, ended_at)
    values ($1, $2, 'retention.digest', 'mail', $3, 'one', '{}', 'dead', 8, lastcall_now())
"""


async def told(w: World, tx: Any, actor: Any) -> None:
    await tx.raw.execute(_NOTICE, w.club_id, new_id(), actor.person_id)
    standing = await require_staff(tx, actor, w.club_id, scope=Scope.READ)
    if not (await notices.notices_of(tx, actor, {w.club_id: standing})).items:
        not_shown()


async def one_dead(w: World, tx: Any) -> UUID:
    delivery_id = new_id()
    await tx.raw.execute(_DEAD, w.club_id, delivery_id, w.owner.person_id)
    return delivery_id


async def of_club(w: World, tx: Any, actor: Any) -> None:
    await one_dead(w, tx)
    if not await dead.dead_of_club(tx, actor, w.club_id):
        not_shown()


async def again(w: World, tx: Any, actor: Any) -> None:
    await dead.try_again(w.db, actor, w.club_id, await one_dead(w, tx))


DELIVERIES = [
    row(notices.notices_of, Who.STAFF, Scope.READ, told, hides=(P.DECIDE_ACCESS,), hidden=NOT_SHOWN),
    row(
        notices.dismiss_notices,
        Who.STAFF,
        Scope.DECISIONS,
        lambda w, _, actor: notices.dismiss_notices(w.db, actor, w.club_id, [new_id()]),
    ),
    row(dead.dead_of_club, Who.STAFF, Scope.READ, of_club, P.MANAGE_CONNECTION),
    row(
        dead.dead_everywhere,
        Who.OPERATOR,
        Scope.OPERATOR,
        lambda _, tx, actor: dead.dead_everywhere(tx, actor),
    ),
    row(dead.try_again, Who.STAFF_OR_OPERATOR, Scope.CLUBS, again, P.MANAGE_CONNECTION),
]
