"""A staff invitation in a real browser from end to end: made with keys only, accepted on a phone by somebody new."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect
from tests.web.conftest import Site, World
from tests.web.test_browser import browser
from tests.web.test_browser_sign_in import check, device, tab_to

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CLUB = "/c/night-shift"
GUEST = "guest@example.org"


async def press(page: Page, role: str, name: str) -> None:
    """Reach a button or link with the tabulator, and press it."""
    await tab_to(page, page.get_by_role(role, name=name).first)  # type: ignore[arg-type]
    await page.keyboard.press("Enter")


async def make_invitation(page: Page, *, waits: bool) -> str:
    """With keys only; answers the path that the page shows once."""
    await page.goto(f"{CLUB}/staff/invites")
    await check(page)
    await press(page, "link", "Invite somebody")
    await expect(page.get_by_role("heading", name="Invite somebody")).to_be_visible()
    await check(page)
    await press(page, "button", "Make the invitation")
    await expect(page.get_by_role("alert")).to_contain_text("Not invited yet")
    await check(page)
    await tab_to(page, page.get_by_label("Moderator"))
    await page.keyboard.press("Space")
    if waits:
        await tab_to(page, page.get_by_label("They are in at once"))
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_label("They wait")).to_be_checked()
    else:
        await tab_to(page, page.get_by_label("Their mail address"))
        await page.keyboard.type(GUEST)
    await press(page, "button", "Make the invitation")
    await expect(page.get_by_role("heading", name="The invitation is made")).to_be_visible()
    address = page.get_by_label("Address of the invitation")
    await expect(address).to_be_visible()
    await check(page)
    return (await address.input_value()).removeprefix(page.url.split("/c/")[0])


async def accept_as_somebody_new(page: Page, site: Site) -> None:
    mail = await site.mail.mail_to(GUEST)
    await page.goto(mail.path)
    await expect(page.get_by_role("heading", name="Join the staff of Night Shift?")).to_be_visible()
    await check(page)
    await tab_to(page, page.get_by_label("Your mail address"))
    await page.keyboard.type(GUEST)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()
    await page.goto((await site.mail.mail_to(GUEST, number=2)).path)
    await press(page, "button", "Sign in")
    await expect(page).to_have_url(re.compile("/invites/"))
    await check(page)
    await press(page, "button", "Join the staff")
    await expect(page.get_by_role("heading", name="You are on the staff of Night Shift")).to_be_visible()
    await check(page)
    await press(page, "link", "Open the club")
    await expect(page).to_have_url(re.compile(f"{CLUB}/scheduled$"))


@pytest.mark.parametrize("desk_is_dark", [False, True], ids=["light-desk", "dark-desk"])
async def test_an_invitation_goes_from_its_maker_to_a_new_member_of_staff(
    browser: Browser, site: Site, world: World, desk_is_dark: bool
) -> None:
    desk_context, desk = await device(browser, site, phone=False, dark=desk_is_dark)
    await desk_context.add_cookies([{"name": "lastcall", "value": world.sessions["owner"], "url": site.url}])
    phone_context, phone = await device(browser, site, phone=True, dark=not desk_is_dark)

    await make_invitation(desk, waits=False)
    await accept_as_somebody_new(phone, site)
    await desk.goto(f"{CLUB}/staff/invites")
    await expect(desk.get_by_text("accepted by guest")).to_be_visible()
    await check(desk)
    await desk_context.close()
    await phone_context.close()


async def test_whoever_asks_is_turned_down_and_an_open_invitation_taken_back(
    browser: Browser, site: Site, world: World
) -> None:
    desk_context, desk = await device(browser, site, phone=False, dark=True)
    await desk_context.add_cookies([{"name": "lastcall", "value": world.sessions["owner"], "url": site.url}])
    phone_context, phone = await device(browser, site, phone=True, dark=False)
    waiting = await make_invitation(desk, waits=True)
    await phone_context.add_cookies(
        [{"name": "lastcall", "value": world.sessions["stranger"], "url": site.url}]
    )
    await phone.goto(waiting)
    await press(phone, "button", "Ask to join")
    await expect(phone.get_by_role("heading", name="Your request waits")).to_be_visible()
    await check(phone)
    await desk.goto(f"{CLUB}/join-requests")
    await check(desk)
    await press(desk, "link", "Decide on Stranger")
    await expect(desk.get_by_role("heading", name="Stranger")).to_be_visible()
    await check(desk)
    await tab_to(desk, desk.get_by_label("Note"))
    await desk.keyboard.type("Not this season.")
    await press(desk, "button", "Turn down")
    await expect(desk.get_by_text("Nobody waits.")).to_be_visible()
    await phone.reload()
    await expect(phone.get_by_text("Not this season.")).to_be_visible()
    await check(phone)

    # An open one is taken back, after a question.
    taken_back = await make_invitation(desk, waits=True)
    await desk.goto(f"{CLUB}/staff/invites")
    await press(desk, "link", "Take back")
    dialog = desk.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Take it back")).to_be_focused()
    await check(desk)
    await desk.keyboard.press("Enter")
    await expect(desk.get_by_text("Taken back").first).to_be_visible()
    await phone.goto(taken_back)
    await expect(phone.get_by_role("heading", name="This invitation cannot be used")).to_be_visible()
    await check(phone)

    # One's own data, on the phone.
    for path in ("/me/privacy", "/me/privacy/erase"):
        await phone.goto(path)
        await check(phone)
    await phone.goto("/me/privacy")
    async with phone.expect_download() as downloaded:
        await press(phone, "button", "Download")
    assert (await downloaded.value).suggested_filename == "lastcall-my-data.jsonl"
    await desk_context.close()
    await phone_context.close()
