"""The way of a list from a page to VRChat and back, and of what is decided on it."""

from __future__ import annotations

import re
from html import unescape

import httpx2
from vertical import Vertical

from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.testing.waiting import eventually

MEMBERS = "/c/the-club/members"
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
PEOPLE = re.compile(r'<textarea name="people" hidden>\n?([^<]*)</textarea>')


async def came(client: httpx2.AsyncClient, tab: str) -> str:
    """Open a list and wait for what VRChat says."""
    asked = await client.get(f"{MEMBERS}/{tab}")
    assert asked.status_code == 303, asked.text

    async def look() -> str | None:
        text = (await client.get(asked.headers["location"])).text
        return text if "Read at" in text else None

    return await eventually(look, within=20)


async def test_a_list_is_read_for_a_page_and_what_is_decided_on_it_is_done(vertical: Vertical) -> None:
    session, _ = await redeem_sign_in_link(
        vertical.database, await make_sign_in_link(vertical.database, "owner@club.example")
    )
    target = vertical.simulator.seed.members[3]
    async with httpx2.AsyncClient(
        base_url=vertical.server_url, cookies={"lastcall": session}, trust_env=False, timeout=20
    ) as client:
        text = await came(client, "directory")
        name = re.search(rf'value="{target}" aria-label="([^"]+)"', text)
        assert name is not None
        fields = dict(HIDDEN.findall(text.partition("/review")[2]))
        review = await client.post(
            f"{MEMBERS}/directory/review", data=fields | {"act": f"ban_member {target}"}
        )
        assert f"<b>{name[1]}</b>" in review.text
        people = PEOPLE.search(review.text)
        assert people is not None
        confirmed = {key: unescape(value) for key, value in HIDDEN.findall(review.text)}
        queued = await client.post(
            "/c/the-club/new/ban_member", data=confirmed | {"people": unescape(people[1])}
        )
        assert queued.status_code == 303, queued.text
        operation_id = await vertical.database.pool.fetchval("select id from operations")
        assert await vertical.ended(operation_id) == ("succeeded", None)
        bans = await came(client, "bans")
        assert f"<strong>{name[1]}</strong>" in bans
    assert [entry.target for entry in vertical.simulator.ledger.of()] == [target]
