"""A quarter of an hour after it was asked for nothing of a read is left, and until then nobody looks for it."""

from __future__ import annotations

from datetime import timedelta

from tests.operations.operations_world import user
from tests.reads.reads_world import SECOND, TICK, Reading, another, ban_row

from lastcall.deadlines.owner import Done, Position, Stop
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Signal
from lastcall.reads.expiry import ReadExpiry, read_expiry_owner
from lastcall.reads.signals import READ_EXPIRY
from lastcall.reads.states import READ_KEPT, READ_LIFE
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually


async def rows(reading: Reading, table: str = "provider_reads") -> int:
    return int(await reading.run(f"select count(*) from {table}"))


async def evidence(reading: Reading) -> list[str]:
    found = await reading.db.pool.fetch(
        "select kind || '/' || subject as ref from evidence where kind <> 'own_member' order by 1"
    )
    return [row["ref"] for row in found]


async def test_asking_says_when_the_read_goes_and_costs_no_look(reading: Reading) -> None:
    heard: list[Signal] = []
    reading.db.bus.subscribe(Signal, heard.append)
    read = await reading.ask()
    assert Signal(READ_EXPIRY, read.requested_at + READ_KEPT) in heard
    assert (await ReadExpiry(reading.db).next_deadline()).deadline == read.requested_at + READ_KEPT


async def test_a_read_goes_at_fifteen_minutes_with_who_asked_and_what_it_told(reading: Reading) -> None:
    await reading.clock.freeze()
    await reading.answered("bans", ban_row(1))
    await reading.ask("requests", actor=reading.second)
    await reading.clock.advance(READ_KEPT - TICK)
    assert isinstance(await read_expiry_owner(reading.db).run_pass(Stop()), Done)
    assert (await rows(reading), await evidence(reading)) == (2, ["bans/0+25"])
    await reading.clock.advance(TICK)
    assert isinstance(await read_expiry_owner(reading.db).run_pass(Stop()), Done)
    assert (await rows(reading), await rows(reading, "provider_read_askers")) == (0, 0)
    assert await evidence(reading) == []
    assert await reading.run("select count(*) from evidence where kind = 'own_member'") == 1
    assert (await ReadExpiry(reading.db).next_deadline()).deadline is None


async def test_what_was_read_later_under_the_same_subject_stays_as_evidence(reading: Reading) -> None:
    await reading.clock.freeze()
    await reading.answered("bans", ban_row(1))
    await reading.clock.advance(READ_LIFE)
    await reading.world.renew()
    await reading.answered("bans", ban_row(2))
    await reading.clock.advance(READ_KEPT - READ_LIFE)
    await read_expiry_owner(reading.db).run_pass(Stop())
    assert await rows(reading) == 1
    assert await reading.run(
        "select body -> 'bannedUserIds' ->> 0 from evidence where kind = 'bans'"
    ) == user(2)
    await reading.clock.advance(READ_LIFE)
    await read_expiry_owner(reading.db).run_pass(Stop())
    assert await evidence(reading) == []


async def test_what_is_not_due_after_all_is_left_alone(reading: Reading) -> None:
    read = await reading.ask()
    candidate = Candidate(reading.world.club_id, read.id, Position(read.requested_at, read.id))
    await ReadExpiry(reading.db).settle([candidate])
    assert await rows(reading) == 1


async def test_the_scheduler_waits_without_a_statement_and_then_deletes(reading: Reading) -> None:
    scheduler = Scheduler(reading.db, [read_expiry_owner(reading.db)])
    await reading.ask()
    await scheduler.start()
    try:
        await eventually(lambda: scheduler.status()[0].deadline is not None)
        async with assert_quiet(reading.db, 1.5):
            pass
        await reading.run(
            "update provider_reads set requested_at = lastcall_now() - $1::interval", READ_KEPT - SECOND
        )
        due_at = await reading.run("select requested_at + read_kept() from provider_reads")
        reading.db.bus.deliver([Signal(READ_EXPIRY, due_at)])

        async def is_gone() -> bool:
            return await rows(reading) == 0

        await eventually(is_gone)
        assert await reading.clock.now() >= due_at
    finally:
        await scheduler.stop()


async def test_a_page_that_comes_while_its_read_goes_is_not_kept(reading: Reading) -> None:
    held = await reading.claimed()
    async with another(reading) as other:
        await other.execute("delete from provider_reads")
    assert not await reading.complete(held, ban_row(1))
    assert await rows(reading) == 0
    assert await evidence(reading) == []


async def test_pages_of_many_reads_go_in_one_cycle(reading: Reading) -> None:
    read = await reading.ask()
    await reading.run(
        """
        insert into provider_reads
               (club_id, id, connection_id, epoch, account_id, credential_generation, kind, params, params_key,
                requested_at)
        select club_id, gen_random_uuid(), connection_id, epoch, account_id, credential_generation, kind, params,
               params_key, requested_at
          from provider_reads, generate_series(1, 150) where id = $1
        """,
        read.id,
    )
    await reading.clock.advance(READ_KEPT + timedelta(seconds=1))
    owner = read_expiry_owner(reading.db)
    while not isinstance(await owner.run_pass(Stop()), Done):
        pass
    assert await rows(reading) == 0
