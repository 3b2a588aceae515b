"""Functions on a club's agents."""

from __future__ import annotations

from typing import Any

from tests.matrix.cases import Case, Who, row
from tests.matrix.world import World

from lastcall.access.agents import queries, service
from lastcall.clubs.permissions import Permission
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

NEEDS = Permission.MANAGE_AGENTS


def by_its_sight(case: Case) -> str | None:
    """The agent reads the inbox, so that its key is made by somebody who may see join requests themselves."""
    manages = NEEDS in case.permissions and Permission.DECIDE_ACCESS not in case.permissions
    return "grant_not_yours" if manages and case.is_staff and case.has(Scope.ACCESS) else None


def command(function: Any, **other: Any) -> Any:
    return row(
        function,
        Who.STAFF,
        Scope.ACCESS,
        lambda w, _, a: function(w.db, a, w.club_id, w.agent.agent_id),
        NEEDS,
        **other,
    )


async def edit(w: World, tx: Any, actor: Any) -> object:
    seen = (await queries.agent_in(tx, w.club_id, w.agent.agent_id)).version
    fields = service.AgentFields("Robot", None, frozenset({AgentGrant.ASK}))
    return await service.edit_agent(w.db, actor, w.club_id, w.agent.agent_id, fields, seen)


def of_agent(function: Any) -> Any:
    return lambda w, tx, a: function(tx, a, w.club_id, w.agent.agent_id)


AGENTS = [
    row(
        queries.agents_of, Who.STAFF, Scope.READ, lambda w, tx, a: queries.agents_of(tx, a, w.club_id), NEEDS
    ),
    row(queries.read_agent, Who.STAFF, Scope.READ, of_agent(queries.read_agent), NEEDS),
    row(service.edit_agent, Who.STAFF, Scope.ACCESS, edit, NEEDS),
    *(
        command(one)
        for one in (
            service.pause_agent,
            service.resume_agent,
            service.block_agent,
            service.unblock_agent,
            service.take_responsibility,
            service.revoke_keys,
        )
    ),
    command(service.rotate_key, special=by_its_sight),
    # It never asked at a door, so that there is nothing to renew.
    command(service.refresh_claim, special=by_its_sight, answer="key_claimed"),
    row(queries.keys_of, Who.STAFF, Scope.READ, of_agent(queries.keys_of), NEEDS),
]
