"""Functions on what waits, over one club and over all."""

from __future__ import annotations

from typing import Any

from tests.matrix.cases import Row, Who, row
from tests.matrix.rows_clubs import NOT_SHOWN, not_shown
from tests.matrix.world import World

from lastcall.clubs.permissions import Permission
from lastcall.decisions.inbox import acts, away, reach
from lastcall.decisions.inbox.acts import Said, Ticked
from lastcall.decisions.inbox.away import Until
from lastcall.decisions.inbox.item import Act
from lastcall.decisions.inbox.sources.join_requests import JOIN_REQUESTS
from lastcall.people.scopes import Scope

DECIDES = (Permission.DECIDE_ACCESS,)


async def everywhere(w: World, tx: Any, actor: Any) -> None:
    if w.club_id not in (await reach.reach_everywhere(tx, actor)).held:
        not_shown()


async def dismissed(w: World, _: Any, actor: Any) -> None:
    item = Ticked(JOIN_REQUESTS, w.club_id, w.request_id)
    (outcome,) = await acts.act_on(w.db, actor, Act.DISMISS, [item], Said())
    if outcome.problem is not None:
        raise outcome.problem


async def dismissed_in_club(w: World, _: Any, actor: Any) -> None:
    item = Ticked(JOIN_REQUESTS, w.club_id, w.request_id)
    (outcome,) = await acts.act_in_club(w.db, actor, w.club_id, Act.DISMISS, [item], Said())
    if outcome.problem is not None:
        raise outcome.problem


INBOX: list[Row] = [
    row(reach.reach_everywhere, Who.STAFF, Scope.READ, everywhere, unknown=NOT_SHOWN),
    row(reach.reach_in, Who.STAFF, Scope.READ, lambda w, tx, a: reach.reach_in(tx, a, w.club_id)),
    row(acts.act_on, Who.STAFF, Scope.ACCESS, dismissed, hides=DECIDES),
    row(acts.act_in_club, Who.STAFF, Scope.ACCESS, dismissed_in_club, hides=DECIDES),
    row(
        away.put_away,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: away.put_away(w.db, a, w.club_id, JOIN_REQUESTS, w.request_id, Until()),
        hides=DECIDES,
    ),
    row(
        away.show_again,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: away.show_again(w.db, a, w.club_id, JOIN_REQUESTS, w.request_id),
        hides=DECIDES,
    ),
]
