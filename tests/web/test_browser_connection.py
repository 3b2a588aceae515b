"""Connecting a group in a real browser: on a phone, with nothing but keys, live."""

from __future__ import annotations

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect
from tests.web.conftest import Site, World
from tests.web.test_browser import CLUB, browser, context_for
from tests.web.test_connection_pages import leave

from lastcall.connections.signals import CONNECTION_TOPIC
from lastcall.db.bus import Hint

__all__ = ["browser"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


async def fits(page: Page) -> None:
    """The page is as wide as the phone, and axe finds nothing."""
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    report = await Axe().run(page)
    assert [(one["id"], one["nodes"][0]["target"]) for one in report.response["violations"]] == []


async def reach(page: Page, words: str) -> None:
    """Press Tab until the control of that name has the focus."""
    told = "(() => { const at = document.activeElement; return at.labels?.[0]?.innerText ?? at.innerText })()"
    for _ in range(60):
        await page.keyboard.press("Tab")
        if words in (await page.evaluate(told) or ""):
            return
    raise AssertionError(f"No control says “{words}”.")


async def test_a_group_is_connected_on_a_phone_with_keys_alone_and_followed_live(
    browser: Browser, site: Site, world: World
) -> None:
    await leave(world)
    context = await context_for(browser, site, world, phone=True, dark=True)
    page = await context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    await page.goto(f"{CLUB}/connection")
    await fits(page)
    await reach(page, "I have read this")
    await page.keyboard.press("Space")
    await reach(page, "Group")
    await page.keyboard.type("https://vrchat.com/home/group/grp_7")
    await reach(page, "Connect the group")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("The account is on its way into the group.")).to_be_visible()
    await expect(page.locator("#stream")).to_have_text("Live")
    # What the collector finds shows by itself.
    await world.db.pool.execute("update connections set state = 'awaiting_invite' where state = 'connecting'")
    world.db.bus.deliver([Hint(world.club_id, CONNECTION_TOPIC)])
    await expect(page.get_by_text("Waiting for an invitation")).to_be_visible()
    await fits(page)
    await reach(page, "Disconnect")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("Nothing waits to be sent.")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Disconnect")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="End without leaving")).to_be_visible()
    await fits(page)
    await context.close()
    assert errors == []
