"""Everybody is told a thing once by each channel, and only if what made it so is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest
from tests.decisions.conftest import Door

from lastcall.clubs.activity import REDACTED
from lastcall.db.bus import Hint
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries.deliver import Message, ToPerson, deliver
from lastcall.decisions.deliveries.kinds import Kind, declare_kind
from lastcall.decisions.deliveries.signals import DELIVERIES, NOTICES
from lastcall.people.preferences import Topic
from lastcall.testing.locks import wait_until_blocked

KIND = Kind("test.told", Topic("test", "a test tells me"), lambda _told, _standing: None)
ONE = Message("test.told", "one", data={"count": 1})


@pytest.fixture(autouse=True)
def declared() -> None:
    declare_kind(KIND)


async def rows(door: Door) -> Sequence[asyncpg.Record]:
    found: Sequence[asyncpg.Record] = await door.db.pool.fetch(
        "select kind, channel, person_id, dedup, data, state, next_at is not null as is_open from deliveries"
        " where club_id = $1 order by dedup, channel",
        door.club_id,
    )
    return found


async def tell(door: Door, message: Message = ONE) -> None:
    async with door.db.transaction() as tx:
        await deliver(tx, door.club_id, [ToPerson(door.owner.person_id)], message)


async def test_a_person_has_a_notice_at_once_and_a_mail_to_come(door: Door) -> None:
    said: list[Any] = []
    door.db.bus.subscribe(object, said.append)
    await tell(door)
    assert [(row["channel"], row["state"], row["is_open"]) for row in await rows(door)] == [
        ("app", "delivered", False),
        ("mail", "pending", True),
    ]
    assert Hint(door.club_id, NOTICES) in said
    due = await door.db.pool.fetchval("select next_at from deliveries where channel = 'mail'")
    assert Signal(DELIVERIES, due) in said


async def test_nobody_is_told_the_same_twice(door: Door) -> None:
    await tell(door)
    await tell(door)
    await tell(door, Message("test.told", "two"))
    assert [row["dedup"] for row in await rows(door)] == ["one", "one", "two", "two"]


async def test_what_is_rolled_back_is_told_to_nobody(door: Door) -> None:
    with pytest.raises(RuntimeError, match="refused"):
        async with door.db.transaction() as tx:
            await deliver(tx, door.club_id, [ToPerson(door.owner.person_id)], ONE)
            raise RuntimeError("refused")
    assert await rows(door) == []


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_of_two_that_tell_the_same_at_once_one_waits_for_the_other(door: Door, ends: str) -> None:
    connection = await door.db.connect()
    other = connection.transaction()
    await other.start()
    await connection.execute(
        "insert into deliveries (club_id, id, kind, channel, person_id, dedup, data, state, next_at)"
        " values ($1, gen_random_uuid(), 'test.told', 'mail', $2, 'one', '{}', 'pending', lastcall_now())",
        door.club_id,
        door.owner.person_id,
    )
    telling = asyncio.create_task(tell(door))
    await wait_until_blocked(door.db, "into deliveries", by=connection.get_server_pid())
    await (other.commit() if ends == "commit" else other.rollback())
    await telling
    await connection.close()
    assert [row["channel"] for row in await rows(door)] == ["app", "mail"]


async def test_what_looks_like_a_secret_is_told_to_nobody(door: Door) -> None:
    await tell(door, Message("test.told", "one", data={"token": "lca_verysecretverysecret", "count": 2}))
    assert [row["data"] for row in await rows(door)] == [f'{{"count": 2, "token": "{REDACTED}"}}'] * 2


async def test_a_person_is_told_only_what_has_words(door: Door) -> None:
    with pytest.raises(ValueError, match="Nobody declared"):
        await tell(door, Message("test.unheard_of", "one"))
    assert await rows(door) == []
