"""Passkeys and providers in a real browser: a virtual authenticator, a provider on loopback, keys only, a phone,
both themes, and axe.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.people.openid_provider import OpenIdProvider
from tests.web.conftest import Site, World
from tests.web.test_browser import PHONE, WIDE, browser  # noqa: F401 - a fixture
from tests.web.test_ways import provider, site  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

THEMES = ((False, True), (True, False))
"""Wide and dark, then a phone and light: each page is looked at in both."""


@pytest.fixture
async def owner(browser: Browser, site: Site, world: World) -> AsyncIterator[Page]:  # noqa: F811
    """A page of the owner's that fails the test on any script error or refused resource."""
    context = await browser.new_context(base_url=site.url, viewport=WIDE, timezone_id="Europe/Berlin")
    await context.add_cookies([{"name": "lastcall", "value": world.sessions["owner"], "url": site.url}])
    context.set_default_timeout(15_000)
    page = await context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
    yield page
    await context.close()
    assert errors == []


async def authenticator(page: Page) -> Any:
    """A platform authenticator of the browser's own, whose person is always there and always themself."""
    cdp = await page.context.new_cdp_session(page)
    await cdp.send("WebAuthn.enable")
    made = await cdp.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )
    return cdp, made["authenticatorId"]


async def press(page: Page, name: str | re.Pattern[str], role: Any = "button") -> None:
    """Reach it with the keyboard and press Enter, as somebody without a mouse does."""
    target = page.get_by_role(role, name=name)
    await expect(target).to_be_visible()
    for _ in range(60):
        if await target.evaluate("element => element === document.activeElement"):
            break
        await page.keyboard.press("Tab")
    await expect(target).to_be_focused()
    await page.keyboard.press("Enter")


async def looked_at(page: Page, where: str) -> list[str]:
    """What axe finds, and what does not fit, on this page in both themes and sizes."""
    found: list[str] = []
    for phone, dark in THEMES:
        size = PHONE if phone else WIDE
        await page.set_viewport_size(size)  # type: ignore[arg-type]
        await page.emulate_media(color_scheme="dark" if dark else "light")
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > size["width"]:
            found.append(f"{where} is {width} pixels wide")
        report = await Axe().run(page)
        found += [
            f"{where}: {violation['id']} {[node['target'] for node in violation['nodes'][:3]]}"
            for violation in report.response["violations"]
        ]
    return found


async def sign_out(page: Page) -> None:
    await page.context.clear_cookies()
    await page.goto("/sign-in")


async def test_a_passkey_from_adding_it_to_removing_it_with_keys_only(owner: Page, world: World) -> None:
    page = owner
    await authenticator(page)
    await page.goto("/me/sign-in")
    await page.get_by_label("Name of the new passkey").focus()
    await page.keyboard.type("Phone")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Phone", exact=True)).to_be_visible()
    await expect(page).to_have_url(re.compile("/me/sign-in#passkeys$"))
    found = await looked_at(page, "one passkey")

    # The same device again: the browser itself says that it has one, and nothing is sent.
    await page.get_by_label("Name of the new passkey").fill("Again")
    await press(page, "Add a passkey")
    await expect(page.get_by_text("This device has a passkey for you already.")).to_be_visible()

    await sign_out(page)
    await page.goto("/c/night-shift/scheduled")
    await expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
    found += await looked_at(page, "sign-in")
    await press(page, "Sign in with a passkey")
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    await expect(page).to_have_url(re.compile("/c/night-shift/scheduled$"))

    await world.db.pool.execute("update sessions set authenticated_at = authenticated_at - interval '11 min'")
    await page.goto("/me/sign-in")
    await press(page, re.compile("^Remove Phone"), "link")
    await expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    found += await looked_at(page, "confirm")
    await press(page, "Confirm with a passkey")
    await expect(page).to_have_url(re.compile("/me/sign-in$"))
    await page.locator("summary", has_text="Remove").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("A link by mail remains.")).to_be_visible()
    found += await looked_at(page, "removing")
    await press(page, "Remove it")
    await expect(page.get_by_text("None yet. A passkey")).to_be_visible()
    assert found == []


