"""Every kind of visitor of an invitation, on a phone 360 pixels wide, and the door as its staff see it there."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.web.conftest import Site, World
from tests.web.test_browser import browser
from tests.web.test_browser_sign_in import check

from lastcall.access.acceptance import accept_invite, accept_invite_as_agent
from lastcall.access.invites import InviteKind, NewInvite, create_invite, revoke_invite
from lastcall.access.requests import AgentSubject
from lastcall.clubs.queries import roles_of
from lastcall.people.agent_grants import AgentGrant

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CLUB = "/c/night-shift"
JOIN, GONE = "Join the staff of Night Shift?", "This invitation cannot be used"


async def phone(browser: Browser, site: Site, world: World, who: str | None) -> tuple[BrowserContext, Page]:
    context = await browser.new_context(
        base_url=site.url, viewport={"width": 360, "height": 740}, has_touch=True
    )
    context.set_default_timeout(15_000)
    if who is not None:
        await context.add_cookies([{"name": "lastcall", "value": world.sessions[who], "url": site.url}])
    page = await context.new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    return context, page


async def invite(world: World, **more: Any) -> NewInvite:
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[0]
    roles = () if more.get("kind") is InviteKind.AGENT else [role.id]
    return await create_invite(world.db, world.actors["owner"], world.club_id, roles, **more)


async def every_case(world: World) -> list[tuple[str | None, str, int, str, str]]:
    """Who opens which invitation; the status, the heading and what they are told to do."""
    db, owner = world.db, world.actors["owner"]
    open_one = await invite(world)
    bound = await invite(world, email="a@b.example")
    waits = await invite(world, approves=False)
    revoked, expired, used = [await invite(world) for _ in range(3)]
    agents = await invite(world, kind=InviteKind.AGENT)
    await revoke_invite(db, owner, world.club_id, revoked.id)
    await db.pool.execute("update invites set expires_at = lastcall_now() where id = $1", expired.id)
    await accept_invite(db, world.actors["operator"], used.token)
    await accept_invite(db, world.actors["stranger"], waits.token)
    return [
        (None, open_one.token, 200, JOIN, "Your mail address"),
        (None, bound.token, 200, JOIN, "It is for one mail address"),
        ("staff", open_one.token, 200, JOIN, "invites you, Staff"),
        ("staff", bound.token, 200, JOIN, "staff@example.org"),
        ("owner", open_one.token, 200, JOIN, "You made this invitation yourself"),
        ("operator", open_one.token, 200, JOIN, "You have all of these roles already"),
        ("staff", agents.token, 200, JOIN, "Give its address to whoever runs that"),
        ("operator", used.token, 200, "You are on the staff of Night Shift", "Open the club"),
        ("stranger", waits.token, 200, "Your request waits", "among your requests"),
        ("staff", used.token, 404, GONE, "Ask whoever sent it to you for a new one"),
        (None, revoked.token, 404, GONE, "sign in to see what became of it"),
        ("stranger", expired.token, 404, GONE, "Your requests"),
    ]


async def test_each_visitor_is_told_what_to_do_on_a_narrow_phone(
    browser: Browser, site: Site, world: World
) -> None:
    cases = await every_case(world)
    for who in dict.fromkeys(case[0] for case in cases):
        context, page = await phone(browser, site, world, who)
        for _, token, status, heading, told in (case for case in cases if case[0] == who):
            answer = await page.goto(f"/invites/{token}")
            assert answer is not None
            assert answer.status == status, (who, heading)
            await expect(page.get_by_role("heading", name=heading)).to_be_visible()
            await expect(page.get_by_text(told).first).to_be_visible()
            await check(page)
        await context.close()


async def test_the_door_fits_a_phone_and_an_agent_is_let_in_with_what_stays_ticked(
    browser: Browser, site: Site, world: World
) -> None:
    agents = await invite(
        world, kind=InviteKind.AGENT, agent_grants=[AgentGrant.ASK, AgentGrant.REPORT_RUNS], max_uses=2
    )
    await accept_invite_as_agent(world.db, agents.token, AgentSubject("Counting Robot", "I count who comes."))
    asked = await invite(world, approves=False)
    await accept_invite(world.db, world.actors["stranger"], asked.token)
    context, page = await phone(browser, site, world, "owner")
    for path in (
        "staff/invites",
        "staff/invites?shown=open",
        "staff/invites/new",
        "join-requests?shown=rejected",
    ):
        await page.goto(f"{CLUB}/{path}")
        await check(page)
    await page.goto(f"{CLUB}/staff/invites/new?kind=agent")
    await page.get_by_role("button", name="Make the invitation").click()
    await expect(page.get_by_text("How an agent uses it")).to_be_visible()
    await check(page)
    await page.goto(f"{CLUB}/join-requests")
    await page.get_by_label("Stranger").check()
    await check(page)
    await page.get_by_role("button", name="Turn the ticked down").click()
    await page.get_by_role("link", name="Decide on Counting Robot").click()
    await expect(page.get_by_text("I count who comes.")).to_be_visible()
    await page.get_by_label("Report its runs").uncheck()
    await check(page)
    await page.get_by_role("button", name="Let it in").click()
    await expect(page.get_by_text("Nobody waits.")).to_be_visible()
    assert await world.db.pool.fetchval("select grants from agents") == ["ask"]
    await page.goto(f"{CLUB}/staff/invites")
    await page.get_by_role("link", name="An agent", exact=True).last.click()
    await expect(page.get_by_text("Counting Robot", exact=True)).to_be_visible()
    await check(page)
    await context.close()
    context, page = await phone(browser, site, world, "stranger")
    await page.goto("/requests")
    await expect(page.get_by_text("Turned down")).to_be_visible()
    await check(page)
    await context.close()
