"""Planning an evening in a real browser: with a thumb on a phone, and with nothing but keys."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, expect
from tests.web.conftest import Site, World, user
from tests.web.test_action_pages import UNKNOWN
from tests.web.test_browser import CLUB, browser, context_for

from lastcall.db.ids import decode_id
from lastcall.operations.schedules import Fixed
from lastcall.operations.services.edit import edit

__all__ = ["browser"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
WORLD = "wrld_00000000-0000-4000-8000-000000000001"


async def opened(context: BrowserContext) -> tuple[Page, list[str]]:
    """A page, and what its scripts stumbled over."""
    page = await context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors


async def fits(page: Page) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.clause("EDT-03", "EVT-08")
async def test_an_evening_is_planned_on_a_phone(browser: Browser, site: Site, world: World) -> None:
    context = await context_for(browser, site, world, phone=True)
    page, errors = await opened(context)
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(days=3)
    await page.goto(f"{CLUB}/events/new")
    await page.get_by_label("Title").fill("Opening")
    await page.get_by_label("Start", exact=True).fill(f"{start:%Y-%m-%dT%H:%M}")
    await page.get_by_label("Time zone").fill("UTC")
    await page.get_by_role("button", name="Add the event").tap()
    await page.get_by_label("World id").fill(WORLD)
    await page.get_by_role("button", name="Link the world").tap()
    await expect(page.get_by_text("Confirmed")).to_be_visible()
    await fits(page)
    # The event's world fills the form, leaves it with the event, and never replaces what was typed.
    await page.get_by_role("link", name="New action").last.tap()
    await page.get_by_role("link", name="New instance", exact=True).tap()
    world_field, events = page.get_by_label("World", exact=True), page.get_by_label("Event", exact=True)
    await expect(world_field).to_have_value(WORLD)
    await events.select_option("")
    await expect(world_field).to_have_value("")
    await events.select_option(index=1)
    await expect(world_field).to_have_value(WORLD)
    await page.get_by_text("By an event").tap()
    await fits(page)
    await page.get_by_role("button", name="Review").tap()
    await expect(page.get_by_text("30 minutes before its start")).to_be_visible()
    await fits(page)
    await page.get_by_role("button", name="Queue 1 new instance").tap()
    await page.get_by_role("link", name=re.compile("Look")).first.tap()
    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    await fits(page)
    # Somebody else edits it while it is open here: the form stays, and beside it stands what it says now.
    await page.get_by_role("link", name="Edit").tap()
    await page.get_by_label("World", exact=True).fill("my own")
    await expect(page.locator("#stream")).to_have_text("Live")
    operation_id = decode_id(page.url.split("/")[-2])
    payload = {"kind": "create_instance", "worldId": WORLD, "access": "plus", "region": "jp"}
    await edit(world.db, world.actors["owner"], world.club_id, operation_id, 1, payload, Fixed(start))
    await expect(page.get_by_text("Refresh to continue.")).to_be_visible()
    await expect(page.get_by_text("Japan").first).to_be_visible()
    await expect(page.get_by_label("World", exact=True)).to_have_value("my own")
    await page.get_by_role("link", name="Edit it as it is now").tap()
    await expect(page.get_by_text("From revision 2.")).to_be_visible()
    await context.close()
    assert errors == []


@pytest.mark.clause("ENQ-10")
async def test_a_batch_is_planned_checked_against_the_clock_and_cancelled_with_keys_only(
    browser: Browser, site: Site, world: World
) -> None:
    context = await context_for(browser, site, world)
    page, errors = await opened(context)
    asked: list[str] = []

    async def kept(route: Route) -> None:
        asked.append(route.request.url)
        # An answer that was kept on the way: another question's nonce, and a time long gone.
        await route.fulfill(json={"nonce": "x" * 32, "now": "2020-01-01T00:00:00+00:00"})

    await page.goto(f"{CLUB}/new/invite_member")
    await page.get_by_label("People, one a line").focus()
    await page.keyboard.type(f"{user(1)}\n{user(2)}\n{user(3)}")
    await page.get_by_label("Now").focus()
    await page.keyboard.press("ArrowDown")
    later = datetime.now(UTC) + timedelta(days=2)
    await page.get_by_label(re.compile("Time ")).focus()
    await page.keyboard.type(f"{later:%m%d%Y}")
    await page.keyboard.press("Tab")
    await page.keyboard.type("0930PM")
    await page.get_by_role("button", name="Review").focus()
    await page.keyboard.press("Enter")
    confirm = page.get_by_role("button", name="Queue 3 invitations")
    await page.route("**/clock?nonce=*", kept)
    for _ in range(2):
        await confirm.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("could not be read, so nothing was queued")).to_be_visible()
        await expect(page.locator("form[data-asking]")).to_have_count(0)
    assert len(set(asked)) == len(asked) == 2
    assert await world.db.pool.fetchval("select count(*) from operations") == 0
    await page.unroute("**/clock?nonce=*")
    await confirm.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("3 to go")).to_be_visible()
    await page.get_by_role("link", name="Cancel what is left").focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading", name="Cancel the 3 that are left?")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Cancel 3")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("3 cancelled")).to_be_visible()
    # What nobody knows the outcome of, found out and written down.
    await world.queue("ban_member", [9])
    await world.db.pool.execute(UNKNOWN + " where state = 'pending'")
    await page.goto(f"{CLUB}/scheduled/history")
    await page.keyboard.press("j")
    await page.keyboard.press("o")
    await page.get_by_label("Not seen").focus()
    await page.keyboard.press("Space")
    await page.get_by_label("What you saw, and where").focus()
    await page.keyboard.type("The list of bans.")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Not seen, found Owner")).to_be_visible()
    await context.close()
    assert errors == []
