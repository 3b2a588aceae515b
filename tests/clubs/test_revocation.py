"""Authority that is taken away is gone at once: for what begins later, and for what is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.clubs.house import House, contend, overtake, person

from lastcall.access.invites import create_invite
from lastcall.clubs import policy
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_owner, standing_of
from lastcall.clubs.roles import RoleFields, create_role, delete_role
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.clubs.visibility import Audience, Category, set_visibility
from lastcall.errors import NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.people.service import block_person
from lastcall.testing.staff import change_role

Act = Callable[[House], Awaitable[Any]]

TAKES_AWAY: dict[str, Act] = {
    "the role is taken from them": lambda club: revoke_role(
        club.db, club.owner, club.club_id, club.roles["admin"], club.deputy.person_id
    ),
    "the permission is taken from the role": lambda club: change_role(
        club.db, club.owner, club.club_id, club.roles["admin"], permissions=[Permission.VIEW_MEMBERS]
    ),
    "the role may hand on nothing any more": lambda club: change_role(
        club.db, club.owner, club.club_id, club.roles["admin"], assignable=[]
    ),
    "they are blocked": lambda club: block_person(club.db, None, club.deputy.person_id),
}
ACTS: dict[str, Act] = {
    "assign a role": lambda club: assign_role(
        club.db, club.deputy, club.club_id, club.roles["moderator"], club.guest.person_id
    ),
    "take a role": lambda club: revoke_role(
        club.db, club.deputy, club.club_id, club.roles["moderator"], club.guest.person_id
    ),
    "invite": lambda club: create_invite(club.db, club.deputy, club.club_id, [club.roles["moderator"]]),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("change", TAKES_AWAY)
async def test_a_call_that_began_before_the_change_and_is_judged_after_it_is_refused(
    club: House, change: str, act: str
) -> None:
    outcome = await contend(club.db, lambda: TAKES_AWAY[change](club), lambda: ACTS[act](club))
    assert isinstance(outcome, NotAllowed | NotFound), outcome
    assert await club.holds(club.guest) == set()
    assert await club.run("select count(*) from invites where club_id = $1") == 0


async def test_an_owner_who_gave_the_club_away_is_refused_in_mid_call(club: House) -> None:
    from lastcall.clubs.ownership import transfer_club

    outcome = await contend(
        club.db,
        lambda: transfer_club(club.db, club.owner, club.club_id, club.deputy.person_id),
        lambda: set_visibility(
            club.db, club.owner, club.club_id, Category.GROUP_SIZE, Audience.PUBLIC, [], None
        ),
    )
    assert isinstance(outcome, NotFound)
    assert await club.run("select count(*) from visibility where club_id = $1") == 0


async def test_whoever_takes_authority_away_returns_only_when_nothing_runs_under_it(club: House) -> None:
    async def invites() -> None:
        await create_invite(club.db, club.deputy, club.club_id, [club.roles["moderator"]])

    outcome = await contend(
        club.db, invites, lambda: TAKES_AWAY["the role is taken from them"](club), "update club_gates"
    )
    assert outcome is None, "the revocation waited for the invite and went through"
    with pytest.raises(NotFound):
        await invites()


async def test_twin_without_the_gate_something_is_done_after_the_revocation_returned(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "_HOLD_AND_LOOK", policy._LOOK)

    async def invites() -> None:
        await create_invite(club.db, club.deputy, club.club_id, [club.roles["moderator"]])

    await overtake(club.db, invites, lambda: TAKES_AWAY["the role is taken from them"](club))
    rows = await club.db.pool.fetchval(
        "select i.id > a.id from invites i, activity_log a where i.club_id = $1 and a.club_id = $1"
        " and a.action = 'staff.role_revoked'",
        club.club_id,
    )
    assert rows is not None, "an invite of somebody whose revocation had returned before it was saved"


async def test_two_commands_share_the_gate(club: House) -> None:
    async with club.db.transaction():
        await create_invite(club.db, club.deputy, club.club_id, [club.roles["moderator"]])
        other = create_invite(club.db, club.owner, club.club_id, [club.roles["moderator"]])
        await asyncio.wait_for(asyncio.ensure_future(other), 5)
    assert await club.run("select count(*) from invites where club_id = $1") == 2


CHANGES: dict[str, Act] = {
    "create": lambda club: create_role(club.db, club.owner, club.club_id, RoleFields("Door")),
    "edit": lambda club: change_role(
        club.db, club.owner, club.club_id, club.roles["moderator"], permissions=[]
    ),
    "delete": lambda club: _delete(club, "event_staff"),
    "assign": lambda club: assign_role(
        club.db, club.owner, club.club_id, club.roles["moderator"], club.guest.person_id
    ),
    "revoke": lambda club: revoke_role(
        club.db, club.owner, club.club_id, club.roles["admin"], club.deputy.person_id
    ),
    "visibility": lambda club: set_visibility(
        club.db, club.owner, club.club_id, Category.GROUP_SIZE, Audience.OWNER, [], None
    ),
    "block": lambda club: block_person(club.db, None, club.deputy.person_id),
}


async def _delete(club: House, key: str) -> None:
    seen = await club.role(key)
    await delete_role(club.db, club.owner, club.club_id, seen.id, seen.updated_at)


@pytest.mark.parametrize("change", CHANGES)
async def test_each_change_of_authority_moves_the_gate(club: House, change: str) -> None:
    before = await club.gate()
    await CHANGES[change](club)
    assert await club.gate() > before


# Tokens: a scope never gives more than its person may, and its lack is told before anything else.


def token(actor: Actor, *scopes: Scope) -> Actor:
    return Actor(actor.person_id, actor.display_name, actor.is_operator, scopes=frozenset(scopes))


async def test_a_token_does_what_its_scopes_and_its_person_both_allow(club: House) -> None:
    async with club.db.read() as tx:
        for lacking in (token(club.owner), token(club.owner, Scope.READ, Scope.CLUBS)):
            with pytest.raises(NotAllowed) as refused:
                await require_owner(tx, lacking, club.club_id, scope=Scope.STAFF)
            assert refused.value.code == "scope_missing"
        assert (
            await require_owner(tx, token(club.owner, Scope.STAFF), club.club_id, scope=Scope.STAFF)
        ).is_owner
        with pytest.raises(NotFound):
            await require(
                tx,
                token(club.guest, Scope.STAFF),
                club.club_id,
                Permission.MANAGE_STAFF,
                scope=Scope.STAFF,
            )
        with pytest.raises(NotAllowed) as refused:
            await standing_of(tx, token(club.guest), club.club_id, scope=Scope.READ)
        assert refused.value.code == "scope_missing", "also of a club that it could not see"


async def test_an_operators_token_without_the_scope_is_no_operator(club: House) -> None:
    from lastcall.clubs.life import pause_club
    from lastcall.clubs.queries import clubs_page

    operator = await person(club.db, "operator", operator=True)
    with pytest.raises(NotFound):
        await pause_club(club.db, token(operator, Scope.CLUBS), club.club_id)
    async with club.db.read() as tx:
        with pytest.raises(NotAllowed):
            await clubs_page(tx, token(operator, Scope.READ))
    await pause_club(club.db, token(operator, Scope.OPERATOR), club.club_id)
    assert await club.run("select state from clubs where id = $1") == "paused"
