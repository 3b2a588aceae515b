"""The long poll: parked without a statement, ended by work, by a newer one, by leaving and by a stop."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.api.conftest import Caller

from lastcall.api.worker import routes
from lastcall.api.worker.services import WorkerServices
from lastcall.connections.keys import KeyRing
from lastcall.connections.signals import work
from lastcall.connections.work import Ready, WorkBoard
from lastcall.db.ids import encode_id, new_id
from lastcall.operations.services.worker import WorkerSteps
from lastcall.reads.worker import ReadSteps
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually


class Promised:
    """A work source whose one piece of work is at a moment that the test sets."""

    def __init__(self) -> None:
        self.ready_at = None
        self.site = None

    async def ready(self, account_id):
        if self.ready_at is None:
            return []
        return [Ready(self.site.club_id, self.site.connection_id, self.ready_at)]


@pytest.fixture
def promised(site) -> Promised:
    source = Promised()
    source.site = site
    return source


@pytest.fixture
def services(site, promised):
    return WorkerServices(
        db=site.db,
        keys=KeyRing(site.db),
        board=WorkBoard(site.db, [promised]),
        steps=WorkerSteps(site.db),
        reads=ReadSteps(site.db),
    )


async def parked(services, number: int = 1) -> None:
    await eventually(
        lambda: sum(presence.is_waiting for presence in services.board.presence()) == number,
        message="nobody waits",
    )


async def test_a_parked_collector_and_its_renewal_cost_no_statement(caller, services, site, monkeypatch):
    monkeypatch.setattr(routes, "WAIT_LIFE", timedelta(seconds=0.3))
    assert (await caller("wait")).json() == {"due": []}
    async with assert_quiet(site.db, 1.5):
        for _ in range(3):
            assert (await caller("wait")).json() == {"due": []}


async def test_a_parked_collector_is_told_of_a_connection_that_becomes_due(caller, services, site, promised):
    waiting = asyncio.create_task(caller("wait"))
    await parked(services)
    promised.ready_at = await site.db.pool.fetchval("select lastcall_now()")
    site.db.bus.deliver([work(site.account.account_id)])
    async with asyncio.timeout(5):
        answer = await waiting
    assert answer.json() == {
        "due": [{"clubId": encode_id(site.club_id), "connectionId": encode_id(site.connection_id)}]
    }


async def test_a_second_waiter_of_the_same_worker_ends_the_first(caller, services):
    first = asyncio.create_task(caller("wait"))
    await parked(services)
    second = asyncio.create_task(caller("wait"))
    async with asyncio.timeout(5):
        assert (await first).json() == {"due": []}
    assert not second.done()
    services.board.stop()
    assert (await second).json() == {"due": []}


async def test_several_workers_of_one_account_wait_side_by_side(caller, services, site):
    other = Caller(caller.client, site, encode_id(new_id()))
    waiting = [asyncio.create_task(one("wait")) for one in (caller, other)]
    await parked(services, 2)
    services.board.stop()
    async with asyncio.timeout(5):
        assert [answer.json() for answer in await asyncio.gather(*waiting)] == [{"due": []}, {"due": []}]


async def test_a_departed_client_is_noticed_and_its_wait_ends(caller, services):
    waiting = asyncio.create_task(caller("wait"))
    await parked(services)
    waiting.cancel()

    def nobody_waits() -> bool:
        return not any(presence.is_waiting for presence in services.board.presence())

    assert await eventually(nobody_waits, message="the wait of a departed client goes on")


async def test_a_stop_ends_the_wait_at_once_and_refuses_the_next(caller, services):
    waiting = asyncio.create_task(caller("wait"))
    await parked(services)
    services.board.stop()
    async with asyncio.timeout(5):
        assert (await waiting).json() == {"due": []}
    later = await caller("wait")
    assert (later.status_code, later.json()["code"]) == (503, "stopping")
