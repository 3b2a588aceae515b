"""Functions at a club's door that several standings open, and those on many requests."""

from __future__ import annotations

from typing import Any

from tests.matrix.cases import ALLOWED, Case, Who, row
from tests.matrix.world import World

from lastcall.access import deciding, invites, queries, request_queries
from lastcall.clubs.permissions import Permission
from lastcall.people.scopes import Scope

P = Permission
UNREAD = "join_request_unknown"


def or_for_agents(scope: Scope, answer: str) -> Any:
    """Whoever only manages agents gets this answer where ``manage_staff`` would be needed."""

    def special(case: Case) -> str | None:
        manages_agents = P.MANAGE_AGENTS in case.permissions and P.MANAGE_STAFF not in case.permissions
        return answer if manages_agents and case.is_staff and case.has(scope) else None

    return special


def of_invite(function: Any) -> Any:
    return lambda w, tx, a: function(tx, a, w.club_id, w.invite.id)


def renew(w: World, _: Any, actor: Any) -> Any:
    return invites.renew_invite(w.db, actor, w.club_id, w.invite.id)


def decide_many(w: World, _: Any, actor: Any) -> Any:
    return deciding.decide_many(w.db, actor, w.club_id, deciding.Verdict.REJECT, [w.request_id])


DOOR = [
    row(invites.renew_invite, Who.STAFF, Scope.ACCESS, renew, P.MANAGE_STAFF),
    row(
        invites.revoke_all_invites,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: invites.revoke_all_invites(w.db, a, w.club_id),
        P.MANAGE_STAFF,
        special=or_for_agents(Scope.ACCESS, ALLOWED),
    ),
    row(
        queries.invites_page,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: queries.invites_page(tx, a, w.club_id),
        P.MANAGE_STAFF,
        special=or_for_agents(Scope.READ, ALLOWED),
    ),
    *(
        row(
            one,
            Who.STAFF,
            Scope.READ,
            of_invite(one),
            P.MANAGE_STAFF,
            special=or_for_agents(Scope.READ, "invite_unknown"),
        )
        for one in (queries.invite, queries.uses_of_invite)
    ),
    row(
        request_queries.own_requests,
        Who.SELF,
        Scope.READ,
        lambda _, tx, a: request_queries.own_requests(tx, a),
    ),
    row(
        deciding.delete_join_request,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: deciding.delete_join_request(w.db, a, w.club_id, w.request_id),
        hides=(P.DECIDE_ACCESS,),
        unknown=UNREAD,
    ),
    row(
        deciding.decide_many,
        Who.STAFF,
        Scope.ACCESS,
        decide_many,
        hides=(P.DECIDE_ACCESS,),
        unknown=UNREAD,
    ),
]
