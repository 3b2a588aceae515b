"""What is remembered of a connection is forgotten when it goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from collector_bench import Bench
from scripted_server import Refusal

from lastcall.collector.account import Account
from lastcall.collector.memory import Memory
from lastcall.collector.state import fresh_id
from lastcall.collector.waiting import BACKOFF_MOST, backoff
from lastcall.protocol import messages as m


class StillClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def boot(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    async def sleep(self, delay: timedelta) -> None:
        raise AssertionError("memory never waits")


def test_what_can_change_nothing_any_more_is_dropped_and_nothing_else() -> None:
    clock = StillClock()
    memory = Memory(clock)
    for name in ("quiet", "sent", "failed", "busy"):
        memory.of(name).window.limit = 5
    clock.now += BACKOFF_MOST + 1
    memory.of("sent").window.hold(1)
    memory.of("sent").window.charge()
    memory.of("failed").failed(clock.now)
    memory.forget_idle({"busy"})
    assert len(memory) == 3
    assert memory.of("failed").failures == 1
    clock.now += BACKOFF_MOST * 2
    memory.forget_idle({"busy"})
    assert len(memory) == 1


def test_it_looks_once_a_minute() -> None:
    clock = StillClock()
    memory = Memory(clock)
    clock.now += BACKOFF_MOST + 61
    memory.forget_idle(())
    memory.of("quiet")
    clock.now += 59
    memory.forget_idle(())
    assert len(memory) == 1


def test_ten_thousand_connections_that_came_and_went_leave_nothing() -> None:
    clock = StillClock()
    memory = Memory(clock)
    for number in range(10_000):
        memory.of(f"connection {number}").went_well()
        clock.now += 1
        memory.forget_idle(())
    assert len(memory) < BACKOFF_MOST + 100
    clock.now += BACKOFF_MOST + 61
    memory.forget_idle(())
    assert len(memory) == 0


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 4, 6), (2, 8, 12), (5, 64, 96), (9, 720, 1080), (50, 720, 1080)]
)
def test_each_failure_waits_twice_as_long_up_to_a_quarter_of_an_hour(
    failures: int, least: float, most: float
) -> None:
    waits = [backoff(failures) for _ in range(200)]
    assert least <= min(waits) <= max(waits) <= most
    assert max(waits) - min(waits) > (most - least) / 2, "they are spread"


@pytest.mark.clause("COL-11")
def test_a_backoff_is_never_shorter_than_what_vrchat_asked_for() -> None:
    known = Memory(StillClock()).of("connection")
    known.failed(1000.0, 4000.0)
    assert known.not_before == 4000.0
    known.failed(1000.0, 1001.0)
    assert known.not_before > 1001.0


def test_a_pass_that_went_well_ends_the_backoff_and_the_next_failure_is_a_first_one() -> None:
    known = Memory(StillClock()).of("connection")
    for _ in range(5):
        known.failed(1000.0, 4000.0)
    known.went_well()
    assert known.not_before == 0.0
    known.failed(1000.0)
    assert known.not_before <= 1006.0


async def test_a_collector_forgets_the_connections_that_it_no_longer_serves(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts: list[Account] = []
    usual_call = Account.call

    async def remembering(account: Account, *arguments: object, **fields: object) -> object:
        accounts.append(account)
        return await usual_call(account, *arguments, **fields)  # type: ignore[arg-type]

    async def gone(_sent: m.Lease) -> m.Message:
        raise Refusal(409, "stale_lease", "This connection is not the account's.")

    monkeypatch.setattr(Account, "call", remembering)
    bench.server.handlers["lease"] = gone
    await bench.server.until("hello")
    for count in range(1, 4):
        bench.server.connection_id = fresh_id()
        await bench.server.look()
        await bench.server.until("lease", count)
    bench.server.is_look_due = False
    assert len(accounts[0].memory) == 3
    await bench.advance(BACKOFF_MOST * 3)
    del bench.server.handlers["lease"]
    await bench.server.look()
    await bench.server.until("release")
    assert len(accounts[0].memory) == 1
