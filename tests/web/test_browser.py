"""The pages in a real browser: the whole way from a link to an outcome, keys only, phones, both themes,
and axe.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from tests.web.conftest import ROLE, Site, World, user

from lastcall.db.ids import encode_id, new_id
from lastcall.operations.schedules import Fixed
from lastcall.people.sign_in import make_sign_in_link

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PROGRAMS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
CLUB = "/c/night-shift"


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    program = next((path for path in PROGRAMS if Path(path).exists()), None)
    if program is None:
        pytest.fail("There is no Chromium: install the package 'chromium' (tools/browser does where it may).")
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        await started.close()


async def context_for(
    browser: Browser,
    site: Site,
    world: World,
    name: str = "owner",
    *,
    phone: bool = False,
    dark: bool = False,
) -> BrowserContext:
    context = await browser.new_context(
        base_url=site.url,
        viewport=PHONE if phone else WIDE,
        color_scheme="dark" if dark else "light",
        timezone_id="Europe/Berlin",
        has_touch=phone,
    )
    await context.add_cookies([{"name": "lastcall", "value": world.sessions[name], "url": site.url}])
    context.set_default_timeout(15_000)
    return context


@pytest.fixture
async def page(browser: Browser, site: Site, world: World) -> AsyncIterator[Page]:
    """A page of the owner's that fails the test on any script error or refused resource."""
    context = await context_for(browser, site, world)
    opened = await context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on(
        "console", lambda message: errors.append(message.text) if "Content Security" in message.text else None
    )
    yield opened
    await context.close()
    assert errors == []


async def test_sign_in_by_link_needs_one_press(browser: Browser, site: Site, world: World) -> None:
    context = await browser.new_context(base_url=site.url)
    page = await context.new_page()
    await page.goto(f"{CLUB}/scheduled")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.goto(f"/sign-in/{await make_sign_in_link(world.db, 'owner@example.org')}")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(re.compile(f"{CLUB}/scheduled$"))
    await page.get_by_role("button", name="Sign out").click()
    await page.goto(f"{CLUB}/scheduled")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await context.close()


async def test_a_batch_is_reviewed_queued_and_seen_live(page: Page, world: World) -> None:
    await page.goto(f"{CLUB}/new/assign_role")
    await page.get_by_label("Role").fill(ROLE)
    await page.get_by_label("People, one a line").fill("\n".join(f"Member {n} {user(n)}" for n in range(12)))
    await page.get_by_role("button", name="Review").click()
    await expect(page.get_by_text("Member 11", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Queue 12 role assignments").click()
    await expect(page.locator("#stream")).to_have_text("Live")
    await expect(page.get_by_text("12 to go")).to_be_visible()
    # What the collector would do, seen here without anybody asking.
    await world.db.pool.execute(
        "select settle_unsent(club_id, id, 'rejected', 'visibility', lastcall_now()) from operations where position < 3"
    )
    world.db.bus.deliver([hint(world)])
    await expect(page.get_by_text("3 failed · 9 to go")).to_be_visible()
    await expect(page.get_by_text("Not found in VRChat.").first).to_be_visible()


def hint(world: World) -> object:
    from lastcall.operations.signals import changed

    return changed(world.club_id)


async def test_cancel_asks_in_a_dialog_and_gives_the_focus_back(page: Page, world: World) -> None:
    await world.queue("ban_member", [1])
    await page.goto(f"{CLUB}/scheduled")
    cancel = page.get_by_role("link", name=re.compile("Cancel Ban"))
    await cancel.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading", name="Cancel this action?")).to_be_visible()
    await dialog.get_by_role("link", name="Keep it").click()
    await expect(dialog).to_be_hidden()
    await expect(cancel).to_be_focused()
    await cancel.click()
    await dialog.get_by_role("button", name="Cancel the action").click()
    await expect(page.get_by_role("heading", name="Nothing is waiting")).to_be_visible()
    await expect(page.get_by_text("Cancelled")).to_be_visible()
    assert await world.db.pool.fetchval("select state from operations") == "cancelled"


async def test_a_live_change_leaves_the_open_question_alone(page: Page, world: World) -> None:
    await world.queue("ban_member", [1])
    await page.goto(f"{CLUB}/scheduled")
    await expect(page.locator("#stream")).to_have_text("Live")
    await page.get_by_role("link", name=re.compile("Cancel Ban")).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await world.queue("ban_member", [2])
    await expect(page.locator(".row")).to_have_count(2)
    await expect(dialog.get_by_text("Cancel this action?")).to_be_visible()
    await expect(dialog.locator(".id")).to_have_attribute("title", user(1))


async def test_everything_works_with_keys_only(page: Page, world: World) -> None:
    await world.queue("ban_member", [1])
    await world.queue("ban_member", [2])
    await page.goto(f"{CLUB}/scheduled")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(page.locator(".row").nth(1)).to_be_focused()
    await page.keyboard.press("c")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Cancel the action")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.keyboard.press("?")
    await expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await expect(page).to_have_url(re.compile("/new$"))
    await page.get_by_role("link", name="Ban from group").focus()
    await page.keyboard.press("Enter")
    await page.get_by_label("Person").focus()
    await page.keyboard.type(user(3))
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Queue 1 ban").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 to go")).to_be_visible()


