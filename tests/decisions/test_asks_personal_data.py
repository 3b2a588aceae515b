"""What a person asked goes with them when they are erased, as far as it still waited."""

from __future__ import annotations

import pytest
from tests.decisions.asks_kit import YES_NO, Desk, make_desk
from tests.decisions.test_questions import ask as ask_question

import lastcall.access.registration
import lastcall.clubs.registration
from lastcall.db.database import Database
from lastcall.decisions.approvals import asking, deciding
from lastcall.decisions.registration import register
from lastcall.people.erasing import erase_person, export_person


@pytest.fixture
async def desk(database: Database) -> Desk:
    lastcall.clubs.registration.register()
    lastcall.access.registration.register()
    register()
    return await make_desk(database)


async def test_what_an_erased_person_still_waited_for_is_taken_back(desk: Desk) -> None:
    waiting, decided, others = await desk.ask(desk.host), await desk.ask(desk.host), await desk.ask()
    question = await ask_question(desk, desk.host, YES_NO)
    await deciding.reject(desk.db, desk.decider, desk.club_id, decided, seen_revision=1)
    await erase_person(desk.db, None, desk.host.person_id)
    assert [await desk.status(one) for one in (waiting, decided, others)] == [
        "withdrawn",
        "rejected",
        "pending",
    ]
    assert (await desk.row(waiting))["archive_due_at"] is None
    assert await desk.db.pool.fetchval("select status from decisions where id = $1", question) == "cancelled"


async def test_a_person_gets_what_they_asked_said_and_decided(desk: Desk) -> None:
    approval_id = await desk.ask(desk.host)
    await asking.comment(desk.db, desk.decider, desk.club_id, approval_id, "Who pays?")
    await deciding.approve(desk.db, desk.decider, desk.club_id, approval_id, seen_revision=1, note="I do.")
    for person, words in (
        (desk.host, "For the weekend."),
        (desk.decider, "Who pays?"),
        (desk.decider, "I do."),
    ):
        lines = [line async for line in export_person(desk.db, None, person.person_id)]
        assert any(words in line.decode() for line in lines)
