"""Reading what would show what became of an action, over HTTP and in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.async_api import Browser, expect
from tests.web.conftest import Site, Visitor, World, user
from tests.web.reads import answer, fail, person
from tests.web.test_action_pages import UNKNOWN
from tests.web.test_browser import browser, context_for
from tests.web.test_browser_actions import opened
from tests.web.test_members_pages import allow

from lastcall.clubs.permissions import Permission
from lastcall.db.ids import encode_id

__all__ = ["browser"]
Visit = Callable[..., Visitor]
TYPED = {"seen": "0", "verdict": "not_seen", "note": "Nobody <is> there."}
_BANS = """
    insert into evidence (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
    select club_id, id, 'bans', '0+100', epoch, $1, lastcall_now() - $2::interval, account_id, gen_random_uuid()
      from connections
        on conflict (club_id, connection_id, kind, subject) do update set observed_at = excluded.observed_at
"""


async def unknown_ban(world: World) -> str:
    """The page of a ban whose outcome nobody knows."""
    row = (await world.queue("ban_member", [1])).operation_ids[0]
    await world.db.pool.execute(UNKNOWN)
    return f"/c/night-shift/scheduled/{encode_id(row)}"


async def kept(world: World, *, age: timedelta = timedelta(0)) -> None:
    """What the collector leaves behind of a read of the bans."""
    await world.db.pool.execute(_BANS, json.dumps({"bannedUserIds": [user(1)]}), age)


async def reads(world: World) -> list[tuple[str, object]]:
    rows = await world.db.pool.fetch("select kind, params::text from provider_reads order by requested_at")
    return [(row["kind"], json.loads(row["params"])) for row in rows]


async def test_what_would_show_it_is_read_and_what_was_typed_stays(
    world: World, site: Site, visit: Visit
) -> None:
    path = await unknown_ban(world)
    visitor = visit("owner")
    text = (await visitor.get(path)).text
    for evidence in ("bans", "member"):
        assert f'name="tells" value="{evidence}"' in text
    asking = await visitor.post(f"{path}/read", TYPED | {"tells": "bans"})
    assert "Asking VRChat" in asking.text
    assert "Nobody &lt;is&gt; there." in asking.text
    assert 'value="not_seen" required checked' in asking.text
    assert await reads(world) == [("bans", {"n": 100, "offset": 0})]
    read = encode_id(await world.db.pool.fetchval("select id from provider_reads"))
    await answer(world, [person(1, "Fox", "bannedAt")])
    await kept(world)
    came = await visitor.post(f"{path}/read", TYPED | {"read": read})
    assert "what it says stands above" in came.text
    assert "the person is named" in came.text
    assert len(await reads(world)) == 1
    settled = await visitor.post(
        f"{path}/settle", TYPED | {"verdict": "happened", "note": "", "evidence": "bans/0+100"}
    )
    assert settled.status_code == 303
    assert "by 1 piece of evidence" in (await visitor.get(path)).text


async def test_what_was_read_too_early_is_shown_and_cannot_be_relied_on(
    world: World, site: Site, visit: Visit
) -> None:
    path = await unknown_ban(world)
    await kept(world, age=timedelta(minutes=4))
    text = (await visit("owner").get(path)).text
    assert "read too early to tell" in text
    assert 'value="bans/0+100" disabled' in text


async def test_a_read_that_failed_says_why_and_a_known_outcome_reads_nothing(
    world: World, site: Site, visit: Visit
) -> None:
    path = await unknown_ban(world)
    visitor = visit("owner")
    await visitor.post(f"{path}/read", TYPED | {"tells": "member"})
    assert await reads(world) == [("member", {"targetUserId": user(1)})]
    read = encode_id(await world.db.pool.fetchval("select id from provider_reads"))
    await fail(world, "visibility")
    assert "Not visible." in (await visitor.post(f"{path}/read", TYPED | {"read": read})).text
    await world.db.pool.execute("update connections set kill_switch = true")
    stopped = await visitor.post(f"{path}/read", TYPED | {"tells": "bans"})
    assert "Nothing can be read from VRChat" in stopped.text
    await world.db.pool.execute("update connections set kill_switch = false")
    other = (await world.queue("ban_member", [2])).operation_ids[0]
    waiting = await visitor.post(
        f"/c/night-shift/scheduled/{encode_id(other)}/read", TYPED | {"tells": "bans"}
    )
    assert waiting.status_code == 200
    assert len(await reads(world)) == 1


async def test_only_what_a_reader_may_see_is_offered_to_be_read(
    world: World, site: Site, visit: Visit
) -> None:
    path = await unknown_ban(world)
    visitor = visit("staff")
    await allow(world, Permission.MANAGE_BANS)
    text = (await visitor.get(path)).text
    assert 'name="tells" value="bans"' in text
    assert 'name="tells" value="member"' not in text
    assert (await visitor.post(f"{path}/read", TYPED | {"tells": "member"})).status_code == 200
    assert await reads(world) == []
    await allow(world, Permission.VIEW_MEMBERS)
    assert (await visitor.post(f"{path}/read", TYPED | {"tells": "member"})).status_code == 404


@pytest.mark.browser
@pytest.mark.timeout(180)
async def test_what_came_appears_beside_what_is_being_typed(
    browser: Browser, site: Site, world: World
) -> None:
    path = await unknown_ban(world)
    context = await context_for(browser, site, world)
    page, errors = await opened(context)
    await page.goto(path)
    note = page.get_by_label("What you saw, and where")
    await note.fill("I look at")
    await page.get_by_role("button", name="Read it now the group's bans").click()
    await expect(page.get_by_text("Asking VRChat: bans.")).to_be_visible()
    await note.press_sequentially(" it")
    await kept(world)
    await answer(world, [person(1, "Fox", "bannedAt")])
    await expect(page.get_by_text("the person is named")).to_be_visible()
    await expect(note).to_have_value("I look at it")
    await page.get_by_label("the person is named").check()
    await page.get_by_label("Happened").check()
    await page.get_by_role("button", name="Record the finding").click()
    await expect(page.get_by_text("Happened, found Owner")).to_be_visible()
    await context.close()
    assert errors == []
