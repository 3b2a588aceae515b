"""What stands between an account and its session, and what never makes it worse."""

from __future__ import annotations

import asyncio

import pytest
from tests.hostile.stage import Place, Stage

from lastcall.errors import LastcallError
from lastcall.vrchat.errors import RateLimit
from lastcall.vrchat.simulator import faults
from lastcall.vrchat.simulator.auth import SIGN_INS

pytestmark = pytest.mark.asyncio(loop_scope="module")

WHOLE = 20


def sign_ins(place: Place) -> int:
    return len(place.bot.sign_ins)


async def end_of(place: Place) -> LastcallError:
    assert place.running is not None
    with pytest.raises(LastcallError) as raised:
        await asyncio.wait_for(place.running, WHOLE)
    return raised.value


async def test_a_locked_account_is_told_and_not_tried_again(stage: Stage) -> None:
    place = await stage.place()
    place.bot.sign_ins += [stage.time.clock.wall()] * SIGN_INS
    place.start()
    refused = await end_of(place)
    assert isinstance(refused, RateLimit)
    assert refused.retry_after == 4 * 3600
    assert sign_ins(place) == SIGN_INS + 1


async def test_a_wrong_password_is_typed_once(stage: Stage) -> None:
    place = await stage.place()
    place.bot.password = "another"
    place.start(password="wrong")
    assert (await end_of(place)).code == "authentication"
    assert sign_ins(place) == 1


async def test_a_code_by_mail_is_asked_for_once_and_the_session_kept(stage: Stage) -> None:
    place = await stage.place()
    place.bot.totp_secret, place.bot.mails_code = None, True
    asked = []

    async def read_mail(_name: str, what: str) -> str:
        asked.append(what)
        return place.bot.mailed_code or ""

    await place.look_due()
    place.start(read_mail, totp=None)
    await place.rested()
    assert asked == ["emailOtp"]
    (operation,) = await place.enqueue(
        {"kind": "ban_member", "targetUserId": place.seed.members[0]},
    )
    await place.comes_to(operation, "succeeded")
    place.stop.set()
    assert place.running is not None
    await asyncio.wait_for(place.running, WHOLE)
    place.stop = asyncio.Event()
    await place.look_due()
    place.start()  # and nobody is there to ask
    await place.rested()
    assert sign_ins(place) == 1


async def test_a_second_factor_that_is_asked_for_anew_waits_for_a_person(stage: Stage) -> None:
    """VRChat mails no codes that nobody asked for."""
    place = await stage.place()
    place.bot.totp_secret, place.bot.mails_code = None, True

    async def read_mail(_name: str, _what: str) -> str:
        return place.bot.mailed_code or ""

    await place.look_due()
    place.start(read_mail, totp=None)
    await place.rested()
    stage.simulator.world.second_factors.clear()
    await stage.advance(61)
    await place.enqueue({"kind": "ban_member", "targetUserId": place.seed.members[0]})

    async def waits() -> bool:
        return bool(
            await place.fetch(
                "select 1 from accounts where id = $1 and state = 'auth_required'", place.key.account_id
            )
        )

    await stage.eventually(waits)
    assert place.bot.mailed_code is None
    assert sign_ins(place) == 1


async def test_five_minutes_of_5xx_end_what_waits_and_nothing_else(stage: Stage) -> None:
    """Three tries, a minute apart, are all that an operation gets (WRK-18); its connection is degraded meanwhile and
    works again by itself."""
    place = await stage.place()
    await place.warm()
    place.arm(faults.answer(503), times=10_000)
    member, other = place.seed.members[:2]
    (early,) = await place.enqueue({"kind": "ban_member", "targetUserId": member})
    states = set()
    for _ in range(10):
        await stage.advance(30)
        await place.settled()
        row = await place.fetch("select state from connections where id = $1", place.connection_id)
        states.add(row["state"])
    assert "degraded" in states
    await place.comes_to(early, "rejected preflight_retries_exhausted")
    (late,) = await place.enqueue({"kind": "ban_member", "targetUserId": other})
    await stage.advance(30)
    stage.simulator.faults.clear()
    for _ in range(4):
        await stage.advance(60)
        await place.settled()
    await place.comes_to(late, "succeeded")
    row = await place.fetch("select state from connections where id = $1", place.connection_id)
    assert row["state"] == "active"
    assert place.writes() == 1
