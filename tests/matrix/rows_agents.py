"""Functions on a club's agents."""

from __future__ import annotations

from typing import Any

from tests.matrix.cases import Who, row

from lastcall.access.agents import queries
from lastcall.clubs.permissions import Permission
from lastcall.people.scopes import Scope

NEEDS = Permission.MANAGE_AGENTS


def of_agent(function: Any) -> Any:
    return lambda w, tx, a: function(tx, a, w.club_id, w.agent.agent_id)


AGENTS = [
    row(
        queries.agents_of, Who.STAFF, Scope.READ, lambda w, tx, a: queries.agents_of(tx, a, w.club_id), NEEDS
    ),
    row(queries.read_agent, Who.STAFF, Scope.READ, of_agent(queries.read_agent), NEEDS),
    row(queries.keys_of, Who.STAFF, Scope.READ, of_agent(queries.keys_of), NEEDS),
]
