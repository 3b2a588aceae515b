"""The group's size and the people in its instances, for the club's analytics. Optional: nothing here waits."""

from __future__ import annotations

from lastcall.collector.evidence import age_ms
from lastcall.collector.failures import Setback, Trouble
from lastcall.collector.passes import Pass
from lastcall.collector.server import Refused
from lastcall.collector.state import fresh_id
from lastcall.protocol.outcomes import Code
from lastcall.protocol.telemetry import InstanceSeen, Kept, Sample
from lastcall.vrchat.aggregates import InstancePopulation, read_population
from lastcall.vrchat.errors import Membership
from lastcall.vrchat.groups import GroupLook
from lastcall.vrchat.transport import Read

MALFORMED = 422
"""The status with which the server refuses what does not fit together."""


async def run(current: Pass) -> None:
    """One look at the group and one at its instances, handed in together. The look serves the readiness too, so that
    both fit into two requests a minute (COL-02). A look that grows old while the request is got still counts: its
    age goes in with it."""
    account = current.account
    look = current.fresh_look()
    with await current.hold(2 if look is None else 1, account.clock.boot()) as held:
        look = look or await current.look_at_group(held)
        if look.own is None:
            raise Membership("The account is not a member of the group.")
        held.charge()
        population = await read_population(account.transport, current.lease.group_id)
    await _hand_in(current, look, population)
    account.tally.samples += 1


async def _hand_in(current: Pass, look: GroupLook, population: Read[tuple[InstancePopulation, ...]]) -> None:
    account = current.account
    try:
        await account.call(
            Sample,
            Kept,
            lease=current.lease.ref,
            poll_id=fresh_id(),
            age_ms=age_ms(min(look.asked_at, population.asked_at), account.clock.boot()),
            member_count=look.member_count,
            instances=tuple(
                InstanceSeen(location=one.location, world_id=one.world_id, population=one.population)
                for one in population.value
            ),
        )
    except Refused as refused:
        if refused.status != MALFORMED:
            raise
        raise Setback(Trouble(Code.SCHEMA_DRIFT, refused.sentence)) from refused