async def test_what_the_browser_cannot_do_is_said_and_another_way_stays(
    owner: Page,
    site: Site,  # noqa: F811
    world: World,
) -> None:
    page = owner
    cdp, device = await authenticator(page)
    await sign_out(page)
    # No passkey for this place on this device, and nobody who would say so: the browser gives up.
    await cdp.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_text("Nothing happened: it was cancelled")).to_be_visible()
    await expect(page.get_by_role("button", name="Sign in with a passkey")).not_to_have_attribute(
        "aria-busy", "true"
    )
    await world.db.pool.execute("update rate_limits set count = 1000 where name = 'sign_in_flow'")
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_text("That was too often.")).to_be_visible()
    old = await page.context.new_page()
    await old.add_init_script("delete window.PublicKeyCredential")
    await old.goto("/sign-in")
    await expect(old.get_by_text("This browser has no passkeys, so use another way.")).to_be_visible()
    await expect(old.get_by_role("button", name="Sign in with a passkey")).to_be_disabled()
    await expect(old.get_by_role("button", name="Sign in with Local ID")).to_be_enabled()


async def test_an_account_at_a_provider_from_linking_it_to_signing_in(
    owner: Page,
    site: Site,  # noqa: F811
    world: World,
    provider: OpenIdProvider,  # noqa: F811
) -> None:
    page = owner
    await page.goto("/me/sign-in")
    await press(page, "Link Local ID")
    await expect(page).to_have_url(re.compile(f"^{provider.issuer}/authorize"))
    await press(page, "Continue as Robin", "link")
    await expect(page).to_have_url(re.compile("/me/sign-in#identities$"))
    await expect(page.get_by_text("robin", exact=True)).to_be_visible()
    found = await looked_at(page, "linked")

    await sign_out(page)
    await page.goto("/c/night-shift/scheduled")
    await press(page, "Sign in with Local ID")
    await press(page, "Continue as Robin", "link")
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    await expect(page).to_have_url(re.compile("/c/night-shift/scheduled$"))

    # A no there, and a stranger's account: said on pages that lead back.
    await sign_out(page)
    await page.goto("/sign-in/with/local/back?error=access_denied&state=gone")
    await expect(page.get_by_role("heading", name="That did not work")).to_be_visible()
    found += await looked_at(page, "refused")
    await press(page, "Go back", "link")
    provider.subject = "a stranger"
    await press(page, "Sign in with Local ID")
    await press(page, "Continue as Robin", "link")
    await expect(page.get_by_text("does not sign anybody in here")).to_be_visible()
    assert found == []


async def test_the_page_in_between_works_without_its_shortcut(
    browser: Browser,  # noqa: F811
    site: Site,  # noqa: F811
    world: World,
    provider: OpenIdProvider,  # noqa: F811
) -> None:
    """Browsers may be told not to follow by themselves; the page then says what to press, without any script."""
    context: BrowserContext = await browser.new_context(base_url=site.url, java_script_enabled=False)
    page = await context.new_page()

    async def without(route: Any) -> None:
        answer = await route.fetch()
        text = re.sub(r"<meta http-equiv=.refresh[^>]*>", "", await answer.text())
        await route.fulfill(response=answer, body=text)

    await page.route("**/sign-in/with/local", without)
    await page.goto("/sign-in")
    await page.get_by_role("button", name="Sign in with Local ID").click()
    await expect(page.get_by_role("heading", name="On to Local ID")).to_be_visible()
    await page.get_by_role("link", name="Go on to Local ID").click()
    await expect(page).to_have_url(re.compile(f"^{provider.issuer}/authorize"))
    await context.close()