async def test_single_keys_can_be_turned_off(page: Page, world: World) -> None:
    await page.goto(f"{CLUB}/scheduled")
    await page.keyboard.press("?")
    await page.get_by_label("Use single keys").uncheck()
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await page.goto(f"{CLUB}/scheduled/history")
    await page.keyboard.press("n")
    await expect(page).to_have_url(re.compile("/scheduled/history$"))


async def test_a_broken_stream_says_so_and_recovers(page: Page, site: Site, world: World) -> None:
    await page.goto(f"{CLUB}/scheduled")
    badge = page.locator("#stream")
    await expect(badge).to_have_text("Live")
    await site.stop()
    await expect(badge).to_have_text("Connection lost. Trying again.")
    await world.queue("ban_member", [1])
    await site.restart()
    await expect(badge).to_have_text("Live", timeout=20_000)
    await expect(page.locator(".row")).to_have_count(1)


async def test_a_session_that_ended_is_noticed_by_the_open_page(page: Page, world: World) -> None:
    await page.goto(f"{CLUB}/scheduled")
    await expect(page.locator("#stream")).to_have_text("Live")
    await world.db.pool.execute("update sessions set revoked_at = lastcall_now()")
    world.db.bus.deliver([hint(world)])
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_time_is_written_in_the_viewers_zone(browser: Browser, site: Site, world: World) -> None:
    """The club is in Berlin; the reader's computer is in Tokyo, and says so from the second page on."""
    context = await browser.new_context(base_url=site.url, timezone_id="Asia/Tokyo")
    await context.add_cookies([{"name": "lastcall", "value": world.sessions["owner"], "url": site.url}])
    page = await context.new_page()
    await page.goto(f"{CLUB}/scheduled")
    await expect(page.get_by_text("Times in Europe/Berlin")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("Times in Asia/Tokyo")).to_be_visible()
    await context.close()


async def test_a_wrong_form_says_what_to_correct(page: Page, world: World) -> None:
    await page.goto(f"{CLUB}/new/assign_role")
    await page.get_by_label("People, one a line").fill(f"{user(1)}\nsomebody")
    await page.get_by_role("button", name="Review").click()
    await expect(page.get_by_role("alert")).to_contain_text("2 things to correct")
    await expect(page.get_by_label("Role")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_text("Line 2:")).to_be_visible()
    await expect(page.get_by_label("People, one a line")).to_have_value(f"{user(1)}\nsomebody")


