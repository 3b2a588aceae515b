"""Who the account is: asked at the start, and whenever nothing has proved it for long. It costs the server nothing."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import date, datetime

import msgspec
import pytest
from collector_bench import Bench
from scripted_server import Drop, Refusal

from lastcall.collector import keep_alive
from lastcall.collector.main import NOT_SIGNED_IN
from lastcall.protocol import messages as m
from lastcall.protocol.constants import KEEP_ALIVE
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults

LEAST, MOST = (wait.total_seconds() for wait in KEEP_ALIVE)


def proofs(bench: Bench) -> int:
    """Identity reads since the sign-in, which makes two of its own."""
    return bench.reads("/auth/user") - 2


async def test_it_is_asked_before_the_first_hello_which_tells_the_accounts_age(bench: Bench) -> None:
    await bench.end()
    bench.edit("age", user_id=bench.simulator.seed.bot_id, joined_on="2026-11-20")
    before = len(bench.server.of("hello"))
    bench.start()
    hello = await bench.server.until("hello", before + 1)
    assert hello.joined_on == date(2026, 11, 20)
    assert "allowance" not in bench.server.names()


async def test_a_signed_out_account_is_noticed_at_the_start(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.end()
    bench.edit("end_sessions", user_id=bench.simulator.seed.bot_id)
    arrivals = len(bench.simulator.arrivals)
    bench.start()
    assert bench.running is not None
    assert await asyncio.wait_for(bench.running, 15) == NOT_SIGNED_IN
    assert bench.server.of("failure")[0].code == "authentication"
    assert len(bench.server.of("hello")) == 1
    assert len(bench.simulator.arrivals) - arrivals == 2, "one look, and one more"


async def test_vrchat_being_away_keeps_nobody_from_saying_hello(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.end()
    bench.simulator.arm(faults.proxy_page(502, applied=False), method="GET", path="/auth/user")
    bench.start()
    await bench.server.until("hello", 2)
    assert bench.server.of("failure") == []


async def test_a_throttled_start_waits_before_hello(bench: Bench) -> None:
    await bench.server.until("hello")
    await bench.end()
    bench.simulator.arm(faults.answer(429, retry_after="30"), method="GET", path="/auth/user")
    bench.start()
    failure = await bench.server.until("failure")
    assert (failure.code, failure.retry_after_ms) == ("rate_limit", 30_000)
    assert len(bench.server.of("hello")) == 1
    await bench.time.run_at(100)  # a jump could come between what is left of the pause and its beginning
    await bench.server.until("hello", 2)


async def next_proof(bench: Bench) -> float:
    """Let time pass until the account is asked who it is; the seconds since it was asked before."""
    before = asked_at(bench)
    for _ in range(round(MOST / 60) + 2):
        await bench.advance(60)
        with contextlib.suppress(AssertionError):
            await eventually(lambda: len(asked_at(bench)) > len(before), within=0.5)
            break
    return (asked_at(bench)[-1] - before[-1]).total_seconds()


def asked_at(bench: Bench) -> list[datetime]:
    return [arrival.at for arrival in bench.simulator.arrivals if arrival.path == "/auth/user"]


async def test_a_session_that_asks_nothing_is_asked_who_it_is(bench: Bench) -> None:
    await bench.server.until("wait")
    calls = len(bench.server.calls)
    for _ in range(3):
        assert LEAST <= await next_proof(bench) <= MOST + 65
    assert len(bench.server.calls) == calls, "an idle collector costs the server nothing"


async def test_without_it_a_session_is_left_to_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.server.until("hello")
    await bench.end()
    hour = KEEP_ALIVE[1] * 10
    monkeypatch.setattr(keep_alive, "KEEP_ALIVE", (hour, hour))
    before = proofs(bench)
    bench.start()
    await bench.server.until("hello", 2)
    await bench.advance(MOST + 5)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert proofs(bench) == before + 2, "that of the start, and that of the operation"


async def test_work_that_proves_it_puts_the_question_off(bench: Bench) -> None:
    await bench.server.until("wait")
    await bench.advance(LEAST - 10)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert proofs(bench) == 2
    assert LEAST <= await next_proof(bench) <= MOST + 65


@pytest.mark.clause("BUD-03")
async def test_what_it_sent_is_added_to_the_next_reservation_of_the_minute(bench: Bench) -> None:
    await bench.server.until("wait")
    await bench.advance(MOST + 5)
    await eventually(lambda: proofs(bench) == 2, within=10)
    await bench.advance(35)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert [call.amount for call in bench.server.of("allowance") if call.lease is None] == [2]


async def test_what_it_sent_never_makes_a_reservation_larger_than_the_limit(bench: Bench) -> None:
    """It would never be granted."""

    async def one(sent: m.Lease) -> m.Message:
        return msgspec.structs.replace(await usual(sent), account_requests_per_minute=1)

    usual = bench.server.lease
    bench.server.handlers["lease"] = one
    await bench.server.until("wait")
    await bench.advance(MOST + 5)
    await eventually(lambda: proofs(bench) == 2, within=10)
    await bench.advance(35)
    await bench.server.add("assign_role", **bench.role())
    asked = await bench.server.until("allowance")
    assert (asked.lease, asked.amount) == (None, 1)


async def test_what_it_sent_is_owed_no_longer_than_the_minute(bench: Bench) -> None:
    await bench.server.until("wait")
    await bench.advance(61)
    await bench.server.add("assign_role", **bench.role())
    await bench.server.until("release")
    assert [call.amount for call in bench.server.of("allowance") if call.lease is None] == [1]


async def test_a_session_that_ended_while_nothing_was_due_ends_the_account(bench: Bench) -> None:
    await bench.server.until("wait")
    bench.edit("end_sessions", user_id=bench.simulator.seed.bot_id)
    await bench.advance(MOST + 5)
    failure = await bench.server.until("failure")
    assert failure.code == "authentication"
    assert bench.running is not None
    assert await asyncio.wait_for(bench.running, 15) == NOT_SIGNED_IN


async def test_a_pause_that_it_is_told_of_stops_the_account(bench: Bench) -> None:
    await bench.server.until("wait")
    bench.simulator.arm(faults.answer(429, retry_after="90"), method="GET", path="/auth/user")
    await bench.advance(MOST + 5)
    failure = await bench.server.until("failure")
    assert (failure.code, failure.retry_after_ms) == ("rate_limit", 90_000)
    await bench.server.add("assign_role", **bench.role())
    await bench.time.run_at(20)
    await bench.server.until("complete")
    (paused,) = [arrival.at for arrival in bench.simulator.arrivals if arrival.status == 429]
    (group,) = [arrival.at for arrival in bench.simulator.arrivals if arrival.path.count("/") == 2][-1:]
    assert (group - paused).total_seconds() >= 90


async def test_an_account_that_the_server_shut_out_is_left_alone(bench: Bench) -> None:
    async def away(_sent: m.Wait) -> m.Message:
        raise Drop

    async def disabled(_sent: m.Hello) -> m.Message:
        raise Refusal(423, "account_disabled")

    await bench.server.until("wait")
    await bench.end()
    bench.server.handlers |= {"wait": away, "hello": disabled}
    before = proofs(bench)
    bench.start()
    await bench.server.until("hello", 3)
    await bench.advance(MOST * 2)
    await bench.server.until("hello", len(bench.server.of("hello")) + 2)
    assert proofs(bench) == before + 1, "the proof of the start alone"
