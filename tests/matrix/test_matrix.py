"""Who may call what: every function of the rooms that takes an actor, by every standing there is.

The expected answer follows from one line about the function; what differs is collected and told together. Each call is
rolled back, so one club serves all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.matrix.cases import ALLOWED, Case, Row, expected
from tests.matrix.functions import WITHIN_A_COMMAND, functions_of, modules, name_of, services, without_a_row
from tests.matrix.rows_agents import AGENTS
from tests.matrix.rows_clubs import ACCESS, CLUBS, OPERATIONS
from tests.matrix.rows_connections import CONNECTIONS
from tests.matrix.rows_decisions import DECISIONS
from tests.matrix.rows_deliveries import DELIVERIES
from tests.matrix.rows_door import DOOR
from tests.matrix.rows_events import EVENTS
from tests.matrix.rows_inbox import INBOX
from tests.matrix.rows_notices import NOTICES
from tests.matrix.rows_operations import CHANGES, READS
from tests.matrix.rows_people import ACCOUNT, OPERATORS
from tests.matrix.rows_reads import PROVIDER_READS
from tests.matrix.rows_slack import SLACK
from tests.matrix.rows_spending import SPENDING
from tests.matrix.world import World, build, tokens

from lastcall.clubs import life, policy, roles
from lastcall.clubs import queries as clubs
from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.clubs.policy import Standing
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.db.database import Database
from lastcall.decisions.retention import controls
from lastcall.errors import LastcallError, NotAllowed
from lastcall.people import api_tokens
from lastcall.people import queries as people
from lastcall.people.actor import Actor
from lastcall.people.service import block_person, set_operator, unblock_person

PARTS = {
    "clubs": CLUBS,
    "access": ACCESS,
    "door": DOOR,
    "agents": AGENTS,
    "slack": SLACK,
    "spending": SPENDING,
    "operations": OPERATIONS,
    "changes": CHANGES,
    "notices": NOTICES,
    "decisions": DECISIONS,
    "deliveries": DELIVERIES,
    "inbox": INBOX,
    "events": EVENTS,
    "connections": CONNECTIONS,
    "account": ACCOUNT,
    "operators": OPERATORS,
    "reads": READS,
    "provider_reads": PROVIDER_READS,
}
ROWS = [row for part in PARTS.values() for row in part]

FOR_LATER_PARTS = {
    Permission.MANAGE_EVENT_MEDIA,
    Permission.VIEW_EVENT_OPERATIONS,
    Permission.VIEW_MEMBERS,
    Permission.APPROVE_JOIN_REQUESTS,
    Permission.REMOVE_GROUP_MEMBERS,
    Permission.MANAGE_INSTANCES,
    Permission.EXPORT_ANALYTICS,
}
"""Permissions that roles can have already and that nothing asks for yet."""


class RolledBackError(Exception):
    pass


async def answer_to(world: World, row: Row, actor: Actor | None) -> str:
    """``ALLOWED`` or the code of the refusal; nothing of it stays."""
    try:
        async with world.db.transaction() as tx:
            made = row.call(world, tx, actor)
            if inspect.isawaitable(made):
                made = await made
            if hasattr(made, "__aiter__"):
                async for _ in made:
                    pass
            raise RolledBackError
    except RolledBackError:
        return ALLOWED
    except LastcallError as refusal:
        return refusal.code


async def differences(world: World, row: Row, cases: Iterable[Case]) -> list[str]:
    found = []
    for case in cases:
        answer, right = await answer_to(world, row, case.actor), expected(row, case)
        if answer not in right:
            found.append(f"{row.name}, {case.name}: {answer} instead of {' or '.join(sorted(right))}")
    return found


def takes_nobody(row: Row) -> bool:
    given = inspect.signature(row.function).parameters.values()
    return any(str(one.annotation) == "Actor | None" for one in given)


def standing_cases(world: World, row: Row) -> list[Case]:
    cases = [case for case in [*world.cases, *tokens(world, row.scope)] if case.is_for(row)]
    return [case for case in cases if case.actor is not None or takes_nobody(row)]


async def ended_differences(world: World, rows: list[Row]) -> list[str]:
    """Somebody whose authority ended in a transaction that was committed just before the calls, who comes with what
    was found out about them before that."""
    db, who, found = world.db, world.leaving, []
    holds = (db, world.owner, world.club_id, world.roles["admin"], who.person_id)
    holder = Case("admin until now", who, is_staff=True, permissions=ALL_PERMISSIONS)
    runner = replace(who, is_operator=True)

    async def all_of(case: Case) -> None:
        for row in rows:
            found.extend(await differences(world, row, [case]))

    await assign_role(*holds)
    await all_of(holder)
    await revoke_role(*holds)
    await all_of(Case("role revoked", who))
    await set_operator(db, None, who.person_id, is_operator=True)
    await all_of(Case("operator until now", runner, is_operator=True))
    await set_operator(db, None, who.person_id, is_operator=False)
    await all_of(Case("operator no longer", runner))
    await assign_role(*holds)
    await set_operator(db, None, who.person_id, is_operator=True)
    await block_person(db, None, who.person_id)
    await all_of(Case("blocked", runner, is_blocked=True))
    await unblock_person(db, None, who.person_id)
    await revoke_role(*holds)
    await set_operator(db, None, who.person_id, is_operator=False)
    return found


@pytest.fixture(scope="module")
def worlds() -> dict[str, World]:
    return {}


@pytest.fixture
async def world(db: Database, shared_url: str, worlds: dict[str, World]) -> World:
    """The one of this module, on this test's connections; commands that are transactions of their own join the one
    that is rolled back."""
    if shared_url not in worlds:
        worlds[shared_url] = await build(db, {one.needs for one in ROWS if len(one.needs) > 1})
    transaction = db.transaction
    setattr(db, "transaction", lambda *, outermost=False: transaction())  # noqa: B010 - of this object alone
    return replace(worlds[shared_url], db=db)


def test_every_function_that_takes_an_actor_has_a_row() -> None:
    found = services()
    assert without_a_row(found, [one.function for one in ROWS]) == []
    assert {name_of(one.function) for one in ROWS} <= set(found)
    known = {name_of(one) for module in modules() for one in functions_of(module)}
    assert set(WITHIN_A_COMMAND) <= known


def test_a_new_function_is_missed() -> None:
    """The twin."""

    async def new_command(db: Database, actor: Actor) -> None: ...

    found = services() | {name_of(new_command): new_command}
    assert without_a_row(found, [one.function for one in ROWS]) == [name_of(new_command)]


def test_every_permission_is_needed_somewhere_or_waits_for_a_later_part() -> None:
    needed = {permission for one in ROWS for permission in one.needs}
    assert needed | FOR_LATER_PARTS == ALL_PERMISSIONS
    assert needed & FOR_LATER_PARTS == set()


@pytest.mark.parametrize("part", PARTS)
async def test_everybody_may_do_what_the_table_says_and_nothing_else(world: World, part: str) -> None:
    found = []
    for one in PARTS[part]:
        found += await differences(world, one, standing_cases(world, one))
    assert found == [], "\n".join(found)


async def test_authority_that_ended_a_moment_ago_is_none(world: World) -> None:
    found = []
    for rows in (CLUBS, ACCESS, OPERATIONS, CHANGES, READS, EVENTS, NOTICES, CONNECTIONS, ACCOUNT, OPERATORS):
        found += await ended_differences(world, rows)
    assert found == [], "\n".join(found)


async def _let_through(tx: Any, actor: Any, club_id: Any, *_: Any, scope: Any) -> Standing:
    """In place of a check: looks and does not judge."""
    return await policy.standing_of(tx, actor, club_id, scope=scope)


async def _trust_anybody(*_: Any, **__: Any) -> None:
    """In place of a check."""


def _trust(*_: Any) -> None:
    """In place of a check of what came with the request."""


async def _trust_the_request(_: Any, actor: Actor | None) -> None:
    """In place of a check that asks again."""
    if actor is not None and not actor.is_operator:
        raise NotAllowed("operators_only", "Only an operator may do this.")


@pytest.mark.parametrize(
    ("place", "name", "instead", "function"),
    [
        (clubs, "require", _let_through, clubs.roster),
        (roles, "require_owner", _let_through, roles.create_role),
        (controls, "require", _let_through, controls.keep),
        (life, "require_owner_or_operator", _trust_anybody, life.pause_club),
        (Actor, "require_scope", _trust, api_tokens.tokens_of),
        (Actor, "require_recent", _trust, api_tokens.create_token),
        (people, "require_operator_now", _trust_the_request, people.audit_page),
        (api_tokens, "hold_actor", _trust_anybody, api_tokens.create_token),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_check_that_is_taken_away_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, instead: Any, function: Any
) -> None:
    """The twin."""
    rows = [one for one in ROWS if one.function is function]
    monkeypatch.setattr(place, name, instead)
    found = await ended_differences(world, rows)
    for one in rows:
        found += await differences(world, one, standing_cases(world, one))
    assert found != []
