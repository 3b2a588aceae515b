"""The inbox over the API: the same for people and agents, but for who the people are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.api.v1_kit import Api, Program, open_api

from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import (
    Activity,
    AgentSubject,
    PersonSubject,
    record_join_request,
    write_join_request_change,
)
from lastcall.clubs.queries import roles_of
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent

ANY_ITEM = {"kind": "join_request", "id": "01j9zq8v3n5x7c2m4k6h8d0f1g"}
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


async def test_items_are_put_away_and_shown_again_for_their_reader_alone_and_again_is_once(api: Api) -> None:
    world = api.world
    owner, staff = await api.program("owner"), await api.program("staff")
    invite = await create_invite(world.db, world.actors["owner"], world.club_id, (), kind=InviteKind.AGENT)
    request_id = await record_join_request(world.db, world.club_id, invite.id, AgentSubject("Porter"))
    item = {"kind": "join_request", "id": encode_id(request_id)}

    async def shown(shelf: str) -> list[str]:
        answer = await owner("GET", f"/clubs/{api.club}/inbox?shelf={shelf}")
        return [one["title"] for one in answer.json()["items"] if one["id"] == item["id"]]

    async def put(sight: str, **more: object) -> object:
        answer = await owner("POST", f"/clubs/{api.club}/inbox/{sight}", json={"items": [item], **more})
        assert answer.status_code == 200, answer.text
        return answer.json()["items"][0]["refusal"]

    until = (await world.db.pool.fetchval("select lastcall_now()")) + timedelta(days=3)
    for sight, more in (("snooze", {"until": until.isoformat()}), ("dismiss", {})):
        for _ in range(2):
            assert await put(sight, **more) is None
            assert (await shown("waiting"), await shown("away")) == ([], ["Porter"])
        for _ in range(2):
            assert await put("show") is None
            assert (await shown("waiting"), await shown("away")) == (["Porter"], [])
    refused = await put("snooze", until=(until + timedelta(days=6 * 365)).isoformat())
    assert isinstance(refused, dict)
    assert refused["code"] == "snooze_out_of_range"
    hidden = (await staff("POST", f"/clubs/{api.club}/inbox/dismiss", json={"items": [item]})).json()
    assert hidden["items"][0]["refusal"]["code"] == "join_request_unknown"


@pytest.mark.clause("DEC-05")
async def test_what_moved_since_the_list_told_of_it_is_not_put_away_unseen(api: Api) -> None:
    world = api.world
    owner = await api.program("owner")
    invite = await create_invite(world.db, world.actors["owner"], world.club_id, (), kind=InviteKind.AGENT)
    request_id = await record_join_request(world.db, world.club_id, invite.id, AgentSubject("Porter"))

    async def listed() -> list[dict[str, object]]:
        items = (await owner("GET", f"/clubs/{api.club}/inbox")).json()["items"]
        return [
            {name: one[name] for name in ("kind", "id", "activityAt")}
            for one in items
            if one["id"] == encode_id(request_id)
        ]

    seen = await listed()
    await write_join_request_change(world.db, world.actors["owner"], world.club_id, request_id, Activity())
    until = (await world.db.pool.fetchval("select lastcall_now()")) + timedelta(days=3)
    for sight, more in (("snooze", {"until": until.isoformat()}), ("dismiss", {})):
        answer = await owner("POST", f"/clubs/{api.club}/inbox/{sight}", json={"items": seen, **more})
        assert answer.json()["items"][0]["refusal"]["code"] == "item_moved"
    fresh = await listed()
    assert len(fresh) == 1, "it is still in sight"
    answer = await owner("POST", f"/clubs/{api.club}/inbox/dismiss", json={"items": fresh})
    assert answer.json()["items"][0]["refusal"] is None
    assert await listed() == []


@pytest.mark.parametrize(
    ("sight", "body", "status", "code"),
    [
        ("snooze", {}, 422, "until_misplaced"),
        ("dismiss", {"until": "2031-01-01T00:00:00Z"}, 422, "until_misplaced"),
        ("snooze", {"until": "2031-01-01T00:00:00"}, 422, "time_without_zone"),
        ("dismiss", {"items": [{"kind": "ghost", "id": "01j9zq8v3n5x7c2m4k6h8d0f1g"}]}, 422, "kind_unknown"),
        (
            "dismiss",
            {"items": [{**ANY_ITEM, "activityAt": "2031-01-01T00:00:00"}]},
            422,
            "time_without_zone",
        ),
        ("dismiss", {"items": [ANY_ITEM] * 101}, 422, None),
        ("dismiss", {"items": []}, 422, None),
        ("dance", {}, 404, "not_found"),
    ],
)
async def test_what_cannot_be_put_away_is_refused_in_words(
    api: Api, sight: str, body: dict[str, object], status: int, code: str | None
) -> None:
    owner = await api.program("owner")
    answer = await owner("POST", f"/clubs/{api.club}/inbox/{sight}", json={"items": [ANY_ITEM], **body})
    assert answer.status_code == status, answer.text
    assert code is None or answer.json()["code"] == code
