"""The inbox in a real browser: live, by keys alone, and with a thumb on a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect
from tests.web.conftest import Site, World
from tests.web.test_browser import CLUB, browser, context_for
from tests.web.test_browser_actions import fits, opened
from tests.web.test_inbox_pages import waiting

from lastcall.decisions.retention.controls import keep
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST

__all__ = ["browser"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


async def test_what_arrives_is_seen_live_ticks_stay_and_one_that_moved_loses_its_tick(
    browser: Browser, site: Site, world: World
) -> None:
    context = await context_for(browser, site, world)
    page, errors = await opened(context)
    first = await waiting(world, "First")
    await waiting(world, "Second")
    await page.goto(f"{CLUB}/inbox")
    await expect(page.locator("#stream")).to_have_text("Live")
    await page.get_by_role("checkbox", name="Tick First").check()
    await page.get_by_role("checkbox", name="Tick Second").check()
    await expect(page.locator("[data-ticked]")).to_have_text("2 ticked")
    await waiting(world, "Third")
    await expect(page.get_by_role("checkbox", name="Tick Third")).to_be_visible()
    await expect(page.locator("#inbox-badge")).to_contain_text("3")
    await expect(page.get_by_role("checkbox", name="Tick First")).to_be_checked()
    # Somebody else keeps it: what was ticked is not what stands there now.
    await keep(world.db, world.actors["owner"], world.club_id, JOIN_REQUEST, first, seen_version=0)
    await expect(page.get_by_text("Kept", exact=True)).to_be_visible()
    await expect(page.locator("[data-ticked]")).to_have_text("1 ticked")
    await expect(page.get_by_role("checkbox", name="Tick First")).not_to_be_checked()
    await page.get_by_role("button", name="Archive all that are ticked").click()
    await expect(page.get_by_text("1 archived.")).to_be_visible()
    await expect(page.locator("#inbox-badge")).to_contain_text("2")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    await context.close()
    assert errors == []


async def test_keys_alone_tick_archive_and_open(browser: Browser, site: Site, world: World) -> None:
    context = await context_for(browser, site, world)
    page, errors = await opened(context)
    await waiting(world, "Older")
    await waiting(world, "Newer")
    await page.goto(f"{CLUB}/scheduled")
    await page.keyboard.press("i")
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(page.get_by_role("checkbox", name="Tick Newer")).to_be_checked()
    await page.locator(".row").first.focus()
    await page.keyboard.press("a")
    await expect(page.get_by_text("1 archived.")).to_be_visible()
    await page.keyboard.press("j")
    await page.keyboard.press("o")
    await expect(page.get_by_role("heading", name="Older")).to_be_visible()
    await context.close()
    assert errors == []


async def test_a_phone_shows_it_whole_and_decides(browser: Browser, site: Site, world: World) -> None:
    context = await context_for(browser, site, world, phone=True, dark=True)
    page, errors = await opened(context)
    await waiting(world, "A porter with a rather long name that has to break somewhere on a narrow screen")
    await page.goto("/inbox")
    await fits(page)
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    await page.get_by_role("button", name="Turn down A porter").tap()
    await expect(page.get_by_text("1 turned down.")).to_be_visible()
    await expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    await fits(page)
    await context.close()
    assert errors == []
