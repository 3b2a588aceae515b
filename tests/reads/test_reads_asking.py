"""One read serves everybody who asks for the same and may see it, while it is young; and nobody else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.operations.operations_world import user
from tests.reads.reads_world import MINUTE, TICK, Reading, another, ban_row, waiting

from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound, TooFast
from lastcall.reads import asking
from lastcall.reads.asking import READS_ASKED
from lastcall.reads.states import READ_LIFE, ReadState

OTHER_ACCOUNT = """
    with other as (
        insert into accounts (id, alias, vrchat_user_id, state)
        values (gen_random_uuid(), 'other', 'usr_o', 'ready') returning id)
    update connections set account_id = (select id from other)
"""


async def rows(reading: Reading) -> int:
    return int(await reading.run("select count(*) from provider_reads"))


async def test_two_people_who_ask_for_the_same_share_one_read(reading: Reading) -> None:
    first = await reading.ask("member", {"targetUserId": user(7).replace("7", "a")})
    second = await reading.ask("member", {"targetUserId": user(7).replace("7", "A")}, actor=reading.second)
    assert second.id == first.id
    assert (await reading.ask("member", {"targetUserId": user(8)})).id != first.id
    assert (await reading.ask("bans", {"n": 10})).id != (await reading.ask("bans", {"n": 11})).id
    assert await rows(reading) == 4


@pytest.mark.clause("COL-12")
async def test_each_reader_of_a_shared_read_is_checked(reading: Reading) -> None:
    read = await reading.answered("bans", ban_row(1))
    with pytest.raises(NotAllowed) as refusal:
        await reading.ask(actor=reading.helper)
    assert refusal.value.code == "permission_missing"
    with pytest.raises(NotFound) as unseen:
        await reading.look(read.id, reading.helper)
    assert unseen.value.code == "read_unknown"
    shared = await reading.ask(actor=reading.second)
    assert (shared.id, shared.is_fresh, len(shared.items)) == (read.id, True, 1)
    await reading.run("delete from staff_assignments where person_id = $1", reading.moderator.person_id)
    with pytest.raises(NotFound):
        await reading.look(read.id)
    assert (await reading.look(read.id, reading.second)).is_fresh


async def test_what_is_read_is_shown_up_to_sixty_seconds_and_not_at_the_boundary(reading: Reading) -> None:
    await reading.clock.freeze()
    read = await reading.answered("bans", ban_row(1))
    assert (read.remaining_ms, read.items[0].user_id) == (60_000, user(1))  # type: ignore[attr-defined]
    await reading.clock.advance(READ_LIFE - TICK)
    last = await reading.look(read.id)
    assert (last.is_fresh, last.remaining, len(last.items)) == (True, TICK, 1)
    await reading.clock.advance(TICK)
    over = await reading.look(read.id)
    assert (over.state, over.is_fresh, over.remaining_ms) == (ReadState.SUCCEEDED, False, 0)
    assert (over.items, over.next_offset) == ((), None)


async def test_what_is_over_is_not_shared(reading: Reading) -> None:
    await reading.clock.freeze()
    read = await reading.answered("bans")
    await reading.clock.advance(READ_LIFE - TICK)
    assert (await reading.ask()).id == read.id
    await reading.clock.advance(TICK)
    again = await reading.ask()
    assert again.id != read.id
    held = await reading.claim()
    assert held is not None
    await reading.steps.fail(reading.world.worker, held, "timeout")
    assert (await reading.ask()).id not in (read.id, again.id)


async def test_a_read_that_nobody_answers_fails_by_itself_and_is_not_joined(reading: Reading) -> None:
    await reading.clock.freeze()
    read = await reading.ask()
    await reading.clock.advance(READ_LIFE - TICK)
    assert (await reading.look(read.id)).state is ReadState.PENDING
    await reading.clock.advance(TICK)
    seen = await reading.look(read.id)
    assert (seen.state, seen.code) == (ReadState.FAILED, "not_answered")
    assert seen.reason is not None
    assert seen.reason.label == "Not answered in time"
    assert (await reading.ask()).id != read.id


async def test_two_identical_asks_at_once_make_one_read(reading: Reading) -> None:
    assert len(await both_at_once(reading)) == 1
    assert await rows(reading) == 1


async def test_twin_without_waiting_for_each_other_both_make_one(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_HOLD_SAME", "select $1::text, $2::bytea")
    assert len(await both_at_once(reading)) == 2


async def both_at_once(reading: Reading) -> set[Any]:
    """Two people ask while nothing can be written; the ids that they get."""
    async with another(reading) as other:
        await other.execute("lock table provider_reads in share mode")
        first = await waiting(reading, reading.ask(), other)
        second = asyncio.ensure_future(reading.ask(actor=reading.second))
        blocked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
        for _ in range(500):
            if await reading.run(blocked) == 2:
                break
            await asyncio.sleep(0.01)
        assert await reading.run(blocked) == 2
    return {(await first).id, (await second).id}


async def test_fifty_new_reads_a_minute_and_joining_is_not_counted(reading: Reading) -> None:
    await reading.clock.freeze()
    first = await reading.ask("bans", {"n": 1})
    for offset in range(1, READS_ASKED.count):
        await reading.ask("bans", {"n": 1, "offset": offset})
    with pytest.raises(TooFast) as refusal:
        await reading.ask("bans", {"n": 1, "offset": 99})
    assert 0 < refusal.value.retry_after <= MINUTE.total_seconds()
    assert (await reading.ask("bans", {"n": 1})).id == first.id
    await reading.ask("bans", {"n": 1, "offset": 99}, actor=reading.second)
    await reading.clock.advance(MINUTE)
    assert (await reading.ask("bans", {"n": 1})).id != first.id


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("update connections set features = '{posts}'", "feature_disabled"),
        ("update connections set state = 'blocked'", "connection_inactive"),
        ("update connections set state = 'disconnected'", "connection_inactive"),
        ("update connections set kill_switch = true", "reading_stopped"),
        ("update accounts set kill_switch = true", "reading_stopped"),
        ("update fleet_settings set kill_switch = true", "reading_stopped"),
    ],
)
async def test_nothing_is_asked_that_cannot_be_read(reading: Reading, change: str, code: str) -> None:
    await reading.run(change)
    with pytest.raises(Conflict) as refusal:
        await reading.ask()
    assert refusal.value.code == code
    assert refusal.value.advice
    assert await rows(reading) == 0


@pytest.mark.parametrize(
    "change",
    [
        "update connections set epoch = epoch + interval '1 second'",
        "update connections set state = 'disconnecting'",
        "update accounts set credential_generation = 2",
        "update connections set features = '{posts}'",
        OTHER_ACCOUNT,
    ],
)
async def test_what_was_read_under_another_connection_is_gone(reading: Reading, change: str) -> None:
    read = await reading.answered("bans", ban_row(1))
    await reading.run(change)
    with pytest.raises(NotFound) as refusal:
        await reading.look(read.id)
    assert refusal.value.code == "read_unknown"


async def test_after_a_key_is_rotated_the_same_is_read_anew(reading: Reading) -> None:
    read = await reading.answered("bans")
    await reading.run("update accounts set credential_generation = 2")
    assert (await reading.ask()).id != read.id


@pytest.mark.parametrize(
    ("kind", "params", "field"),
    [
        ("nothing", {}, "kind"),
        ("bans", {"n": 0}, "params.n"),
        ("bans", {"n": 101}, "params.n"),
        ("bans", {"offset": 10_000_001}, "params.offset"),
        ("bans", {"page": 1}, "params.page"),
        ("search", {}, "params.query"),
        ("search", {"query": "ab"}, "params.query"),
        ("search", {"query": "a" * 101}, "params.query"),
        ("member", {"targetUserId": "usr_short"}, "params.targetUserId"),
        ("eligibility", {"targetUserIds": []}, "params.targetUserIds"),
        ("eligibility", {"targetUserIds": [user(1), user(1)]}, "params.targetUserIds"),
        ("eligibility", {"targetUserIds": [user(1)], "worldId": f"wrld_{user(1)[4:]}"}, "params.instanceId"),
    ],
)
async def test_what_no_kind_takes_is_refused_by_its_name(
    reading: Reading, kind: str, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await reading.ask(kind, params)
    assert refusal.value.field == field
    assert await rows(reading) == 0
