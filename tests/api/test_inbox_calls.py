"""The inbox over the API: the same for people and agents, but for who the people are."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.api.v1_kit import Api, Program, open_api

from lastcall.access.invites import create_invite
from lastcall.access.requests import PersonSubject, record_join_request
from lastcall.clubs.queries import roles_of
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent

ADDRESS = "hopeful@example.org"


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with open_api(database) as api:
        yield api


@pytest.mark.clause("RET-19", "DEC-01")
async def test_an_agent_reads_what_waits_and_learns_no_name_and_no_address(api: Api) -> None:
    world = api.world
    owner = world.actors["owner"]
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[0]
    invite = await create_invite(world.db, owner, world.club_id, [role.id])
    request_id = await record_join_request(world.db, world.club_id, invite.id, PersonSubject(None, ADDRESS))
    _, key = await let_in_agent(
        world.db, world.club_id, owner.person_id, grants=frozenset({AgentGrant.READ_INBOX})
    )
    asked = await Program(api.client, key)("GET", "/agent/inbox")
    person = await (await api.program("owner"))("GET", f"/clubs/{api.club}/inbox")
    seen_by_agent, seen_by_owner = asked.json(), person.json()
    assert ADDRESS not in asked.text
    assert ADDRESS in person.text
    ours = [one for one in seen_by_agent["items"] if one["id"] == encode_id(request_id)]
    assert [(one["title"], one["actions"]) for one in ours] == [("A person", [])]
    assert [one["id"] for one in seen_by_agent["items"]] == [one["id"] for one in seen_by_owner["items"]]
    assert seen_by_agent["count"] == seen_by_owner["count"] == len(seen_by_owner["items"])
