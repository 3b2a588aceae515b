"""A channel that a room registers reaches whom it can, is tried again when it fails, and costs mail nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.decisions.conftest import Door
from tests.decisions.deliveries_kit import KIND, PUBLIC_URL, Pager, add_staff, passes, row, state, tell

from lastcall.deadlines.owner import Done, Owner
from lastcall.decisions.deliveries import channels
from lastcall.decisions.deliveries import sending as sending_module
from lastcall.decisions.deliveries.channels import register_channel
from lastcall.decisions.deliveries.kinds import declare_kind
from lastcall.decisions.deliveries.sending import ATTEMPTS_MOST, STALE_AFTER, deliveries_owner, pause_after
from lastcall.errors import NotFound
from lastcall.mail.mailer import Mailer
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually


@pytest.fixture
async def pager(door: Door, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch) -> Pager:
    monkeypatch.setattr(channels, "_channels", {})
    declare_kind(KIND)
    pager = Pager({door.owner.person_id})
    register_channel(pager)
    await test_clock.freeze()
    return pager


@pytest.fixture
def owner(door: Door) -> Owner:
    return deliveries_owner(door.db, Mailer(door.db, None, PUBLIC_URL))


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    kept = dict(channels._channels)
    yield
    channels._channels.clear()
    channels._channels.update(kept)


async def test_whom_a_channel_reaches_is_told_by_it_and_others_are_not(
    door: Door, pager: Pager, owner: Owner
) -> None:
    other = await add_staff(door, "second")
    await tell(door)
    await tell(door, person_id=other.person_id)
    await passes(owner)
    assert pager.said == [(door.owner.person_id, "Something happened in Club.", "/c/attic/inbox")]
    assert (await row(door, "slack"))["person_id"] == door.owner.person_id
    assert await state(door, "slack") == "delivered"
    assert (await owner.next_deadline()).deadline is None


async def test_a_channel_that_fails_is_tried_again_and_given_up_in_the_end(
    door: Door, pager: Pager, owner: Owner, test_clock: TestClock
) -> None:
    pager.fails = [RuntimeError("no answer")] * ATTEMPTS_MOST
    await tell(door)
    for attempt in range(1, ATTEMPTS_MOST):
        await passes(owner)
        again = (await owner.next_deadline()).deadline
        assert again == await test_clock.now() + pause_after(attempt)
        await test_clock.set(again)
    await passes(owner)
    dead = await row(door, "slack")
    assert (dead["state"], dead["last_error"]) == ("dead", "RuntimeError: no answer")
    assert (await owner.next_deadline()).deadline is None


async def test_somebody_who_is_not_there_any_more_is_told_nothing_more(
    door: Door, pager: Pager, owner: Owner
) -> None:
    pager.fails = [NotFound("slack_unlinked", "They are not linked any more.")]
    await tell(door)
    await passes(owner)
    assert (await state(door, "slack"), pager.said) == ("dropped", [])


async def test_a_channel_that_hangs_is_cut_off(
    door: Door, pager: Pager, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending_module, "SEND_TIMEOUT", timedelta(milliseconds=20))

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(pager, "send", hang)
    await tell(door)
    await passes(owner)
    found = await row(door, "slack")
    assert (found["state"], found["attempts"], found["last_error"]) == ("pending", 1, "TimeoutError")


async def test_an_attempt_that_its_process_did_not_live_to_settle_is_made_again(
    door: Door, pager: Pager, owner: Owner, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """What ends a process: no handler sees it."""

    async def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(pager, "send", die)
        await tell(door)
        with pytest.raises(Killed):
            await passes(owner)
    assert await state(door, "slack") == "delivering"
    again = deliveries_owner(door.db, Mailer(door.db, None, PUBLIC_URL))
    assert (await again.next_deadline()).deadline == await test_clock.now() + STALE_AFTER
    await test_clock.advance(STALE_AFTER)
    await passes(again)
    await test_clock.advance(pause_after(1))
    await passes(again)
    assert (await state(door, "slack"), len(pager.said)) == ("delivered", 1)


async def test_an_attempt_that_ends_late_does_not_undo_the_one_after_it(
    door: Door, pager: Pager, owner: Owner, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt answers when another process has long taken it for lost and delivered the message."""
    late, real = asyncio.Event(), pager.send

    async def late_failure(*_: object) -> None:
        await late.wait()
        raise RuntimeError("too late")

    monkeypatch.setattr(sending_module, "SEND_TIMEOUT", timedelta(seconds=60))
    monkeypatch.setattr(pager, "send", late_failure)
    await tell(door)
    first = asyncio.create_task(passes(owner))
    await eventually(lambda: is_under_way(door))
    monkeypatch.setattr(pager, "send", real)
    second = deliveries_owner(door.db, Mailer(door.db, None, PUBLIC_URL))
    await test_clock.advance(STALE_AFTER)
    await passes(second)
    await test_clock.advance(pause_after(1))
    await passes(second)
    late.set()
    await first
    assert (await state(door, "slack"), len(pager.said)) == ("delivered", 1)


async def is_under_way(door: Door) -> bool:
    return await state(door, "slack") == "delivering"


async def test_two_processes_at_one_delivery_say_it_once(
    door: Door, pager: Pager, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the row while the first judges it, and then finds it taken."""
    reached, released, real = asyncio.Event(), asyncio.Event(), sending_module.words_for

    async def slow(*arguments: object) -> object:
        if not reached.is_set():
            reached.set()
            await released.wait()
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sending_module, "words_for", slow)
    await tell(door)
    await door.db.pool.execute("delete from deliveries where channel = 'mail'")
    first = asyncio.create_task(passes(owner))
    await reached.wait()
    second = asyncio.create_task(passes(deliveries_owner(door.db, Mailer(door.db, None, PUBLIC_URL))))
    await wait_until_blocked(door.db, "from deliveries")
    released.set()
    await asyncio.gather(first, second)
    assert len(pager.said) == 1


async def test_a_channel_that_is_gone_keeps_nothing_waiting(door: Door, pager: Pager, owner: Owner) -> None:
    await tell(door)
    channels._channels.clear()
    assert isinstance(await passes(owner), Done)
    assert (await state(door, "slack"), pager.said) == ("dropped", [])
