"""Write the README's pictures: ``make screenshots``. Our own pages, over a club that is made up here.

The server, the database and the browser are real; nothing is sent anywhere.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal
from uuid import UUID

from playwright.async_api import async_playwright

from lastcall.app import register
from lastcall.cli.server import bind, running_server
from lastcall.clubs.service import add_club
from lastcall.connections.connect import connect_club
from lastcall.connections.states import Feature
from lastcall.db.database import Database
from lastcall.db.embedded import temporary_server
from lastcall.db.ids import encode_id, new_id
from lastcall.db.migrations import migrate
from lastcall.operations.schedules import Fixed, Immediate, Schedule
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.schema import SCHEMA
from lastcall.settings import Settings
from lastcall.testing.connecting import activate
from lastcall.testing.fleet import ready_account

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PROGRAMS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ROLES = {"Regular": 1, "Host": 2}
_SETTLE = "select settle_unsent(club_id, id, $2, $3, lastcall_now()) from operations where id = any($1)"


def made(prefix: str, number: int) -> str:
    return f"{prefix}_5c1b20fe-91d4-4a7e-8f00-{number * 7919:012x}"


async def evening(
    database: Database, club_id: UUID, connection_id: UUID, account_id: UUID, actor: Actor
) -> None:
    """A few things that wait, a batch under way, and an outcome that nobody knows."""
    body = {
        "groupId": "grp_night-shift",
        "ownerId": made("usr", 1000),
        "userId": "usr_porter",
        "memberStatus": "member",
        "permissions": ["*"],
        "roleIds": [],
        "roles": [{"id": made("grol", number), "name": name} for name, number in ROLES.items()],
        "privacy": "default",
    }
    await database.pool.execute(
        "select store_own_member_evidence($1, $2, epoch, $3, $4, $5, lastcall_now() - interval '38 seconds')"
        " from connections where id = $2",
        club_id,
        connection_id,
        account_id,
        new_id(),
        json.dumps(body),
    )

    async def queue(kind: str, people: range, schedule: Schedule, role: str = "") -> tuple[UUID, ...]:
        extra = {"roleId": made("grol", ROLES[role])} if role else {}
        payloads = [{"kind": kind, "targetUserId": made("usr", number), **extra} for number in people]
        queued = await enqueue(database, actor, club_id, encode_id(new_id()), payloads, schedule)
        return queued.operation_ids

    today = datetime.now(UTC)
    ids = await queue("assign_role", range(26), Immediate(), "Regular")
    await database.pool.execute(_SETTLE, ids[19:20], "rejected", "visibility")
    await _sent(database, ids[:19], "succeeded", None)
    lost = await queue("ban_member", range(40, 41), Immediate())
    await _sent(database, lost, "indeterminate", "submission_outcome_unknown")
    await queue("ban_member", range(41, 42), Fixed(today + timedelta(minutes=12)))
    await queue("invite_member", range(50, 90), Fixed(today + timedelta(minutes=40)))
    await queue("assign_role", range(90, 98), Fixed(today + timedelta(days=1, hours=2)), "Host")


async def _sent(database: Database, ids: tuple[UUID, ...], state: str, code: str | None) -> None:
    """As the worker's steps leave a row that was sent. There is no collector here to take them."""
    await database.pool.execute(
        "update operations set state = $2, code = $3, claim_nonce = gen_random_uuid(),"
        " claim_account_id = (select id from accounts), claim_worker_id = gen_random_uuid(),"
        " claim_journal_id = gen_random_uuid(), claim_fencing_token = 1, claim_generation = 1,"
        " claim_expires_at = lastcall_now(), submitted_at = lastcall_now(), completed_at = lastcall_now()"
        " where id = any($1)",
        list(ids),
        state,
        code,
    )


async def pictures(url: str, link: str) -> None:
    program = next((path for path in PROGRAMS if Path(path).exists()), None)
    if program is None:
        sys.exit("There is no Chromium: install the package 'chromium' (tools/browser does where it may).")
    IMAGES.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        context = await browser.new_context(
            viewport={"width": 1240, "height": 780}, timezone_id="Europe/Berlin", device_scale_factor=1
        )
        page = await context.new_page()
        await page.goto(link)
        await page.get_by_role("button", name="Sign in").click()
        schemes: dict[str, Literal["light", "dark"]] = {"scheduled": "light", "scheduled-dark": "dark"}
        for name, scheme in schemes.items():
            await page.emulate_media(color_scheme=scheme)
            await page.goto(f"{url}/c/night-shift/scheduled")
            await page.get_by_text("Live", exact=True).wait_for()
            await page.screenshot(path=IMAGES / f"{name}.png")
        await browser.close()


async def main() -> None:
    register()
    async with temporary_server() as server:
        await migrate(server.url, SCHEMA)
        database = await Database.open(server.url)
        taken = bind("127.0.0.1", 0)
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with running_server(Settings(public_url=url), database, taken=taken):
            await add_person(database, "ada@example.org", "Ada")
            _, actor = await redeem_sign_in_link(
                database, await make_sign_in_link(database, "ada@example.org")
            )
            club_id = await add_club(
                database, None, "Night Shift", "night-shift", "Europe/Berlin", actor.person_id
            )
            account = await ready_account(database, "porter", "usr_porter")
            connection_id = await connect_club(
                database,
                None,
                club_id,
                group_id="grp_night-shift",
                group_name="Night Shift",
                account_id=account.account_id,
                features=[Feature.MEMBERSHIP_MANAGEMENT],
            )
            await activate(database, club_id, connection_id)
            await evening(database, club_id, connection_id, account.account_id, actor)
            await pictures(url, f"{url}/sign-in/{await make_sign_in_link(database, 'ada@example.org')}")
        await database.close()


if __name__ == "__main__":
    asyncio.run(main())
