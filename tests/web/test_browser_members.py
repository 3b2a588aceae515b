"""Members in a real browser: what was read leaves when its minute is over, and many are decided on at once."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Route, expect
from tests.web.conftest import ROLE, Site, World, user
from tests.web.reads import answer, group_seen, member, person
from tests.web.test_browser import CLUB, browser, context_for
from tests.web.test_browser_actions import fits, opened
from tests.web.test_compose_pages import INSTANCE, WORLD, stored
from tests.web.test_review_checks import friends

__all__ = ["browser"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
GONE = "Refresh to continue."
MINUTE = 60_000


async def test_rows_and_the_next_page_leave_when_their_minute_is_over(
    browser: Browser, site: Site, world: World
) -> None:
    context = await context_for(browser, site, world)
    page, errors = await opened(context)
    await page.clock.install()
    await page.goto(f"{CLUB}/members/requests")
    await expect(page.get_by_role("heading", name="Asking VRChat")).to_be_visible()
    await answer(world, [person(1, "Fox"), person(2, "Owl")], next_offset=25)
    # Nobody pressed anything: the page was told.
    owl = page.locator(".person", has_text="Owl")
    await expect(owl).to_be_visible()
    await expect(page.get_by_role("link", name="Next page")).to_be_visible()
    await expect(page.get_by_text(GONE)).to_be_hidden()
    await page.get_by_role("checkbox", name="Owl").check()
    # What others do shows below, by name, and leaves the list alone.
    await world.queue("ban_member", [2])
    await expect(page.get_by_role("region", name="Recent actions")).to_contain_text("Owl")
    await expect(page.get_by_role("checkbox", name="Owl")).to_be_checked()
    await page.clock.fast_forward(MINUTE)
    await expect(page.get_by_text(GONE)).to_be_visible()
    for gone in (owl, page.get_by_role("link", name="Next page")):
        await expect(gone).to_have_count(0)
    refresh = page.get_by_role("link", name=re.compile("Refresh"))
    await expect(refresh).to_be_focused()
    # Who was ticked is ticked again, should the next read still have them.
    assert f"tick={user(2)}" in (await refresh.get_attribute("href") or "")
    await context.close()
    assert errors == []


async def test_an_open_confirmation_leaves_and_no_new_read_brings_it_back(
    browser: Browser, site: Site, world: World
) -> None:
    context = await context_for(browser, site, world)
    page, errors = await opened(context)
    await page.clock.install()
    await page.goto(f"{CLUB}/members/requests")
    await answer(world, [person(1, "Fox"), person(2, "Owl")])
    await page.get_by_role("button", name="Let in Owl").click()
    confirm = page.get_by_role("button", name="Queue 1 approval")
    await expect(confirm).to_be_visible()
    await page.clock.fast_forward(MINUTE)
    await expect(page.get_by_text(GONE)).to_be_visible()
    await expect(confirm).to_have_count(0)
    await page.get_by_role("link", name="Refresh the list").click()
    await expect(page.get_by_role("heading", name="Members")).to_be_visible()
    await expect(confirm).to_have_count(0)
    await context.close()
    assert await stored(world) == []
    assert errors == []


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guard", "twin"])
async def test_an_answer_that_was_kept_on_the_way_is_not_fresh(
    browser: Browser, site: Site, world: World, is_guarded: bool
) -> None:
    context = await context_for(browser, site, world)
    page, _ = await opened(context)

    async def kept(route: Route) -> None:
        """Another question's answer: it says a minute, and nobody knows since when."""
        found = await route.fetch()
        body = re.sub(r'data-nonce="\w+"', f'data-nonce="{"0" * 32}"', await found.text())
        await route.fulfill(response=found, body=body)

    async def trusting(route: Route) -> None:
        """The script without its look at the nonce."""
        found = await route.fetch()
        script = await found.text()
        body = script.replace(
            "start === undefined ? 0 : start", "start === undefined ? Number(freshMs) : start"
        )
        assert body != script
        await route.fulfill(response=found, body=body)

    if not is_guarded:
        await page.route("**/fresh.*.js", trusting)
    await page.goto(f"{CLUB}/members/requests")
    await expect(page.get_by_role("heading", name="Asking VRChat")).to_be_visible()
    await page.route("**/members/requests?read=*", kept)
    await answer(world, [person(1, "Fox")])
    await expect(page.get_by_text(GONE)).to_be_visible(visible=is_guarded)
    await expect(page.locator(".person")).to_have_count(0 if is_guarded else 1)
    await context.close()


async def test_many_are_given_a_role_on_a_phone(browser: Browser, site: Site, world: World) -> None:
    await group_seen(world, owner=user(3))
    context = await context_for(browser, site, world, phone=True)
    page, errors = await opened(context)
    await page.goto(f"{CLUB}/members")
    await answer(world, [member(1, "Fox", ROLE), member(2, "Owl"), member(3, "Hen")])
    await expect(page.get_by_text("Hen", exact=True)).to_be_visible()
    await fits(page)
    report = await Axe().run(page)
    assert report.response["violations"] == []
    await page.get_by_label("All here").check()
    await page.get_by_label("Role").select_option("Regular")
    await page.get_by_role("button", name="Give the role").tap()
    await expect(page.get_by_text("2 people")).to_be_visible()
    for name in ("Fox", "Owl"):
        await expect(page.get_by_text(name, exact=True)).to_be_visible()
    await expect(page.get_by_text("Hen", exact=True)).to_have_count(0)
    await fits(page)
    await page.get_by_role("button", name="Queue 2 role assignments").tap()
    await expect(page.get_by_text("2 to go")).to_be_visible()
    await context.close()
    assert errors == []
    assert {row["targetUserId"] for row in await stored(world)} == {user(1), user(2)}


async def test_a_check_of_a_review_is_shown_as_soon_as_it_came_and_leaves_again(
    browser: Browser, site: Site, world: World
) -> None:
    context = await context_for(browser, site, world)
    page, errors = await opened(context)
    await page.clock.install()
    await page.goto(f"{CLUB}/new/invite_to_instance")
    await page.get_by_label("World", exact=True).fill(WORLD)
    await page.get_by_label("Instance", exact=True).fill(INSTANCE)
    await page.get_by_label("People, one a line").fill(f"Fox {user(1)}\nOwl {user(2)}")
    await page.get_by_role("button", name="Review").click()
    await page.get_by_role("button", name="Check now").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Asking VRChat.")).to_be_visible()
    await answer(world, friends(True, False))
    await expect(page.get_by_text("Can be invited", exact=True)).to_be_visible()
    await expect(page.get_by_text("No friend of the account")).to_be_visible()
    await page.clock.fast_forward(MINUTE)
    await expect(page.get_by_text("Can be invited", exact=True)).to_have_count(0)
    await expect(page.get_by_text("The check is more than a minute old.")).to_be_visible()
    await page.get_by_role("button", name="Queue 2 instance invitations").click()
    await expect(page.get_by_text("2 to go")).to_be_visible()
    await context.close()
    assert errors == []
