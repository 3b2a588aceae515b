"""What VRChat would answer to a read that somebody asked for on a page."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from tests.web.conftest import ROLE, World, user

from lastcall.reads.signals import changed

_ANSWER = """
    update provider_reads
       set state = 'succeeded', observed_at = lastcall_now() - $2::interval, items = $3, next_offset = $4, total = $5
     where club_id = $1 and state = 'pending'
    returning id
"""
_FAIL = "update provider_reads set state = 'failed', code = $2 where club_id = $1 and state = 'pending' returning id"
_SEEN = """
    insert into evidence (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
    select c.club_id, c.id, 'own_member', a.vrchat_user_id, c.epoch, $2, lastcall_now(), a.id, gen_random_uuid()
      from connections c join accounts a on a.id = c.account_id where c.club_id = $1
        on conflict (club_id, connection_id, kind, subject) do update set body = excluded.body
"""


async def answer(
    world: World,
    items: list[dict[str, Any]],
    *,
    age: timedelta = timedelta(0),
    next_offset: int | None = None,
    total: int | None = None,
) -> None:
    """Whatever is asked for and waits is answered with these items, asked of VRChat ``age`` ago."""
    found = await world.db.pool.fetch(_ANSWER, world.club_id, age, json.dumps(items), next_offset, total)
    assert found, "nothing was asked for"
    world.db.bus.deliver([changed(world.club_id)])


async def fail(world: World, code: str) -> None:
    assert await world.db.pool.fetch(_FAIL, world.club_id, code), "nothing was asked for"
    world.db.bus.deliver([changed(world.club_id)])


async def group_seen(world: World, owner: str = "usr_owner") -> None:
    """The account read its group: who owns it, and the name of its role."""
    body = {
        "groupId": "grp_1",
        "ownerId": owner,
        "userId": "usr_1",
        "memberStatus": "member",
        "permissions": ["*"],
        "roleIds": [],
        "roles": [{"id": ROLE, "name": "Regular"}],
        "privacy": "default",
    }
    await world.db.pool.execute(_SEEN, world.club_id, json.dumps(body))


def member(number: int, name: str, *roles: str) -> dict[str, Any]:
    """A row of the directory."""
    return {
        "userId": user(number),
        "displayName": name,
        "roleIds": list(roles),
        "joinedAt": "2024-05-06T07:08:09Z",
    }


def person(number: int, name: str, moment: str = "askedAt") -> dict[str, Any]:
    """Somebody who asked, was invited (``invitedAt``) or was banned (``bannedAt``)."""
    return {"userId": user(number), "displayName": name, moment: "2026-11-01T10:00:00Z"}
