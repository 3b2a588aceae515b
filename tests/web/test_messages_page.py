"""People read what they were told and dismiss it; who may mend it tries again what was given up."""

from __future__ import annotations

from collections.abc import Callable

from tests.web.conftest import Visitor, World

from lastcall.db.ids import encode_id, new_id

TOLD = """
    insert into deliveries (club_id, id, kind, channel, person_id, dedup, data, state, ended_at)
    values ($1, $2, 'retention.digest', 'app', $3, 'one', '{"day": "2026-03-01", "join_request": 2}', 'delivered',
            lastcall_now())
"""
GIVEN_UP = """
    insert into deliveries (club_id, id, kind, channel, person_id, dedup, data, state, attempts, last_error, ended_at)
    values ($1, $2, 'retention.digest', 'mail', $3, 'one', '{}', 'dead', 8, '550 no <such> user', lastcall_now())
"""


async def test_what_was_told_is_read_and_dismissed(world: World, visit: Callable[..., Visitor]) -> None:
    owner, message_id = visit("owner"), new_id()
    await world.db.pool.execute(TOLD, world.club_id, message_id, world.actors["owner"].person_id)
    page = await owner.get("/c/night-shift/messages")
    assert "On 1 March 2026 (UTC) Lastcall archived 2 join requests of" in page.text
    assert "inbox?shelf=archived" in page.text
    staff = await visit("staff").get("/c/night-shift/messages")
    assert "Lastcall archived" not in staff.text
    assert "Not delivered" not in staff.text
    await owner.post("/c/night-shift/messages", {"message": encode_id(message_id)})
    assert "Nothing new" in (await owner.get("/c/night-shift/messages")).text


async def test_what_was_given_up_says_why_and_is_tried_again(
    world: World, visit: Callable[..., Visitor]
) -> None:
    owner, message_id = visit("owner"), new_id()
    await world.db.pool.execute(GIVEN_UP, world.club_id, message_id, world.actors["owner"].person_id)
    page = await owner.get("/c/night-shift/messages")
    assert "550 no &lt;such&gt; user" in page.text
    answer = await owner.post(f"/c/night-shift/messages/{encode_id(message_id)}/retry", {})
    assert answer.headers["location"].endswith("/c/night-shift/messages")
    assert "Nothing was given up" in (await owner.get("/c/night-shift/messages")).text
    assert await world.db.pool.fetchval("select state from deliveries") != "dead"


async def test_an_operator_tries_again_what_was_given_up_in_any_club(
    world: World, visit: Callable[..., Visitor]
) -> None:
    operator, message_id = visit("operator"), new_id()
    await world.db.pool.execute(GIVEN_UP, world.club_id, message_id, world.actors["owner"].person_id)
    page = await operator.get("/operator/mail")
    assert "Messages that were given up" in page.text
    fields = {"club": encode_id(world.club_id), "message": encode_id(message_id)}
    await operator.post("/operator/messages/retry", fields)
    assert await world.db.pool.fetchval("select state from deliveries") != "dead"
