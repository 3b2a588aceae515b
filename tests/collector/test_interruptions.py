"""A stop and a lost lease, in each phase: what is under way ends, and nothing after it is asked or half done."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec
import pytest
import structlog
from collector_bench import Bench
from scripted_server import Drop, Refusal

from lastcall.collector.leases import HeldLease
from lastcall.collector.state import fresh_id
from lastcall.protocol import messages as m
from lastcall.protocol.reads import ClaimedRead
from lastcall.protocol.telemetry import AuditWindow
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults

GROUP = "/groups/grp_????????-????-????-????-????????????"


@dataclass(frozen=True)
class Place:
    """A request of a phase. ``told``: the calls that must not be made once it was interrupted there."""

    name: str
    method: str
    path: str
    told: tuple[str, ...]
    state: str = "active"
    features: tuple[str, ...] = ("membership_management",)
    edits: tuple[str, ...] = field(default=())


PLACES = [
    Place("look", "GET", GROUP, ("left",), state="connecting", edits=("remove_member",)),
    Place("operation", "GET", GROUP, ("authorize", "complete", "reject")),
    Place("read", "GET", GROUP, ("read_complete", "read_failed")),
    Place("aggregates", "GET", GROUP, ("sample",), features=("analytics",)),
]


async def held_at(bench: Bench, place: Place) -> int:
    """Begin a pass and hold its request there; how many requests had arrived by then."""
    await bench.server.until("hello")
    for name in place.edits:
        bench.edit(name, user_id=bench.simulator.seed.bot_id)
    bench.edit("set_join_state", join_state="open")
    bench.server.state, bench.server.features = place.state, place.features
    bench.simulator.arm(faults.hold("here", "arrived"), method=place.method, path=place.path)
    now, year = bench.time.clock.wall(), timedelta(days=365)
    bench.server.windows.append(
        AuditWindow(scan_id="0" * 26, starts_at=now - year, ends_at=now + year, offset=0)
    )
    if place.name == "operation":
        await bench.server.add("assign_role", **bench.role())
    if place.name == "read":
        bench.server.reads.append(
            ClaimedRead(read_id=fresh_id(), nonce=fresh_id(), kind="bans", params={"n": 5}, life_ms=240_000)
        )
    await bench.server.look()
    await bench.simulator.reached("here")
    return len(bench.simulator.arrivals)


@pytest.mark.clause("COL-12")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
async def test_a_stop_lets_the_request_end_and_asks_nothing_after_it(bench: Bench, place: Place) -> None:
    arrivals = await held_at(bench, place)
    bench.stop.set()
    bench.simulator.release("here")
    assert await bench.end() == 0
    assert len(bench.simulator.arrivals) == arrivals
    assert not {*bench.server.names()} & {*place.told}
    assert bench.server.names()[-1] == "release"
    assert bench.writes() == 0


@pytest.mark.clause("COL-12")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
async def test_a_lost_lease_lets_the_request_end_and_asks_nothing_after_it(
    bench: Bench, place: Place
) -> None:
    arrivals = await lose_the_lease_at(bench, place)
    assert len(bench.simulator.arrivals) == arrivals
    assert bench.server.of("failure") == []
    assert bench.writes() == 0


@pytest.mark.parametrize("place", PLACES[2:], ids=lambda place: place.name)
async def test_without_the_look_at_the_lease_another_request_follows(
    bench: Bench, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeldLease, "check", lambda _lease, _now: None)
    arrivals = await lose_the_lease_at(bench, place)
    assert len(bench.simulator.arrivals) > arrivals


async def lose_the_lease_at(bench: Bench, place: Place) -> int:
    """It is refused at its first renewal, while evidence and reservation are good for long."""

    async def short(sent: m.Lease) -> m.Message:
        return msgspec.structs.replace(await usual(sent), life_ms=20_000)

    async def lost(_sent: m.Renew) -> m.Message:
        raise Refusal(409, "lease_lost")

    usual = bench.server.lease
    bench.server.handlers |= {"lease": short, "renew": lost}
    arrivals = await held_at(bench, place)
    with structlog.testing.capture_logs() as lines:
        await bench.advance(11)
        await eventually(lambda: any(line["event"] == "lease lost" for line in lines), within=10)
    bench.simulator.release("here")
    await bench.server.until("release")
    return arrivals


async def test_a_lease_that_could_not_be_renewed_in_time_is_over(bench: Bench) -> None:
    async def short(sent: m.Lease) -> m.Message:
        return msgspec.structs.replace(await usual(sent), life_ms=20_000)

    async def away(_sent: m.Renew) -> m.Message:
        raise Drop

    usual = bench.server.lease
    bench.server.handlers |= {"lease": short, "renew": away}
    arrivals = await held_at(bench, PLACES[2])
    await bench.advance(21)
    bench.simulator.release("here")
    await bench.server.until("release")
    assert len(bench.simulator.arrivals) == arrivals


async def test_a_refused_session_that_was_not_looked_at_again_is_not_called_over(bench: Bench) -> None:
    """The second look had no room, and the stop ended its wait: one 401 signs no account out."""

    async def full(sent: m.Lease) -> m.Message:
        return msgspec.structs.replace(await usual(sent), account_requests_per_minute=3)

    usual = bench.server.lease
    bench.server.handlers["lease"] = full
    refusal = dataclasses.replace(PLACES[2], path="/groups/*/bans")
    bench.simulator.arm(msgspec.structs.replace(faults.answer(401), hold="here"), path=refusal.path)
    await held_at(bench, refusal)
    bench.stop.set()
    bench.simulator.release("here")
    assert await bench.end() == 0
    assert [told.code for told in bench.server.of("read_failed")] == ["transient"]
    assert {told.code for told in bench.server.of("failure")} <= {"transient"}
