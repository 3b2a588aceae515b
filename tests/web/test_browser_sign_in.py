"""Signing in and the account in a real browser: a second device, keys only, phones, both themes, and axe."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Locator, Page, expect
from tests.web.conftest import Site, World
from tests.web.test_browser import PHONE, WIDE, browser

from lastcall.people.preferences import Topic, declare_topic

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

OWNER = "owner@example.org"


async def device(browser: Browser, site: Site, *, phone: bool, dark: bool) -> tuple[BrowserContext, Page]:
    """A browser that nobody is signed in to."""
    context = await browser.new_context(
        base_url=site.url,
        viewport=PHONE if phone else WIDE,
        color_scheme="dark" if dark else "light",
        timezone_id="Europe/Berlin",
        has_touch=phone,
    )
    context.set_default_timeout(15_000)
    page = await context.new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    return context, page


async def check(page: Page) -> None:
    """The page fits its screen, and axe finds nothing."""
    width = await page.evaluate("document.documentElement.scrollWidth")
    viewport = page.viewport_size
    assert viewport is not None
    assert width <= viewport["width"], f"{page.url} is {width} pixels wide"
    report = await Axe().run(page)
    assert [
        (page.url, violation["id"], [node["target"] for node in violation["nodes"][:3]])
        for violation in report.response["violations"]
    ] == []


async def tab_to(page: Page, target: Locator, *, most: int = 60) -> None:
    """Reach ``target`` with the tabulator alone."""
    for _ in range(most):
        if await target.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    pytest.fail(f"{target} is not reached with the keyboard")


async def ask_for_mail(page: Page, email: str) -> None:
    await page.goto("/c/night-shift/scheduled")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await check(page)
    field = page.get_by_label("Mail address")
    await tab_to(page, field)
    await page.keyboard.type(email)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()
    await check(page)


@pytest.mark.parametrize("desk_is_dark", [False, True], ids=["light-desk", "dark-desk"])
async def test_a_link_read_on_the_phone_signs_in_the_desk_with_keys_only(
    browser: Browser, site: Site, world: World, desk_is_dark: bool
) -> None:
    desk_context, desk = await device(browser, site, phone=False, dark=desk_is_dark)
    phone_context, phone = await device(browser, site, phone=True, dark=not desk_is_dark)
    await ask_for_mail(desk, OWNER)
    await phone.goto((await site.mail.mail_to(OWNER)).path)
    await expect(phone.get_by_role("heading", name="Type this code where you asked")).to_be_visible()
    await check(phone)
    code = await phone.locator("#code").inner_text()
    await expect(desk.get_by_label("Code")).to_be_focused()
    await desk.keyboard.type("00000000")
    await desk.keyboard.press("Enter")
    await expect(desk.get_by_label("Code")).to_have_attribute("aria-invalid", "true")
    await check(desk)
    await expect(desk.get_by_label("Code")).to_be_focused()
    await desk.keyboard.type(code.lower())
    await desk.keyboard.press("Enter")
    await expect(desk).to_have_url(re.compile("/c/night-shift/scheduled$"))
    await phone.goto("/me")
    await expect(phone.get_by_role("heading", name="Sign in")).to_be_visible()
    await desk_context.close()
    await phone_context.close()


async def make_old(world: World) -> None:
    await world.db.pool.execute(
        "update sessions set authenticated_at = authenticated_at - interval '11 minutes'"
    )


async def test_a_token_is_made_and_revoked_after_confirming_with_keys_only(
    browser: Browser, site: Site, world: World
) -> None:
    declare_topic(Topic("browser_test", "a browser test is run"))
    context, page = await device(browser, site, phone=True, dark=False)
    await context.add_cookies([{"name": "lastcall", "value": world.sessions["owner"], "url": site.url}])
    await make_old(world)
    await page.goto("/me")
    await check(page)
    await tab_to(page, page.get_by_role("link", name="New token"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    await check(page)
    await tab_to(page, page.get_by_role("button", name="Mail me a code"))
    await page.keyboard.press("Enter")
    code = (await site.mail.mail_to(OWNER)).code
    await expect(page.get_by_label("Code")).to_be_focused()
    await page.keyboard.type(code)
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Name")).to_be_focused()
    await check(page)
    await page.keyboard.type("Door list")
    await page.keyboard.press("Enter")
    token = page.get_by_label("Door list")
    await expect(token).to_have_value(re.compile("^lc_"))
    await check(page)
    await tab_to(page, page.get_by_role("link", name="Done"))
    await page.keyboard.press("Enter")
    revoke = page.get_by_role("link", name="Revoke Door list")
    await tab_to(page, revoke)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Revoke")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("You have none.")).to_be_visible()
    await context.close()


async def test_an_operator_blocks_a_person_with_keys_only(browser: Browser, site: Site, world: World) -> None:
    context, page = await device(browser, site, phone=True, dark=True)
    await context.add_cookies([{"name": "lastcall", "value": world.sessions["operator"], "url": site.url}])
    await page.goto("/operator")
    await tab_to(page, page.get_by_role("link", name="People", exact=True))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="People", exact=True)).to_be_visible()
    await check(page)
    await tab_to(page, page.get_by_role("link", name="Stranger"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Stranger")).to_be_visible()
    await check(page)
    await tab_to(page, page.get_by_role("link", name="Block"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Block Stranger?")).to_be_visible()
    await check(page)
    await expect(page.get_by_role("button", name="Block")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="Unblock")).to_be_visible()
    await page.goto("/operator/audit")
    await expect(page.get_by_text("Was blocked")).to_be_visible()
    await check(page)
    await context.close()
