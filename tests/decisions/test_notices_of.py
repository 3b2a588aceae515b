"""What a person was told is shown while they may know of it, to nobody else, and no more once they dismissed it."""

from __future__ import annotations

import asyncio

import pytest
from tests.decisions.conftest import Door, open_door
from tests.decisions.deliveries_kit import KIND, PUBLIC_URL, add_staff, passes, row, state, tell

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, standing
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries import dead
from lastcall.decisions.deliveries.deliver import Message, ToPerson, deliver
from lastcall.decisions.deliveries.kinds import declare_kind
from lastcall.decisions.deliveries.notices import NoticesPage, dismiss_notices, notices_of
from lastcall.decisions.deliveries.sending import deliveries_owner
from lastcall.decisions.deliveries.signals import DELIVERIES
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.testing.locks import wait_until_blocked


@pytest.fixture(autouse=True)
def declared(door: Door) -> None:
    del door  # its registration comes first
    declare_kind(KIND)


async def shown(actor: Actor, *doors: Door, **page: object) -> NoticesPage:
    async with doors[0].db.read() as tx:
        found: dict[object, Standing] = {
            one.club_id: await standing(tx, one.club_id, actor.person_id) for one in doors
        }
        return await notices_of(tx, actor, found, **page)  # type: ignore[arg-type]


async def test_a_notice_says_what_happened_and_leads_there(door: Door) -> None:
    await tell(door)
    (notice,) = (await shown(door.owner, door)).items
    assert (notice.subject, notice.sentence) == ("News", "Something happened in Club.")
    assert (notice.action, notice.path) == ("Look", "/c/attic/inbox")


async def test_the_newest_of_several_clubs_come_first_and_pages_lose_none(door: Door) -> None:
    other = await open_door(door.db, "cellar")
    await door.db.pool.execute("update clubs set owner_id = $1", door.owner.person_id)
    for number in range(3):
        await tell(door, f"{number}")
        await tell(other, f"{number}", door.owner.person_id)
    whole = await shown(door.owner, door, other)
    assert [one.club_id for one in whole.items] == [other.club_id, door.club_id] * 3
    pages, after = [], None
    while True:
        page = await shown(door.owner, door, other, after=after, limit=4)
        pages += [one.id for one in page.items]
        after = page.next
        if after is None:
            break
    assert pages == [one.id for one in whole.items]


async def test_a_notice_is_its_recipients_alone_and_gone_with_their_place_on_the_staff(door: Door) -> None:
    member = await add_staff(door, "member")
    await tell(door, person_id=member.person_id)
    assert len((await shown(member, door)).items) == 1
    assert (await shown(door.owner, door)).items == []
    await door.db.pool.execute("delete from staff_assignments")
    assert (await shown(member, door)).items == []


async def test_who_lost_the_permission_is_not_told_what_it_counted(door: Door) -> None:
    decider = await add_staff(door, "decider", Permission.DECIDE_ACCESS)
    counts = Message(
        "retention.digest", "2031-03-01", data={"day": "2031-03-01", "join_request": 3, "approval": 1}
    )
    async with door.db.transaction() as tx:
        await deliver(tx, door.club_id, [ToPerson(decider.person_id)], counts)
    (notice,) = (await shown(decider, door)).items
    assert "3 join requests of Club" in notice.sentence
    assert "approval" not in notice.sentence, "of that they may not know"
    await door.db.pool.execute("update staff_roles set permissions = '{}'")
    assert (await shown(decider, door)).items == []


async def test_what_is_dismissed_is_shown_no_more_and_others_keep_theirs(door: Door) -> None:
    member = await add_staff(door, "member")
    await tell(door)
    await tell(door, person_id=member.person_id)
    mine, theirs = (await shown(door.owner, door)).items[0], (await shown(member, door)).items[0]
    await dismiss_notices(door.db, door.owner, door.club_id, [mine.id, theirs.id])
    assert (await shown(door.owner, door)).items == []
    assert len((await shown(member, door)).items) == 1
    with pytest.raises(Invalid, match="At most 100"):
        await dismiss_notices(door.db, door.owner, door.club_id, [mine.id] * 101)
    stranger = (await open_door(door.db, "cellar")).owner
    with pytest.raises(NotFound):
        await dismiss_notices(door.db, stranger, door.club_id, [mine.id])


async def kill(door: Door) -> None:
    """The one mail is given up."""
    await door.db.pool.execute(
        "update deliveries set state = 'dead', attempts = 8, next_at = null, ended_at = lastcall_now(),"
        " last_error = '550 no such user' where channel = 'mail'"
    )


async def test_what_was_given_up_is_listed_for_who_may_mend_it_and_tried_again_from_the_start(
    door: Door,
) -> None:
    await tell(door)
    await kill(door)
    manager = await add_staff(door, "manager", Permission.MANAGE_CONNECTION)
    async with door.db.read() as tx:
        (one,) = await dead.dead_of_club(tx, manager, door.club_id)
        assert (one.recipient, one.channel, one.error) == ("Owner", "mail", "550 no such user")
        operator = Actor(door.owner.person_id, "Owner", is_operator=True)
        with pytest.raises(NotAllowed):
            await dead.dead_everywhere(tx, door.owner)
    await door.db.pool.execute("update people set is_operator = true where id = $1", operator.person_id)
    async with door.db.read() as tx:
        assert [found.id for found in await dead.dead_everywhere(tx, operator)] == [one.id]
    heard: list[Signal] = []
    door.db.bus.subscribe(Signal, heard.append)
    await dead.try_again(door.db, manager, door.club_id, one.id)
    again = await row(door)
    assert (again["state"], again["attempts"], again["last_error"]) == ("pending", 0, "550 no such user")
    assert heard == [Signal(DELIVERIES, again["next_at"])]
    await passes(deliveries_owner(door.db, Mailer(door.db, None, PUBLIC_URL)))
    assert await state(door) == "dropped"


@pytest.mark.parametrize("ended", ["unknown", "delivered", "dropped"])
async def test_only_what_is_dead_is_tried_again(door: Door, ended: str) -> None:
    """Above all no mail of which nobody knows whether it arrived."""
    await tell(door)
    await kill(door)
    await door.db.pool.execute("update deliveries set state = $1 where channel = 'mail'", ended)
    with pytest.raises(Conflict) as refused:
        await dead.try_again(door.db, door.owner, door.club_id, (await row(door))["id"])
    assert refused.value.code == "delivery_not_dead"
    with pytest.raises(NotFound):
        await dead.try_again(door.db, door.owner, door.club_id, door.club_id)


async def test_of_two_who_try_again_at_once_one_does(door: Door) -> None:
    await tell(door)
    await kill(door)
    delivery_id = (await row(door))["id"]
    connection = await door.db.connect()
    other = connection.transaction()
    await other.start()
    await connection.fetch(dead._AGAIN, door.club_id, delivery_id)
    trying = asyncio.create_task(dead.try_again(door.db, door.owner, door.club_id, delivery_id))
    await wait_until_blocked(door.db, "set state = 'pending', attempts = 0", by=connection.get_server_pid())
    await other.commit()
    with pytest.raises(Conflict):
        await trying
    await connection.close()
    assert await state(door) == "pending"
