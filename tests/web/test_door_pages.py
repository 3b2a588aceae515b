"""The door of a club as its staff see it, without scripts: many decisions at once, and invitations made again."""

from __future__ import annotations

import re

from tests.web.conftest import Site, World
from tests.web.test_invite_pages import CLUB, Visit, invite

from lastcall.access.acceptance import accept_invite
from lastcall.db.ids import encode_id


async def test_many_are_decided_at_once_and_each_refusal_is_told(
    world: World, site: Site, visit: Visit
) -> None:
    asked = [
        await accept_invite(world.db, world.actors[who], (await invite(world, approves=False)).token)
        for who in ("stranger", "operator")
    ]
    owner = visit("owner")
    first, second = [encode_id(one.request_id) for one in asked]
    await owner.post(f"{CLUB}/join-requests/{first}", {"decision": "reject"})
    answer = await owner.post(f"{CLUB}/join-requests", {"decision": "approve", "request": [first, second]})
    assert answer.status_code == 200
    assert "1 decided, 1 not." in answer.text
    assert "This request is rejected already." in answer.text
    statuses = await world.db.pool.fetch("select status from join_requests order by id")
    assert [row["status"] for row in statuses] == ["rejected", "approved"]
    empty = await owner.post(f"{CLUB}/join-requests", {"decision": "approve"})
    assert empty.status_code == 422
    assert (await owner.post(f"{CLUB}/join-requests/{second}/delete")).status_code == 409
    assert (await owner.post(f"{CLUB}/join-requests/{first}/delete")).status_code == 303
    assert await world.db.pool.fetchval("select count(*) from join_requests") == 1


async def test_an_invitation_is_made_again_under_another_address(
    world: World, site: Site, visit: Visit
) -> None:
    made = await invite(world, note="Bring a torch.", max_uses=3)
    await accept_invite(world.db, world.actors["stranger"], made.token)
    again = await visit("owner").post(f"{CLUB}/staff/invites/{encode_id(made.id)}/again")
    found = re.search(r"/invites/([A-Za-z0-9_-]{43})", again.text)
    assert found is not None
    assert (await visit("operator").get(f"/invites/{made.token}")).status_code == 404
    assert "Bring a torch." in (await visit("operator").get(f"/invites/{found[1]}")).text
    rows = await world.db.pool.fetch("select max_uses, uses from invites order by id")
    assert [tuple(row) for row in rows] == [(3, 1), (2, 0)], "the uses that were left"
    await visit("owner").post(f"{CLUB}/staff/invites/revoke")
    assert (await visit("operator").get(f"/invites/{found[1]}")).status_code == 404


async def test_an_agents_invitation_says_how_a_program_uses_it_and_a_persons_does_not(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    fields = {"kind": "agent", "grant": ["ask", "report_runs"], "life": "24", "max_uses": "2"}
    made = await owner.post(f"{CLUB}/staff/invites/new", fields)
    assert made.status_code == 200
    assert f"{site.url}/api/v1/agent/join" in made.text
    row = await world.db.pool.fetchrow(
        "select kind, agent_grants, max_uses, expires_at - created_at as life from invites"
    )
    assert row is not None
    assert (row["kind"], row["agent_grants"], row["max_uses"]) == ("agent", ["ask", "report_runs"], 2)
    assert round(row["life"].total_seconds() / 3600) == 24
    for field, value in {"life": "721", "max_uses": "0"}.items():
        wrong = await owner.post(f"{CLUB}/staff/invites/new", {**fields, field: value})
        assert wrong.status_code == 422
        assert f'id="{field}-wrong"' in wrong.text
    again = await owner.post(
        f"{CLUB}/staff/invites/{encode_id(await world.db.pool.fetchval('select id from invites'))}/again"
    )
    assert "agent/join" in again.text
    person = await invite(world)
    of_person = await owner.post(f"{CLUB}/staff/invites/{encode_id(person.id)}/again")
    assert "agent/join" not in of_person.text
