"""The inbox without scripts: what waits, for whom, and what became of what they pressed."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import UUID

import pytest
from tests.web.conftest import Site, Visitor, World

from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import Activity, AgentSubject, record_join_request, write_join_request_change
from lastcall.clubs.queries import roles_of
from lastcall.clubs.staff import assign_role
from lastcall.decisions.retention.controls import keep
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST

Visit = Callable[..., Visitor]
INBOX = "/c/night-shift/inbox"
KEY = re.compile(r'name="item" value="([^"]+)"')
BADGE = re.compile(r'id="inbox-badge" class="badge"( hx-swap-oob="true")?( hidden)?>(\d+\+?)<')


async def waiting(world: World, name: str) -> UUID:
    """An agent at the door."""
    made = await create_invite(world.db, world.actors["owner"], world.club_id, (), kind=InviteKind.AGENT)
    return await record_join_request(world.db, world.club_id, made.id, AgentSubject(name))


def badge(text: str) -> str:
    found = BADGE.search(text)
    assert found is not None
    return found[3]


@pytest.mark.clause("DEC-01", "RET-19")
async def test_what_waits_is_shown_to_whoever_decides_it_and_to_nobody_else(
    world: World, site: Site, visit: Visit
) -> None:
    await waiting(world, "Night porter")
    for path in (INBOX, "/inbox"):
        owner, staff = (await visit("owner").get(path)).text, (await visit("staff").get(path)).text
        assert "Night porter" in owner
        assert "nobody has decided yet" in owner
        assert "Then it is archived by itself" in owner
        assert "Night porter" not in staff
        assert "Nothing waits for you" in staff
        assert "Night porter" not in (await visit("stranger").get("/inbox")).text
    async with world.db.read() as tx:
        moderator = next(role for role in await roles_of(tx, world.club_id) if role.name == "Moderator")
    await assign_role(
        world.db, world.actors["owner"], world.club_id, moderator.id, world.actors["staff"].person_id
    )
    assert "Night porter" in (await visit("staff").get("/inbox")).text


@pytest.mark.clause("DEC-06")
async def test_the_badge_of_every_page_is_the_number_of_rows_of_the_list(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    for n in range(3):
        page = (await owner.get(INBOX)).text
        assert len(KEY.findall(page)) == n
        for other in ("scheduled", "events", "staff", "inbox"):
            assert badge((await owner.get(f"/c/night-shift/{other}")).text) == str(n), other
        assert badge((await visit("staff").get("/c/night-shift/scheduled")).text) == "0"
        await waiting(world, f"Agent {n}")
    key = KEY.findall((await owner.get(INBOX)).text)[0]
    await owner.post(INBOX, {"do": f"dismiss {key}"})
    assert badge((await owner.get("/c/night-shift/scheduled")).text) == "2"


@pytest.mark.clause("DEC-05")
async def test_many_are_acted_on_at_once_and_those_that_could_not_be_are_told_with_the_reason(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    moved = await waiting(world, "Moved")
    await waiting(world, "Still")
    keys = KEY.findall((await owner.get(INBOX)).text)
    await keep(world.db, world.actors["owner"], world.club_id, JOIN_REQUEST, moved, seen_version=0)
    answer = await owner.post(INBOX, {"do": "archive", "item": keys})
    assert answer.status_code == 200
    assert "Archive: 1 done, 1 not." in answer.text
    assert "Somebody changed this meanwhile." in answer.text
    assert "Kept" in answer.text  # the fresh row
    archived = (await owner.get(f"{INBOX}?shelf=archived")).text
    assert "Still" in archived
    assert "Bring back" in archived
    key = KEY.findall(archived)[0]
    back = await owner.post(f"{INBOX}?shelf=archived", {"do": f"revive {key}"})
    assert back.status_code == 303
    done = (await owner.get(back.headers["location"])).text
    assert "1 brought back." in done
    assert "Nothing on this shelf" in done


async def test_a_snooze_puts_an_item_away_for_its_reader_alone(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    await waiting(world, "Later")
    (key,) = KEY.findall((await owner.get(INBOX)).text)
    assert (await owner.post(INBOX, {"do": "snooze", "item": key, "days": "7"})).status_code == 303
    assert "Nothing waits for you" in (await owner.get(INBOX)).text
    away = (await owner.get(f"{INBOX}?shelf=away")).text
    assert "Put away until" in away
    await owner.post(f"{INBOX}?shelf=away", {"do": f"show {key}"})
    assert "Later" in (await owner.get(INBOX)).text


@pytest.mark.clause("DEC-05")
async def test_what_moved_behind_an_open_page_is_not_put_away_unseen(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    request_id = await waiting(world, "Porter")
    (key,) = KEY.findall((await owner.get(INBOX)).text)
    await write_join_request_change(world.db, world.actors["owner"], world.club_id, request_id, Activity())
    for act in ("dismiss", "snooze"):
        answer = await owner.post(INBOX, {"do": f"{act} {key}"})
        assert answer.status_code == 200
        assert "Something happened to this meanwhile." in answer.text
        assert "Porter" in answer.text
    (fresh,) = KEY.findall((await owner.get(INBOX)).text)
    assert (await owner.post(INBOX, {"do": f"dismiss {fresh}"})).status_code == 303
    assert "Nothing waits for you" in (await owner.get(INBOX)).text


async def test_what_no_page_sends_is_refused_in_words(world: World, site: Site, visit: Visit) -> None:
    owner = visit("owner")
    await waiting(world, "Porter")
    (key,) = KEY.findall((await owner.get(INBOX)).text)
    for fields, words in (
        ({"do": "dance"}, "Press one of the buttons."),
        ({"do": "archive"}, "Choose between one and 100 items."),
        ({"do": "archive join_request/x"}, "This form is not complete."),
        ({"do": f"dismiss {key.rpartition('/')[0]}/soon"}, "This form is not complete."),
        ({"do": f"snooze {key}", "days": "9999"}, "Choose how long."),
    ):
        answer = await owner.post(INBOX, fields)
        assert answer.status_code == 200
        assert words in answer.text
    for query in ("shelf=attic", "kind=ghost"):
        assert (await owner.get(f"{INBOX}?{query}")).status_code == 404
