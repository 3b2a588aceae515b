"""Hello: an earlier process is over, and a journal that knows more than the database freezes its connection."""

from __future__ import annotations

import asyncio

import pytest
from tests.connections.conftest import FIRST_TOKEN

from lastcall.connections import listeners
from lastcall.connections.accounts import rotate_key
from lastcall.connections.connect import connect_club, disconnect_club, finish_disconnect
from lastcall.connections.hello import UNKNOWN_SUBMISSION, Journal, say_hello
from lastcall.connections.leases import renew_lease
from lastcall.connections.listeners import EpochEnd, HelloFacts, HelloFindings, ReportedSubmission
from lastcall.connections.restored import RESTORED, restored
from lastcall.connections.switches import set_account_switch, thaw_connection
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Disabled, NotSignedIn
from lastcall.protocol.constants import LEASE_LIFE
from lastcall.testing.locks import wait_until_blocked


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Listeners of these tests alone."""
    monkeypatch.setattr(listeners, "_hello", [])
    monkeypatch.setattr(listeners, "_epoch", [])


def journal_of(site, *, knows: int = 0) -> Journal:
    return Journal(
        new_id(),
        is_intact=True,
        submissions=[
            ReportedSubmission(site.club_id, site.connection_id, new_id(), f"nonce-{n}-0123456789", False)
            for n in range(knows)
        ],
    )


async def hello(site, journal=None, worker=None):
    return await say_hello(site.db, worker or site.worker, journal or journal_of(site), "0.1.0")


async def test_hello_ends_the_workers_old_leases_and_passes_their_tokens_over(site):
    old = await site.lease()
    await hello(site)
    with pytest.raises(Conflict):
        await renew_lease(site.db, site.worker, old)
    assert (await site.lease(site.other_worker())).fencing_token == old.fencing_token + 2


async def test_hello_leaves_another_workers_lease_alone(site):
    other = site.other_worker()
    held = await site.lease(other)
    await hello(site)
    assert (await renew_lease(site.db, other, held)).life == LEASE_LIFE


async def test_hello_keeps_which_journal_a_worker_has(site):
    first, second = journal_of(site), journal_of(site)
    await hello(site, first)
    await hello(site, second)
    row = await site.db.pool.fetchrow("select * from collectors")
    assert (row["worker_id"], row["journal_id"], row["release"]) == (
        site.worker.worker_id,
        second.id,
        "0.1.0",
    )


async def test_a_submission_that_the_database_does_not_know_freezes_its_connection(site):
    async def knows_nothing(tx, facts: HelloFacts) -> HelloFindings:
        return HelloFindings(unknown=tuple(facts.submissions))

    listeners.on_hello(knows_nothing)
    welcome = await hello(site, journal_of(site, knows=2))

    assert welcome.frozen_connections == (site.connection_id,)
    row = await site.db.pool.fetchrow("select frozen_at, frozen_reason from connections")
    assert row["frozen_reason"] == UNKNOWN_SUBMISSION
    with pytest.raises(Conflict) as refusal:
        await site.lease()
    assert refusal.value.code == "frozen"
    log = await site.db.pool.fetchval("select count(*) from activity_log where action = 'connection.frozen'")
    assert log == 1


async def test_a_frozen_connection_works_again_once_a_person_has_looked(site):
    await site.db.pool.execute("update connections set frozen_at = lastcall_now(), frozen_reason = 'why'")
    await thaw_connection(site.db, None, site.club_id, site.connection_id)
    assert (await site.lease()).fencing_token == FIRST_TOKEN


async def test_what_a_person_has_looked_at_does_not_freeze_the_connection_again_but_news_does(site):
    async def everything_is_unknown(_, facts: HelloFacts) -> HelloFindings:
        return HelloFindings(unknown=tuple(facts.submissions))

    listeners.on_hello(everything_is_unknown)
    journal = journal_of(site, knows=2)
    assert (await hello(site, journal)).frozen_connections == (site.connection_id,)
    await thaw_connection(site.db, None, site.club_id, site.connection_id)
    assert (await hello(site, journal)).frozen_connections == ()
    assert await site.db.pool.fetchval("select frozen_at from connections") is None
    assert (await hello(site, journal_of(site, knows=3))).frozen_connections == (site.connection_id,)


async def test_a_journal_cannot_freeze_the_connection_of_another_account(site):
    await site.db.pool.execute(
        "insert into accounts (id, alias, vrchat_user_id, state, credential_generation)"
        " values ($1, 'other', 'usr_o', 'ready', 1)",
        other := new_id(),
    )
    await site.db.pool.execute("insert into worker_keys values ($1, 1, '\\x02')", other)

    async def knows_nothing(tx, facts: HelloFacts) -> HelloFindings:
        return HelloFindings(unknown=tuple(facts.submissions))

    listeners.on_hello(knows_nothing)
    generation = await site.db.pool.fetchval("select generation from connection_gates")
    stranger = type(site.worker)(other, 1, new_id(), "usr_o")
    welcome = await hello(site, journal_of(site, knows=1), stranger)
    assert welcome.frozen_connections == ()
    assert await site.db.pool.fetchval("select frozen_at from connections") is None
    assert await site.db.pool.fetchval("select generation from connection_gates") == generation


async def test_listeners_run_with_the_gates_of_every_named_connection_held(site):
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def slow(tx, facts: HelloFacts) -> HelloFindings:
        entered.set()
        await go_on.wait()
        return HelloFindings(claims_returned=3, not_attempted=(site.connection_id,))

    listeners.on_hello(slow)
    greeting = asyncio.create_task(hello(site, journal_of(site, knows=1)))
    await entered.wait()
    authorizing = asyncio.create_task(
        site.db.pool.execute("select from connection_gates where club_id = $1 for share", site.club_id)
    )
    await wait_until_blocked(site.db, "from connection_gates where club_id")
    go_on.set()
    welcome = await greeting
    await authorizing
    assert welcome.findings.claims_returned == 3
    assert welcome.findings.not_attempted == (site.connection_id,)


async def test_hello_is_refused_with_a_superseded_key_and_for_a_disabled_account(site):
    await set_account_switch(site.db, None, site.worker.account_id, is_on=True)
    with pytest.raises(Disabled):
        await hello(site)
    await set_account_switch(site.db, None, site.worker.account_id, is_on=False)
    await rotate_key(site.db, None, site.worker.account_id)
    with pytest.raises(NotSignedIn):
        await hello(site)
    assert await site.db.pool.fetchval("select count(*) from collectors") == 0


async def test_after_a_restore_every_connection_has_a_new_epoch_and_no_lease(site):
    ended: list[EpochEnd] = []

    async def listener(tx, end: EpochEnd) -> None:
        ended.append(end)

    listeners.on_epoch_end(listener)
    held = await site.lease()
    assert (await restored(site.db, None)).connections == 1

    assert ended == [EpochEnd(site.club_id, site.connection_id, held.epoch, RESTORED)]
    with pytest.raises(Conflict):
        await renew_lease(site.db, site.worker, held)
    renewed = await site.lease()
    assert renewed.epoch > held.epoch
    assert renewed.fencing_token > held.fencing_token


async def test_a_disconnected_connection_stays_ended_and_a_new_connect_is_a_new_epoch(site):
    ended: list[EpochEnd] = []

    async def listener(tx, end: EpochEnd) -> None:
        ended.append(end)

    listeners.on_epoch_end(listener)
    held = await site.lease()
    await disconnect_club(site.db, None, site.club_id, site.connection_id)
    await disconnect_club(site.db, None, site.club_id, site.connection_id)
    assert [end.reason for end in ended] == ["disconnected"]
    with pytest.raises(Conflict):
        await renew_lease(site.db, site.worker, held)
    await finish_disconnect(site.db, None, site.club_id, site.connection_id)

    again = await connect_club(
        site.db,
        None,
        site.club_id,
        group_id="grp_1",
        group_name="Group 1",
        account_id=site.worker.account_id,
        features=[],
    )
    epochs = await site.db.pool.fetch("select id, epoch from connections order by epoch")
    assert [row["id"] for row in epochs] == [site.connection_id, again]
    assert epochs[0]["epoch"] < epochs[1]["epoch"]
