"""``lastcall retention`` over the database of a club at whose door somebody waits too long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.cli.conftest import Say
from tests.decisions.conftest import Desk, Door, open_door

from lastcall.app import register
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id


@pytest.fixture
def waiting(database_url: str) -> tuple[UUID, UUID]:
    """Somebody who waits a day too long, and somebody who came yesterday."""

    async def two(door: Door) -> tuple[UUID, UUID]:
        return await door.overdue(timedelta(days=1)), await door.waits_since(timedelta(days=1))

    return within(database_url, two)


def within(database_url: str, work: Callable[[Door], Awaitable[Any]]) -> Any:
    """Do something in the club, on a loop of its own: commands begin theirs."""

    async def inside() -> Any:
        register()
        database = await Database.open(database_url)
        try:
            return await work(await open_door(database))
        finally:
            await database.close()

    return asyncio.run(inside())


def test_what_will_be_archived_is_listed_tried_and_done(say: Say, waiting: tuple[UUID, UUID]) -> None:
    overdue, fresh = (encode_id(item) for item in waiting)
    listed = say("retention", "due").output.splitlines()
    assert [line.split()[-1] for line in listed] == [overdue, fresh]
    assert all("attic" in line and "join_request" in line for line in listed)
    assert say("retention", "due", "--limit", "1").output.splitlines() == listed[:1]
    tried = say("retention", "dry-run").output
    assert overdue in tried
    assert fresh not in tried
    assert "Would be archived: 1. Nothing was changed." in tried
    later = say("retention", "dry-run", "--at", "2999-01-01T00:00Z").output
    assert "Would be archived: 2." in later
    assert "archived 1" in say("retention", "run", "--kind", "join_request").output
    assert "Would be archived: 0." in say("retention", "dry-run").output
    assert "join_request_retention" in say("retention", "next").output
    assert "nothing" not in say("retention", "next").output.splitlines()[0]


def test_items_of_every_kind_stand_in_one_list_the_earliest_first(say: Say, database_url: str) -> None:
    async def mixed(door: Door) -> list[UUID]:
        desk = Desk(door.db, door.owner, door.club_id)
        doors = (desk, door, desk)
        return [await one.waits_since(timedelta(days=3 - n)) for n, one in enumerate(doors)]

    items = [encode_id(item) for item in within(database_url, mixed)]
    listed = say("retention", "due").output.splitlines()
    assert [line.split()[-1] for line in listed] == items
    assert say("retention", "due", "--limit", "2").output.splitlines() == listed[:2]


def test_one_item_is_explained(say: Say, waiting: tuple[UUID, UUID]) -> None:
    overdue, fresh = (encode_id(item) for item in waiting)
    told = say("retention", "explain", "attic", "join_request", fresh).output
    assert "Then it is archived by itself" in told
    assert "after 90 days" in told
    say("retention", "run")
    told = say("retention", "explain", "attic", "join_request", overdue).output
    assert "It is archived." in told
    assert "by itself" in told
    assert "never, as things stand" in told


def test_what_is_asked_wrongly_is_answered_with_one_sentence(say: Say, waiting: tuple[UUID, UUID]) -> None:
    item = encode_id(waiting[0])
    for wrong, sentence in (
        (("explain", "attic", "cake", item), "“cake” is no kind of item."),
        (("explain", "attic", "join_request", encode_id(new_id())), "no such join request"),
        (("dry-run", "--at", "soon"), "“soon” is no time with a zone."),
        (("due", "--kind", "cake"), "Name one of these: "),
    ):
        refused = say("retention", *wrong)
        assert (refused.exit_code, sentence in refused.output) == (1, True), refused.output
