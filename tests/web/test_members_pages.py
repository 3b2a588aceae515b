"""Members over HTTP: what was just read, who may see it, and what begins from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.web.conftest import ROLE, Site, Visitor, World, user
from tests.web.reads import answer, fail, group_seen, member, person
from tests.web.test_compose_pages import carried, stored

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import roles_of
from lastcall.connections.connect import set_features
from lastcall.connections.states import Feature
from lastcall.db.limits import Limit
from lastcall.reads import asking
from lastcall.testing.clock import TestClock
from lastcall.testing.staff import change_role
from lastcall.web.routes import compose, members

Visit = Callable[..., Visitor]
MEMBERS = "/c/night-shift/members"
GONE = "Refresh to continue."


async def opened(visitor: Visitor, path: str) -> str:
    """Open a list, and where that leads: the address of the read."""
    answer = await visitor.get(path)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def asked(world: World) -> list[dict[str, Any]]:
    rows = await world.db.pool.fetch(
        "select kind, params::text from provider_reads order by requested_at, id"
    )
    return [{"kind": row["kind"], **json.loads(row["params"])} for row in rows]


async def allow(world: World, *permissions: Permission) -> None:
    """Let the staff do just this."""
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[-1]
    await change_role(
        world.db,
        world.actors["owner"],
        world.club_id,
        role.id,
        permissions=permissions,
        provider_roles=[ROLE],
    )


async def shown(
    world: World, visitor: Visitor, tab: str, items: list[dict[str, Any]], **how: Any
) -> tuple[str, str]:
    """A list with these people on it: its address, and the page."""
    path = await opened(visitor, f"{MEMBERS}/{tab}")
    await answer(world, items, **how)
    return path, (await visitor.get(path)).text


async def begun(visitor: Visitor, tab: str, page: str, fields: dict[str, Any]) -> Any:
    """Press a button of a list."""
    read = re.search(r'name="read" value="(\w+)"', page)
    assert read is not None
    token = await visitor.token("/")
    data = {"form_token": token, "read": read[1], **fields}
    return await visitor.client.post(f"{MEMBERS}/{tab}/review", data=data)


async def test_opening_asks_vrchat_once_and_looking_again_asks_nothing(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    assert (await visitor.get(MEMBERS)).headers["location"] == f"{MEMBERS}/directory"
    path = await opened(visitor, f"{MEMBERS}/directory")
    text = (await visitor.get(path)).text
    assert "Asking VRChat" in text
    assert "No collector has taken it yet" in text
    assert "/live/reads" in text
    assert await opened(visitor, f"{MEMBERS}/directory") == path
    await answer(world, [member(1, "Fox")], next_offset=25, total=40)
    for _ in range(2):
        text = (await visitor.get(path)).text
        assert "Fox" in text
    assert "40 in all" in text
    assert f"{MEMBERS}/directory?offset=25" in text
    assert await asked(world) == [{"kind": "members", "n": 25, "offset": 0}]
    await opened(visitor, f"{MEMBERS}/directory?offset=25")
    await opened(visitor, f"{MEMBERS}/directory?search=fox+hunter")
    assert (await asked(world))[1:] == [
        {"kind": "members", "n": 25, "offset": 25},
        {"kind": "search", "query": "fox hunter", "n": 25, "offset": 0},
    ]


async def test_people_stand_by_name_with_their_roles_and_nobody_protected_has_a_button(
    world: World, site: Site, visit: Visit
) -> None:
    await group_seen(world, owner=user(2))
    visitor = visit("owner")
    _, text = await shown(
        world, visitor, "directory", [member(1, "Fox", ROLE), member(2, "Owl"), member(3, "<b>Hen</b>")]
    )
    rows = re.findall(r'<li class="row person".*?</li>\s*(?=<li class="row|</ul>\s*</form>)', text, re.DOTALL)
    fox, owl, hen = rows
    assert "Regular" in fox
    assert f'value="ban_member {user(1)}"' in fox
    assert f'name="people" value="{user(1)}"' in fox
    assert "owner of the group" in owl
    assert "<button class" not in owl.replace('<button type="button" class="copy"', "")
    assert 'type="checkbox"' not in owl
    assert "&lt;b&gt;Hen&lt;/b&gt;" in hen
    assert re.search(r"good until \d\d:\d\d:\d\d", text)
    assert "<option value=" in text


@pytest.mark.parametrize("age", [60, 600])
async def test_what_is_a_minute_old_is_not_shown_and_the_way_to_read_it_anew_stays(
    world: World, site: Site, visit: Visit, test_clock: TestClock, age: int
) -> None:
    visitor = visit("owner")
    path, text = await shown(world, visitor, "directory", [member(1, "Fox")], next_offset=25)
    assert "Fox" in text
    await test_clock.advance(timedelta(seconds=age))
    text = (await visitor.get(path)).text
    assert "Fox" not in text
    assert "offset=25" not in text
    assert GONE in text
    assert f'href="{MEMBERS}/directory" data-refresh' in text
    # A quarter of an hour later the read itself is gone, which makes no difference to whoever looks.
    await world.db.pool.execute("delete from provider_reads")
    assert GONE in (await visitor.get(path)).text


async def test_a_part_that_is_asked_for_carries_the_nonce_of_its_question(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    path, _ = await shown(world, visitor, "requests", [person(1, "Fox")])
    nonce = "ab" * 16
    part = await visitor.get(path, headers={"HX-Request": "true", "X-Fresh-Nonce": nonce})
    assert f'data-nonce="{nonce}"' in part.text
    assert "<html" not in part.text
    forged = await visitor.get(path, headers={"HX-Request": "true", "X-Fresh-Nonce": '"><script>'})
    assert "<script>" not in forged.text


async def test_a_review_names_everybody_who_was_ticked_as_vrchat_names_them(
    world: World, site: Site, visit: Visit
) -> None:
    await group_seen(world, owner=user(9))
    visitor = visit("owner")
    _, text = await shown(
        world, visitor, "directory", [member(n, f"Fox {n}") for n in range(1, 4)] + [member(9, "Owl")]
    )
    chosen = {"act": "assign_role", "role": ROLE, "people": [user(1), user(3), user(9), user(8)]}
    review = await begun(visitor, "directory", text, chosen)
    assert review.status_code == 200, review.text
    assert "2 people" in review.text
    assert "Regular" in review.text
    for name, is_named in (("Fox 1", True), ("Fox 2", False), ("Fox 3", True), ("Owl", False)):
        assert (f"<b>{name}</b>" in review.text) is is_named
    assert re.search(r"good until \d\d:\d\d:\d\d", review.text)
    assert (await visitor.post("/c/night-shift/new/assign_role", carried(review.text))).status_code == 303
    assert [row["targetUserId"] for row in await stored(world)] == [user(1), user(3)]


async def test_twin_without_a_look_at_who_is_protected_they_are_reviewed_like_anybody(
    world: World, site: Site, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(*_: Any) -> dict[str, str]:
        return {}

    monkeypatch.setattr(members, "_protected", nobody)
    await group_seen(world, owner=user(9))
    visitor = visit("owner")
    _, text = await shown(world, visitor, "directory", [member(9, "Owl")])
    review = await begun(visitor, "directory", text, {"act": f"ban_member {user(9)}"})
    assert "<b>Owl</b>" in review.text


async def test_one_button_is_about_the_one_person_beside_it(world: World, site: Site, visit: Visit) -> None:
    visitor = visit("owner")
    _, text = await shown(world, visitor, "requests", [person(1, "Fox"), person(2, "Owl")])
    review = await begun(visitor, "requests", text, {"act": f"reject_request {user(2)}", "people": [user(1)]})
    assert "<b>Owl</b>" in review.text
    assert "Fox" not in review.text
    # A button that the list does not have is none.
    assert (await begun(visitor, "requests", text, {"act": f"remove_member {user(2)}"})).status_code == 422


async def test_what_is_confirmed_after_the_minute_is_not_queued(
    world: World, site: Site, visit: Visit, test_clock: TestClock
) -> None:
    visitor = visit("owner")
    people = {"people": [user(1), user(2)], "act": "approve_request"}
    _, text = await shown(world, visitor, "requests", [person(1, "Fox"), person(2, "Owl")])
    review = await begun(visitor, "requests", text, people)
    done = carried(review.text)
    assert (await visitor.post("/c/night-shift/new/approve_request", done)).status_code == 303
    other = carried((await begun(visitor, "requests", text, people)).text)
    await test_clock.advance(timedelta(seconds=60))
    refused = await visitor.post("/c/night-shift/new/approve_request", other)
    assert refused.status_code == 409
    assert GONE in refused.text
    assert 'value="confirm"' not in refused.text
    assert f"{MEMBERS}/requests?tick={user(1)}&amp;tick={user(2)}" in refused.text
    # The list knows it, too; who was ticked is ticked again on the next read.
    late = await begun(visitor, "requests", text, people)
    assert late.status_code == 303
    assert f"tick={user(1)}" in late.headers["location"]
    # What was queued in time is answered as it was, however late its answer is asked for again.
    assert (await visitor.post("/c/night-shift/new/approve_request", done)).status_code == 303
    assert len(await stored(world)) == 2
    path = await opened(visitor, f"{MEMBERS}/requests?tick={user(2)}")
    await answer(world, [person(1, "Fox"), person(2, "Owl")])
    text = (await visitor.get(path)).text
    assert re.findall(r'value="(usr_[^"]+)" aria-label="\w+" checked', text) == [user(2)]


async def test_twin_without_a_look_at_the_read_what_is_confirmed_late_is_queued(
    world: World, site: Site, visit: Visit, test_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_over(*_: Any) -> None:
        return None

    monkeypatch.setattr(compose, "_over", not_over)
    visitor = visit("owner")
    _, text = await shown(world, visitor, "requests", [person(1, "Fox")])
    review = await begun(visitor, "requests", text, {"act": f"approve_request {user(1)}"})
    await test_clock.advance(timedelta(seconds=60))
    late = await visitor.post("/c/night-shift/new/approve_request", carried(review.text))
    assert late.status_code == 303
    assert len(await stored(world)) == 1


async def test_without_anybody_or_without_a_role_the_list_says_what_is_missing(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    _, text = await shown(world, visitor, "directory", [member(1, "Fox")])
    for fields, sentence in (
        ({"act": "assign_role", "role": ROLE}, "Nobody is ticked."),
        ({"act": "assign_role", "role": "", "people": user(1)}, "No role is chosen."),
    ):
        back = await begun(visitor, "directory", text, fields)
        assert back.status_code == 303
        again = (await visitor.get(back.headers["location"])).text
        assert sentence in again
        assert (" checked>" in again) is ("people" in fields)


async def test_each_list_is_for_its_own_permission(world: World, site: Site, visit: Visit) -> None:
    visitor = visit("staff")
    assert (await visitor.get(MEMBERS)).status_code == 403
    assert "Members</span>" not in (await visitor.get("/c/night-shift/scheduled")).text
    path, _ = await shown(world, visit("owner"), "bans", [person(1, "Fox", "bannedAt")])
    for permission, tab in (
        (Permission.VIEW_MEMBERS, "directory"),
        (Permission.APPROVE_JOIN_REQUESTS, "requests"),
        (Permission.INVITE_GROUP_MEMBERS, "invitations"),
        (Permission.MANAGE_BANS, "bans"),
    ):
        await allow(world, permission)
        assert (await visitor.get(MEMBERS)).headers["location"] == f"{MEMBERS}/{tab}"
        for other in ("directory", "requests", "invitations", "bans"):
            expected = 303 if other == tab else 403
            assert (await visitor.get(f"{MEMBERS}/{other}")).status_code == expected, (permission, other)
        assert "Members</span>" in (await visitor.get("/c/night-shift/scheduled")).text
    assert "Fox" in (await visitor.get(path)).text
    # The read of one list is not shown in another, and nobody else's club shows it.
    await allow(world, Permission.VIEW_MEMBERS)
    elsewhere = path.replace("bans?", "directory?")
    assert "Fox" not in (await visitor.get(elsewhere)).text
    assert "Fox" not in (await visit("owner").get(elsewhere)).text
    stranger = path.replace("night-shift", "elsewhere")
    assert "Fox" not in (await visit("stranger").get(stranger)).text


async def test_staff_who_may_act_and_not_look_name_people_by_id(
    world: World, site: Site, visit: Visit
) -> None:
    await allow(world, Permission.REMOVE_GROUP_MEMBERS)
    visitor = visit("staff")
    assert (await visitor.get(MEMBERS)).headers["location"] == f"{MEMBERS}/actions"
    text = (await visitor.get(f"{MEMBERS}/actions")).text
    assert 'value="remove_member"' in text
    assert 'value="ban_member"' not in text
    path = f"{MEMBERS}/actions/review"
    review = await visitor.post(path, {"act": "remove_member", "people": f"Fox {user(1)}"})
    assert "<b>Fox</b>" in review.text
    assert GONE not in review.text
    two = await visitor.post(path, {"act": "remove_member", "people": f"{user(1)}\n{user(2)}"})
    assert two.status_code == 422
    assert "for one person" in two.text
    assert (await visitor.post(path, {"act": "ban_member", "people": user(1)})).status_code == 403


async def test_what_stands_in_the_way_is_said_in_words(
    world: World, site: Site, visit: Visit, test_clock: TestClock
) -> None:
    visitor = visit("owner")
    path = await opened(visitor, f"{MEMBERS}/requests")
    await fail(world, "provider_permissions")
    assert "VRChat permission missing" in (await visitor.get(path)).text
    path = await opened(visitor, f"{MEMBERS}/requests")
    await test_clock.advance(timedelta(seconds=61))
    assert "Nobody answered within a minute." in (await visitor.get(path)).text
    _, text = await shown(world, visitor, "requests", [])
    assert "Nobody asks to join." in text
    short = await visitor.get(f"{MEMBERS}/directory?search=fo")
    assert short.status_code == 422
    assert "A search takes 3 to 100 characters" in short.text
    owner = world.actors["owner"]
    await set_features(world.db, owner, world.club_id, world.connection_id, [Feature.POSTS])
    off = await visitor.get(f"{MEMBERS}/requests")
    assert off.status_code == 200
    assert "Refresh" in off.text
    assert "switched off" in off.text.lower()
    await world.db.pool.execute("update connections set state = 'disconnected'")
    assert "No VRChat group is connected." in (await visitor.get(f"{MEMBERS}/requests")).text


async def test_what_is_already_decided_about_somebody_stands_beside_them(
    world: World, site: Site, visit: Visit, test_clock: TestClock
) -> None:
    visitor = visit("owner")
    path, text = await shown(world, visitor, "requests", [person(1, "Fox"), person(2, "Owl")])
    assert "Let in</a>" not in text
    await world.queue("approve_request", [1])
    rows = (await visitor.get(path)).text.partition('<h2 id="recent"')[0]
    fox, owl = rows.split("<strong>Fox</strong>")[1].split("<strong>Owl</strong>")
    assert re.search(r"Let in</a>.*Pending", fox, re.DOTALL)
    assert "Pending" not in owl
    # What was over before the list was read is in the list.
    settle = "select settle_unsent(club_id, id, 'rejected', 'visibility', lastcall_now()) from operations"
    await world.db.pool.execute(settle)
    assert "Failed" in (await visitor.get(path)).text.partition('<h2 id="recent"')[0]
    await test_clock.advance(timedelta(seconds=60))
    _, text = await shown(world, visitor, "requests", [person(1, "Fox")])
    assert "Failed" not in text.partition('<h2 id="recent"')[0]


async def test_who_asks_too_often_is_told_when_to_go_on(
    world: World, site: Site, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "READS_ASKED", Limit("reads", 1, timedelta(minutes=1)))
    visitor = visit("owner")
    await opened(visitor, f"{MEMBERS}/requests")
    assert (await visitor.get(f"{MEMBERS}/requests")).status_code == 303
    refused = await visitor.get(f"{MEMBERS}/bans")
    assert refused.status_code == 429
    assert "Try again in a minute." in refused.text
    assert "data-refresh" in refused.text


async def test_recent_actions_stand_below_with_the_names_of_the_list(
    world: World, site: Site, visit: Visit
) -> None:
    await world.queue("ban_member", [1])
    await world.queue("approve_request", [1, 2, 3])
    visitor = visit("owner")
    path, text = await shown(world, visitor, "directory", [member(1, "Fox")])
    below = text[text.index("Recent actions") :]
    assert "<b>Fox</b>" in below
    assert "Let in 3 people" in below
    read = path.partition("read=")[2]
    assert "<b>Fox</b>" in (await visitor.get(f"{MEMBERS}/recent?read={read}")).text
    assert "<b>Fox</b>" not in (await visitor.get(f"{MEMBERS}/recent")).text
