"""Several accounts in one process: they share it, and what ends one leaves the others alone."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from collector_bench import nobody_to_ask
from scripted_server import Refusal, ScriptedServer

from lastcall.collector.config import AccountConfig, CollectorConfig
from lastcall.collector.main import NOT_SIGNED_IN, serve
from lastcall.collector.runner import AccountRunner
from lastcall.collector.state import fresh_id
from lastcall.errors import Invalid, LastcallError
from lastcall.protocol import messages as m
from lastcall.protocol.constants import KEEP_ALIVE
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually
from lastcall.vrchat.errors import ProviderFault
from lastcall.vrchat.session import Credentials
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator

GOOD = Credentials(BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET)


@dataclasses.dataclass
class House:
    """One process with two accounts; in the simulator both are the same person, to the server they are two."""

    server: ScriptedServer
    simulator: Simulator
    time: SharedTime
    config: CollectorConfig
    stop: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    def start(self, **changes: object) -> asyncio.Task[int]:
        config = dataclasses.replace(self.config, **changes)  # type: ignore[arg-type]
        return asyncio.create_task(serve(config, nobody_to_ask, self.stop, clock=self.time.clock))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    time = SharedTime(tmp_path / "clock")
    async with Simulator(clock=time.clock) as simulator, ScriptedServer(simulator.seed.group_id) as server:
        accounts = (
            AccountConfig(fresh_id(), "key", GOOD, "north"),
            AccountConfig(fresh_id(), "key", GOOD, "south"),
        )
        config = CollectorConfig(server.url, tmp_path / "state", "ops@club.example", accounts, simulator.url)
        yield House(server, simulator, time, config)
    time.clock.close()


async def test_both_say_hello_as_one_worker_and_stop_together(house: House) -> None:
    running = house.start()
    await house.server.until("hello", 2)
    assert len({hello.worker_id for hello in house.server.of("hello")}) == 1
    house.stop.set()
    assert await asyncio.wait_for(running, 15) == 0


async def test_an_account_whose_key_is_not_known_ends_alone(house: House) -> None:
    async def only_the_first(sent: m.Hello) -> m.Message:
        if len(house.server.of("hello")) > 1:
            raise Refusal(401, "worker_key", "The worker key is not known.")
        return await usual(sent)

    usual = house.server.hello
    house.server.handlers["hello"] = only_the_first
    running = house.start()
    await house.server.until("hello", 2)
    seed = house.simulator.seed
    await house.server.add("assign_role", targetUserId=seed.members[0], roleId=seed.role_ids[0])
    await house.server.until("complete")
    assert not running.done()
    house.stop.set()
    assert await asyncio.wait_for(running, 15) == 0


async def test_an_account_that_cannot_sign_in_leaves_the_other_running(house: House) -> None:
    north, south = house.config.accounts
    bad = dataclasses.replace(south, credentials=Credentials("", ""))
    running = house.start(accounts=(bad, north))
    await house.server.until("hello")
    house.stop.set()
    assert await asyncio.wait_for(running, 15) == 0


async def test_where_none_can_begin_the_first_reason_is_said(house: House) -> None:
    bad = tuple(
        dataclasses.replace(account, credentials=Credentials("", "")) for account in house.config.accounts
    )
    with pytest.raises(Invalid, match="no user name and password were given"):
        await house.start(accounts=bad)


@pytest.mark.parametrize("twin", [False, True], ids=["", "twin"])
async def test_where_none_can_begin_what_vrchat_refused_is_said_before_all_else(
    house: House, monkeypatch: pytest.MonkeyPatch, twin: bool
) -> None:
    """By it a supervisor knows to leave the process down. The twin says the first, and is started again."""
    if twin:
        monkeypatch.setattr("lastcall.collector.main._foremost", lambda failed: failed[0])
    north, south = house.config.accounts
    unset = dataclasses.replace(north, credentials=Credentials("", ""))
    wrong = dataclasses.replace(south, credentials=Credentials(BOT_USERNAME, "wrong"))
    with pytest.raises(LastcallError) as ended:
        await house.start(accounts=(unset, wrong))
    assert isinstance(ended.value, ProviderFault) is not twin


async def test_when_every_account_was_signed_out_the_process_says_so_by_its_status(house: House) -> None:
    running = house.start()
    await house.server.until("hello", 2)
    house.simulator.world.sessions.clear()
    await house.time.advance(KEEP_ALIVE[1] + timedelta(seconds=5))
    assert await asyncio.wait_for(running, 15) == NOT_SIGNED_IN
    await eventually(lambda: len(house.server.of("failure")) == 2, within=5)


async def test_a_fault_of_ours_with_one_account_leaves_the_other_running(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def blow_up(runner: AccountRunner) -> None:
        if next(blows, False):
            raise AssertionError("a fault of ours")
        await usual(runner)

    blows, usual = iter([True]), AccountRunner._turn
    monkeypatch.setattr(AccountRunner, "_turn", blow_up)
    running = house.start()
    await house.server.until("wait")
    assert not running.done()
    house.stop.set()
    assert await asyncio.wait_for(running, 15) == 0
