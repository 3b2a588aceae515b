"""What pages do without scripts: sign-in, composing, paging, cancelling, switches, and how they are
protected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError
from tests.web.conftest import ROLE, Site, Visitor, World, user

from lastcall.api.problems import as_family
from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import roles_of
from lastcall.connections.switches import set_fleet_switch
from lastcall.db.ids import encode_id, new_id
from lastcall.errors import DatabaseAway
from lastcall.operations.schedules import Fixed
from lastcall.operations.services.cancel import cancel
from lastcall.people.sign_in import make_sign_in_link
from lastcall.settings import Settings
from lastcall.testing.staff import change_role
from lastcall.web.access import Cookies

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"


async def count(world: World, table: str) -> int:
    return int(await world.db.pool.fetchval(f"select count(*) from {table}"))


async def test_opening_a_link_uses_nothing_up_and_sending_it_works_once(
    world: World, site: Site, visit: Visit
) -> None:
    link = f"/sign-in/{await make_sign_in_link(world.db, 'owner@example.org')}"
    visitor = visit()
    for _ in range(3):
        assert (await visitor.get(link)).status_code == 200
    token = await visitor.token(link)
    answer = await visitor.post(link, token=token)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert (await visitor.get("/")).status_code == 200
    again = visit()
    refused = await again.post(
        link, token=await again.token(f"/sign-in/{await make_sign_in_link(world.db, 'staff@example.org')}")
    )
    assert refused.status_code == 401
    assert "no longer works" in refused.text


async def test_a_page_asked_for_before_sign_in_is_where_it_leads(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit()
    asked = await visitor.get(f"{CLUB}/scheduled")
    assert asked.status_code == 401
    link = f"/sign-in/{await make_sign_in_link(world.db, 'owner@example.org')}"
    answer = await visitor.post(link, token=await visitor.token(link))
    assert answer.headers["location"] == f"{CLUB}/scheduled"


@pytest.mark.parametrize("elsewhere", ["//evil.example", "/\\evil.example", "https://evil.example"])
async def test_a_forged_way_back_leads_home(world: World, site: Site, visit: Visit, elsewhere: str) -> None:
    visitor = visit()
    visitor.client.cookies.set("lastcall-next", elsewhere)
    link = f"/sign-in/{await make_sign_in_link(world.db, 'owner@example.org')}"
    answer = await visitor.post(link, token=await visitor.token(link))
    assert answer.headers["location"] == "/"


async def test_every_answer_carries_the_security_headers(world: World, site: Site, visit: Visit) -> None:
    for path in ("/", "/nothing", f"{CLUB}/scheduled", "/worker/v1/nothing", "/ops/health"):
        headers = (await visit("owner").get(path)).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"


async def test_pages_hold_no_inline_script_or_style(world: World, site: Site, visit: Visit) -> None:
    await world.queue("assign_role", range(3))
    for path in (
        "/",
        f"{CLUB}/scheduled",
        f"{CLUB}/scheduled/history",
        f"{CLUB}/new",
        f"{CLUB}/new/ban_member",
    ):
        text = (await visit("owner").get(path)).text
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=", text), path


def test_cookies_are_marked_for_the_way_the_site_is_reached() -> None:
    plain, secure = (
        Cookies(is_secure=False),
        Cookies(is_secure=Settings(public_url="https://x.example").is_https),
    )
    assert "Secure" not in plain.make(plain.session, "x").to_header()
    header = secure.make(secure.session, "x").to_header()
    assert header.startswith("Set-Cookie: __Host-lastcall=")
    assert all(part in header for part in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"))


async def test_programs_get_problem_documents_and_people_get_pages(
    world: World, site: Site, visit: Visit
) -> None:
    problem = await visit().client.post("/worker/v1/hello", json={})
    assert problem.headers["content-type"] == "application/problem+json"
    assert problem.json()["status"] == problem.status_code
    page = await visit("owner").get("/nothing")
    assert page.headers["content-type"].startswith("text/html")
    assert "There is no such page." in page.text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (asyncpg.InternalClientError("got result for unknown protocol state"), "database_lost"),
        (asyncpg.ConnectionDoesNotExistError("gone"), "database_lost"),
        (ConnectionResetError(), "database_lost"),
        (asyncpg.LockNotAvailableError("timeout"), "database_busy"),
        (asyncpg.DeadlockDetectedError("cycle"), "database_busy"),
    ],
)
def test_a_database_that_is_away_or_busy_is_unavailable_and_no_riddle(error: Exception, code: str) -> None:
    wrapped = DBAPIError("select 1", None, error)
    wrapped.__cause__ = error
    for raised in (error, wrapped):
        found = as_family(raised)
        assert (found.status, found.code) == (503, code)
        assert "select" not in found.sentence


async def test_review_names_every_wrong_line_and_queues_nothing(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    people = f"{user(1)}\nnobody\n{user(1)}"
    answer = await visitor.post(
        f"{CLUB}/new/assign_role/review",
        {"people": people, "role": "", "when": "at", "at": "", "zone": "UTC"},
    )
    assert answer.status_code == 422
    for words in (
        "Line 2:",
        "Choose the role",
        "Choose a day and a time",
        "3 things",
    ):
        assert words in answer.text, words
    assert "nobody" in answer.text
    assert await count(world, "operations") == 0


async def review(visitor: Visitor, kind: str, people: str, **fields: str) -> dict[str, str]:
    """Send the form to review; answers what the confirmation carries."""
    form = {"people": people, "role": ROLE, "when": "now", "zone": "Europe/Berlin", **fields}
    answer = await visitor.post(f"{CLUB}/new/{kind}/review", form)
    assert answer.status_code == 200, answer.text
    carried = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', answer.text))
    carried["people"] = re.search(r'<textarea name="people" hidden>([^<]*)</textarea>', answer.text)[1]
    return carried


@pytest.mark.clause("ENQ-03")
async def test_confirming_twice_queues_once(world: World, site: Site, visit: Visit) -> None:
    """The request id is made at review, so a second click or a lost answer is harmless."""
    visitor = visit("owner")
    carried = await review(visitor, "assign_role", "\n".join(user(n) for n in range(5)))
    assert await count(world, "operations") == 0
    first = await visitor.post(f"{CLUB}/new/assign_role", carried)
    second = await visitor.post(f"{CLUB}/new/assign_role", carried)
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["location"] == second.headers["location"]
    assert await count(world, "operations") == 5


async def test_a_fixed_time_is_shown_exactly_and_kept(world: World, site: Site, visit: Visit) -> None:
    visitor = visit("owner")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(hour=20, minute=30, second=0, microsecond=0)
    carried = await review(
        visitor, "ban_member", user(1), when="at", at=f"{tomorrow:%Y-%m-%dT%H:%M}", zone="UTC"
    )
    answer = await visitor.post(f"{CLUB}/new/ban_member", carried)
    assert answer.status_code == 303
    assert await world.db.pool.fetchval("select due_at from operations") == tomorrow


async def test_a_refusal_at_the_confirmation_shows_the_review_again(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    carried = await review(visitor, "ban_member", user(1))
    await world.db.pool.execute("update connections set state = 'auth_required'")
    answer = await visitor.post(f"{CLUB}/new/ban_member", carried)
    assert answer.status_code == 409
    assert "no active connection" in answer.text
    assert carried["request_key"] in answer.text


async def test_the_review_forecasts_what_will_be_missed(world: World, site: Site, visit: Visit) -> None:
    """Four requests a minute, two an action: thirty of forty fit the fifteen minutes."""
    form = {"people": "\n".join(user(n) for n in range(40)), "role": ROLE, "when": "now", "zone": "UTC"}
    answer = await visit("owner").post(f"{CLUB}/new/assign_role/review", form)
    assert "About 30 of 40 fit the 15 minutes; about 10 would be missed." in answer.text
    assert re.search(r"Spread over 2 times all would be:\s+22 at \d\d:\d\d,\s+18 at \d\d:\d\d\.", answer.text)


@pytest.mark.clause("BUD-08")
async def test_nobody_is_promised_that_a_hundred_fit_into_their_grace(
    world: World, site: Site, visit: Visit
) -> None:
    """At the default of a new connection; and less when the account has written much that day."""
    assert await world.db.pool.fetchval("select requests_per_minute from connections") == 4
    form = {"people": "\n".join(user(n) for n in range(100)), "role": ROLE, "when": "now", "zone": "UTC"}
    answer = await visit("owner").post(f"{CLUB}/new/assign_role/review", form)
    assert "at 4 VRChat requests a minute" in answer.text
    assert "An estimate, no promise: whatever else the account does can make it longer." in answer.text
    assert "About 30 of 100 fit the 15 minutes; about 70 would be missed." in answer.text
    assert "writes left" not in answer.text
    await world.db.pool.execute("update accounts set writes_per_day = 12")
    answer = await visit("owner").post(f"{CLUB}/new/assign_role/review", form)
    assert "The club's account has 12 of that day's writes left (UTC), over all its clubs." in answer.text
    docs = (Path(__file__).parents[2] / "docs" / "explanation" / "operations.md").read_text(encoding="utf-8")
    assert "a hundred does not fit into its grace" in " ".join(docs.split())


async def test_upcoming_pages_show_each_batch_once(world: World, site: Site, visit: Visit) -> None:
    """Two full batches are more than a page; the second page does not repeat the batch that the first
    one cut.
    """
    later = datetime.now(UTC) + timedelta(hours=2)
    first = await world.queue("assign_role", range(60))
    second = await world.queue("assign_role", range(60, 120), Fixed(later))
    visitor = visit("owner")
    page = (await visitor.get(f"{CLUB}/scheduled")).text
    assert all(page.count(f"row-{encode_id(each.request_id)}") == 1 for each in (first, second))
    after = re.search(r"scheduled\?after=([0-9A-Za-z_.-]+)", page)
    assert after is not None
    rest = (await visitor.get(f"{CLUB}/scheduled", params={"after": after[1]})).text
    assert f"row-{encode_id(second.request_id)}" not in rest


async def test_history_filters_on_the_server(world: World, site: Site, visit: Visit) -> None:
    queued = await world.queue("assign_role", range(2))
    await cancel(world.db, world.actors["owner"], world.club_id, queued.operation_ids[0], 1)
    visitor = visit("owner")
    shown = await visitor.get(f"{CLUB}/scheduled/history", params={"outcome": "cancelled"})
    assert user(0) in shown.text
    other = await visitor.get(f"{CLUB}/scheduled/history", params={"outcome": "missed"})
    assert user(0) not in other.text
    assert (await visitor.get(f"{CLUB}/scheduled/history", params={"outcome": "dance"})).status_code == 422


async def test_a_reader_sees_only_kinds_whose_permission_they_have(
    world: World, site: Site, visit: Visit
) -> None:
    await world.queue("assign_role", [1])
    await world.queue("ban_member", [2])
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[-1]
    await change_role(
        world.db, world.actors["owner"], world.club_id, role.id, permissions=[Permission.MANAGE_BANS]
    )
    page = (await visit("staff").get(f"{CLUB}/scheduled")).text
    assert user(2) in page
    assert user(1) not in page


async def test_cancel_is_refused_at_another_revision_and_asks_before(
    world: World, site: Site, visit: Visit
) -> None:
    queued = await world.queue("ban_member", [1])
    path = f"{CLUB}/scheduled/{encode_id(queued.operation_ids[0])}/cancel"
    visitor = visit("owner")
    stale = await visitor.post(path, {"revision": "7"})
    assert stale.status_code == 409
    assert "Refresh to continue." in stale.text
    asked = await visitor.get(path, params={"revision": 1})
    assert "Cancel this action?" in asked.text
    assert (await visitor.post(path, {"revision": "1"})).status_code == 303
    assert await world.db.pool.fetchval("select state from operations") == "cancelled"
    too_late = await visitor.get(path, params={"revision": 1})
    assert too_late.status_code == 409


async def test_a_switch_asks_first_and_then_stops_everything(world: World, site: Site, visit: Visit) -> None:
    visitor = visit("operator")
    asked = await visitor.get("/operator/fleet/all")
    assert "Stop all accounts?" in asked.text
    assert not await world.db.pool.fetchval("select kill_switch from fleet_settings")
    assert (await visitor.post("/operator/fleet/all", {"on": "yes"})).status_code == 303
    assert await world.db.pool.fetchval("select kill_switch from fleet_settings")
    page = (await visit("owner").get(f"{CLUB}/scheduled")).text
    assert "Everything is stopped." in page
    await set_fleet_switch(world.db, None, is_on=False)


async def test_an_operator_is_told_how_an_account_that_must_sign_in_gets_back_to_work(
    world: World, site: Site, visit: Visit
) -> None:
    alias = await world.db.pool.fetchval("select alias from accounts")
    way_out = f"lastcall account ready {alias}"
    assert way_out not in (await visit("operator").get("/operator")).text
    await world.db.pool.execute("update accounts set state = 'auth_required'")
    assert way_out in (await visit("operator").get("/operator")).text


async def test_names_from_outside_are_data(world: World, site: Site, visit: Visit) -> None:
    await world.db.pool.execute("update connections set group_name = '<script>alert(1)</script>'")
    page = (await visit("owner").get(f"{CLUB}/scheduled")).text
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


async def test_an_id_that_is_none_is_as_unknown_as_one_that_nobody_has(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    answers = [
        (await visitor.get(f"{CLUB}/requests/{text}")).status_code
        for text in (encode_id(new_id()), "x", "Ł" * 26, "0" * 400)
    ]
    assert answers == [404] * 4


async def test_a_question_for_the_methods_of_an_address_is_answered(visit: Visit) -> None:
    answer = await visit().client.options(f"{CLUB}/scheduled")
    assert answer.status_code == 204
    assert "GET" in answer.headers["allow"]


async def test_an_address_with_two_slashes_leads_nowhere_else(visit: Visit) -> None:
    page = await visit("operator").get("//operator")
    assert page.status_code == 200
    assert 'hx-get="//' not in page.text


async def test_nothing_is_queued_without_the_request_id_of_a_review(world: World, visit: Visit) -> None:
    answer = await visit("owner").post(f"{CLUB}/new/ban_member", {"people": user(3), "when": "now"})
    assert answer.status_code == 422
    assert await count(world, "operations") == 0


def test_a_reader_is_not_told_where_the_database_is() -> None:
    told = as_family(DatabaseAway("database_unreachable", "The database at /somewhere cannot be reached."))
    assert told.status == 503
    assert "/somewhere" not in told.sentence