PAGES = (
    "/",
    f"{CLUB}/scheduled",
    f"{CLUB}/scheduled/history",
    f"{CLUB}/new",
    f"{CLUB}/new/assign_role",
    f"{CLUB}/new/create_instance",
    f"{CLUB}/new/publish_post",
    f"{CLUB}/members/requests",
    f"{CLUB}/members/actions",
    f"{CLUB}/posts",
    f"{CLUB}/lists/new",
    f"{CLUB}/events",
    f"{CLUB}/events/new",
    f"{CLUB}/events/imports",
    f"{CLUB}/connection",
    f"{CLUB}/connection/disconnect",
    f"{CLUB}/start",
    f"{CLUB}/staff",
    f"{CLUB}/roles",
    f"{CLUB}/roles/new",
    f"{CLUB}/log",
    f"{CLUB}/visibility",
    f"{CLUB}/settings",
    f"{CLUB}/settings/transfer",
    f"{CLUB}/settings/delete",
    "/nothing",
)

IS_OPEN_TAB_IN_SIGHT = """
    [...document.querySelectorAll(".tabs [aria-current]")].every((tab) => {
        const box = tab.getBoundingClientRect();
        return box.left >= 0 && box.right <= innerWidth;
    })
"""


@pytest.mark.parametrize(("phone", "dark"), [(False, False), (True, True)], ids=["wide-light", "phone-dark"])
async def test_pages_fit_the_screen_and_axe_finds_nothing(
    browser: Browser, site: Site, world: World, phone: bool, dark: bool
) -> None:
    waiting = await world.queue("assign_role", range(30), Fixed(datetime.now(UTC) + timedelta(days=1)))
    action = f"{CLUB}/scheduled/{encode_id(waiting.operation_ids[0])}"
    lost = await world.queue("ban_member", [99])
    await world.db.pool.execute(
        "select settle_unsent(club_id, id, 'missed', 'late_window_elapsed', lastcall_now()) from operations"
        " where id = $1",
        lost.operation_ids[0],
    )
    found: list[str] = []
    await world.db.pool.execute(
        "insert into outgoing_mail (id, kind, address, state, error) values ($1, 'sign_in', $2, 'failed', $3)",
        new_id(),
        f"{'a-very-long-address' * 3}@example.org",
        "550 5.1.1 " + "nosuchuser" * 20,
    )
    account = f"/operator/accounts/{encode_id(world.key.account_id)}"
    operators = (
        *("/operator", "/operator/fleet/all", "/operator/clubs", "/operator/mail"),
        *(account, f"{account}/quarantined", "/operator/limits/fleet/all"),
        f"/operator/reassign/{encode_id(world.club_id)}.{encode_id(world.connection_id)}",
    )
    for name, paths in (("owner", (*PAGES, action, f"{action}/edit")), ("operator", operators)):
        context = await context_for(browser, site, world, name, phone=phone, dark=dark)
        page = await context.new_page()
        for path in paths:
            await page.goto(path)
            width = await page.evaluate("document.documentElement.scrollWidth")
            if width > (PHONE if phone else WIDE)["width"]:
                found.append(f"{path} is {width} pixels wide")
            if not await page.evaluate(IS_OPEN_TAB_IN_SIGHT):
                found.append(f"{path}: the open tab is out of sight")
            report = await Axe().run(page)
            found += [
                f"{path}: {violation['id']} {[node['target'] for node in violation['nodes'][:3]]}"
                for violation in report.response["violations"]
            ]
        await context.close()
    assert found == []


async def test_on_a_phone_a_row_can_be_cancelled_with_a_thumb(
    browser: Browser, site: Site, world: World
) -> None:
    await world.queue("ban_member", [1])
    context = await context_for(browser, site, world, phone=True)
    page = await context.new_page()
    await page.goto(f"{CLUB}/scheduled")
    cancel = page.get_by_role("link", name=re.compile("Cancel Ban"))
    box = await cancel.bounding_box()
    assert box is not None
    assert box["height"] >= 24
    await cancel.tap()
    await page.get_by_role("button", name="Cancel the action").tap()
    await expect(page.get_by_role("heading", name="Nothing is waiting")).to_be_visible()
    await context.close()
