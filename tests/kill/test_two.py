"""Two collectors of one account, ten minutes of the clock, and everything that can befall a process of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from two_house import ACCOUNT, CONNECTION, TwoHouse, two_house

from lastcall.connections.accounts import rotate_key
from lastcall.protocol.steps import Step
from lastcall.testing.database import TestServer
from lastcall.testing.waiting import eventually

pytestmark = [pytest.mark.kill, pytest.mark.asyncio(loop_scope="module")]

PAST_THE_LEASE = 310.0
"""Seconds of the clock: longer than any lease."""

TEN_MINUTES = 600.0
A_MINUTE = 60.0

READING_RATE = 3.0
"""How fast the clock runs while lists are waited for: their minute is twenty real seconds."""

AGENT = re.compile(r"Lastcall/\S+ [ab]-\d+@club\.example")
"""What VRChat asks of every request: application, version, contact."""

UNKNOWN = ("indeterminate", "submission_outcome_unknown")


def most_in_a_minute(moments: Iterable[datetime]) -> int:
    """The most that lie within any sixty seconds."""
    window: deque[datetime] = deque()
    most = 0
    for moment in sorted(moments):
        window.append(moment)
        while window[0] <= moment - timedelta(seconds=60):
            window.popleft()
        most = max(most, len(window))
    return most


@pytest_asyncio.fixture(loop_scope="module")
async def house(postgres: TestServer, tmp_path: Path) -> AsyncIterator[TwoHouse]:
    async with two_house(tmp_path, postgres) as house:
        yield house


@pytest.mark.clause("BUD-07", "COL-12", "WRK-15")
async def test_two_collectors_share_an_account_for_ten_minutes_whatever_befalls_them(house: TwoHouse) -> None:
    began = house.time.clock.boot()
    house.start("a")
    house.start("b")
    await house.queue(7)

    # Killed with an intent on its disk that nothing followed.
    hit, intended = await house.caught_at(Step.INTENT_FSYNCED)
    house.kill(hit)
    house.start(hit)

    # Stopped with an authorization in its hand, until its lease is over and the other has its work.
    hit, authorized = await house.caught_at(Step.AUTHORIZE_ANSWERED)
    house.pause(hit)
    await house.pass_time(PAST_THE_LEASE)
    house.resume(hit)
    house.barriers.release(Step.AUTHORIZE_ANSWERED)
    await house.queue(5)

    # Killed after an answer that it could not report, and started without its journal.
    hit, answered = await house.caught_at(Step.ANSWER_FSYNCED)
    house.kill(hit)
    house.lose_journal(hit)
    house.start(hit)

    # The account's key is replaced: whoever starts with the old one ends.
    old, house.key = house.key, (await rotate_key(house.database, None, house.account_id)).key
    house.kill("a")
    house.start("a", old)
    await eventually(lambda: not house.is_running("a"), message=house.log("a"))
    house.kill("b")
    house.start("a")
    house.start("b")
    await house.queue(3)

    # Killed with a claim and a lease, and back while the lease is still its own.
    hit, claimed = await house.caught_at(Step.CLAIM_ANSWERED)
    house.kill(hit)
    house.start(hit)
    await house.queue(1)
    await house.pass_time(TEN_MINUTES - (house.time.clock.boot() - began))
    await house.until_all_ended()
    # Nothing is left of the burst in any limit; and who waits at a screen has a minute that a busy machine can keep.
    await house.pass_time(A_MINUTE)
    await house.time.run_at(READING_RATE)
    await house.until_all_read(await house.ask())

    # Every operation ended once, what the ledger holds agrees with how, and nothing is there twice.
    ends = await house.fetch("select operation_id, count(*) as times from lastcall_testing.ends group by 1")
    assert {row["operation_id"]: row["times"] for row in ends} == dict.fromkeys(house.operations, 1)
    sent = await house.sent()
    rows = {operation: await house.row(operation) for operation in house.operations}
    odd = {
        operation: (row, sent[operation])
        for operation, row in rows.items()
        if sent[operation] > 1 or (row[0] != "indeterminate" and sent[operation] != (row[0] == "succeeded"))
    }
    assert odd == {}
    assert (rows[intended], sent[intended]) == (UNKNOWN, 0)
    assert (rows[authorized], sent[authorized]) == (UNKNOWN, 0)
    assert (rows[answered], sent[answered]) == (UNKNOWN, 1)
    assert rows[claimed][0] != "indeterminate"
    assert sum(row[0] == "succeeded" for row in rows.values()) > len(rows) / 2, rows

    # No calendar minute, and no sixty seconds, hold more grants than their limit.
    grants = await house.fetch("select at, scope, window_start, amount from lastcall_testing.grants")
    minutes: dict[tuple[str, datetime], int] = defaultdict(int)
    moments: dict[str, list[datetime]] = defaultdict(list)
    for grant in grants:
        minutes[grant["scope"], grant["window_start"]] += grant["amount"]
        moments[grant["scope"]] += [grant["at"]] * grant["amount"]
    assert {scope.partition(":")[0] for scope in moments} == {"fleet", "account", "connection"}
    assert {key: used for key, used in minutes.items() if used > house.limit_of(key[0])} == {}
    crowded = {scope: most_in_a_minute(found) for scope, found in moments.items()}
    assert {scope: most for scope, most in crowded.items() if most > house.limit_of(scope)} == {}
    assert max(crowded.values()) >= ACCOUNT - 4, "the limits were felt"

    # Nor has any process sent more than that, in all and in one group.
    by_process: dict[str, list[datetime]] = defaultdict(list)
    by_group: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    left = house.departures()
    for departure in left:
        by_process[departure.agent].append(departure.at)
        if departure.path.startswith("/groups/"):
            by_group[departure.agent, departure.path.split("/")[2]].append(departure.at)
    assert len(by_process) >= 6
    arrived = Counter((arrival.agent, arrival.path) for arrival in house.simulator.arrivals)
    assert arrived <= Counter((departure.agent, departure.path) for departure in left), "none went out unseen"
    assert [agent for agent in by_process if not AGENT.fullmatch(agent)] == []
    assert {
        agent: most for agent, found in by_process.items() if (most := most_in_a_minute(found)) > ACCOUNT
    } == {}
    assert {
        key: most for key, found in by_group.items() if (most := most_in_a_minute(found)) > CONNECTION
    } == {}

    (counts,) = await house.fetch("select count(distinct club_id) as sampled from telemetry_samples")
    assert counts["sampled"] >= 1, "analytics came through beside the work"
