"""The log holds every change with its actor and no secret, and shows each reader what they may know of."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.clubs.house import House, person

from lastcall.clubs import activity_log
from lastcall.clubs.activity import REDACTED, TEXT_LENGTH, System, log, redacted
from lastcall.clubs.activity_log import (
    ActivityFilters,
    ActivityView,
    ExportForm,
    activity_page,
    export_activity,
)
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.db.cursor import Cursor
from lastcall.db.ids import new_id
from lastcall.errors import NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.tokens import new_token

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def write(club: House, count: int, at: datetime, action: str = "join.requested") -> None:
    """Entries that all have the same time."""
    await club.run(
        "insert into activity_log (club_id, id, actor_kind, actor_name, action, entity_type, entity_id, created_at)"
        " select $1, gen_random_uuid(), 'system', 'invite', $2, 'join_request', gen_random_uuid(), $3"
        " from generate_series(1, $4)",
        action,
        at,
        count,
    )


async def pages(
    club: House, who: Actor, filters: ActivityFilters = activity_log.ALL, limit: int = 3
) -> tuple[list[ActivityView], int]:
    found: list[ActivityView] = []
    after: Cursor | None = None
    for number in range(1, 100):
        async with club.db.read() as tx:
            page = await activity_page(tx, who, club.club_id, filters, after=after, limit=limit)
        found += page.entries
        after = page.next
        if after is None:
            return found, number
    raise AssertionError("the pages do not end")


async def test_pages_of_entries_with_one_time_hold_each_entry_once_the_newest_first(club: House) -> None:
    await write(club, 10, LONG_AGO)
    await write(club, 4, LONG_AGO - timedelta(microseconds=1))
    found, _ = await pages(club, club.owner)
    keys = [(entry.created_at, entry.id) for entry in found]
    assert keys == sorted(keys, reverse=True)
    assert (
        len(set(keys)) == len(keys) == await club.run("select count(*) from activity_log where club_id = $1")
    )


async def test_an_entry_says_who_what_and_whom_by_the_names_of_today(club: House) -> None:
    await assign_role(club.db, club.deputy, club.club_id, club.roles["moderator"], club.guest.person_id)
    await club.db.pool.execute(
        "update people set display_name = 'Renamed' where id = $1", club.deputy.person_id
    )
    async with club.db.read() as tx:
        newest = (await activity_page(tx, club.owner, club.club_id, limit=1)).entries[0]
        first = (await pages(club, club.owner, limit=200))[0][-1]
    assert (newest.action, newest.actor_name, newest.entity_name) == (
        "staff.role_assigned",
        "Renamed",
        "Guest",
    )
    assert newest.details == {"role": str(club.roles["moderator"])}
    assert (first.action, first.actor_kind, first.actor_name) == ("club.added", "system", "command line")
    kept = await club.run(
        "select count(*) from activity_log where club_id = $1 and actor_kind = 'person' and actor_name is not null"
    )
    assert kept == 0, "names of people are read from the people"


async def test_the_owner_sees_all_managers_of_staff_what_is_about_staff_and_others_nothing(
    club: House,
) -> None:
    await write(club, 2, LONG_AGO)
    await write(club, 1, LONG_AGO, "operation.cancelled")
    await write(club, 1, LONG_AGO, "invite.created")
    await assign_role(club.db, club.owner, club.club_id, club.roles["moderator"], club.guest.person_id)
    everything, _ = await pages(club, club.owner)
    about_staff, _ = await pages(club, club.deputy)
    families = {entry.action.partition(".")[0] for entry in about_staff}
    assert families == {"club", "staff", "invite"}
    assert len(everything) == len(about_staff) + 3
    hidden, _ = await pages(club, club.deputy, ActivityFilters(family="join"))
    assert hidden == [], "a filter does not open what is closed"
    async with club.db.read() as tx:
        with pytest.raises(NotAllowed):
            await activity_page(tx, club.guest, club.club_id)
        with pytest.raises(NotFound):
            await activity_page(tx, await stranger(club), club.club_id)


async def stranger(club: House) -> Actor:
    return Actor(new_id(), "Stranger", is_operator=False)


async def test_filters_are_joined_and_a_short_page_still_leads_on(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_log, "EXAMINED_MOST", 5)
    other = await person(club.db, "other")
    await write(club, 23, datetime.now(UTC) + timedelta(days=1))
    await assign_role(club.db, club.deputy, club.club_id, club.roles["moderator"], club.guest.person_id)
    await assign_role(club.db, club.owner, club.club_id, club.roles["moderator"], other.person_id)

    async def found(**filters: Any) -> list[tuple[str, UUID]]:
        entries, _ = await pages(club, club.owner, ActivityFilters(**filters))
        return [(entry.action, entry.entity_id) for entry in entries]

    by_deputy = [("staff.role_assigned", club.guest.person_id)]
    assert await found(actor_id=club.deputy.person_id) == by_deputy
    assert await found(entity_type="person", entity_id=club.guest.person_id) == by_deputy
    assert len(await found(family="staff", action="staff.role_assigned")) == 3
    assert len(await found(family="join")) == 23
    assert await found(family="staff", action="club.added") == []
    assert await found(since=datetime.now(UTC) + timedelta(days=2)) == []
    assert len(await found(until=datetime.now(UTC) + timedelta(hours=1))) == len(await club.actions()) - 23
    _, count = await pages(club, club.owner, ActivityFilters(actor_id=club.deputy.person_id))
    assert count > 4, "pages that found nothing, each with a bounded look"


async def exported(club: House, who: Actor, form: ExportForm) -> bytes:
    pieces = await export_activity(club.db, who, club.club_id, form)
    return b"".join([piece async for piece in pieces])


async def test_an_export_holds_what_its_reader_sees_in_either_form(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_log, "EXPORT_PAGE", 4)
    await write(club, 9, LONG_AGO)
    async with club.db.transaction() as tx:
        await log(tx, club.club_id, System("=cmd()"), "club.noted", "club", club.club_id, {"note": 'a,"b"\n'})
    seen = [entry.action for entry in (await pages(club, club.owner))[0]]
    lines = (await exported(club, club.owner, ExportForm.JSON_LINES)).splitlines()
    assert [msgspec.json.decode(line)["action"] for line in lines] == seen
    rows = list(
        csv.DictReader(io.StringIO((await exported(club, club.owner, ExportForm.CSV)).decode(), newline=""))
    )
    assert [row["action"] for row in rows] == seen
    noted = next(row for row in rows if row["action"] == "club.noted")
    assert noted["actor"] == "'=cmd()", "no spreadsheet takes it for a formula"
    assert msgspec.json.decode(noted["details"]) == {"note": 'a,"b"\n'}
    about_staff = (await exported(club, club.deputy, ExportForm.JSON_LINES)).decode()
    assert "join.requested" not in about_staff


async def test_an_export_ends_when_its_reader_may_read_no_more(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_log, "EXPORT_PAGE", 2)
    with pytest.raises(NotFound):
        await export_activity(club.db, await stranger(club), club.club_id, ExportForm.CSV)
    await write(club, 9, LONG_AGO, "invite.created")
    pieces = await export_activity(club.db, club.deputy, club.club_id, ExportForm.JSON_LINES)
    assert await anext(pieces)
    await revoke_role(club.db, club.owner, club.club_id, club.roles["admin"], club.deputy.person_id)
    with pytest.raises(NotFound):
        await anext(pieces)


SECRETS = {
    "token": "x",
    "api_token": "x",
    "inviteToken": "x",
    "client_secret": "x",
    "password": "x",
    "code": "12345678",
    "key": "x",
    "workerKey": "x",
    "token_hash": "x",
    "Set-Cookie": "x",
}


@pytest.mark.parametrize("key", SECRETS)
def test_what_is_named_like_a_secret_is_not_kept(key: str) -> None:
    assert redacted({key: SECRETS[key], "deep": [{key: SECRETS[key]}]}) == {
        key: REDACTED,
        "deep": [{key: REDACTED}],
    }


@pytest.mark.parametrize(
    "secret",
    [new_token(), *(f"{kind}_{new_token()}" for kind in ("lc", "lck", "lca", "lcc")), "ab" * 32],
    ids=[
        "token",
        "API token",
        "worker key",
        "agent key",
        "claim secret",
        "hash",
    ],  # the same in every test process
)
def test_what_looks_like_a_secret_is_not_kept_wherever_it_stands(secret: str) -> None:
    for text in (secret, f"see https://club.example/invites/{secret}?x=1", f"({secret})"):
        assert secret not in str(redacted({"note": text}))
        assert REDACTED in str(redacted({"note": text}))


def test_ids_choices_and_names_are_kept_and_long_texts_cut() -> None:
    kept = {
        "role": str(new_id()),
        "kind": "person",
        "size": 3,
        "names": ["Ada", "Grace"],
        "is_on": True,
        "none": None,
    }
    assert redacted(kept) == kept
    assert len(redacted({"note": "word " * 500})["note"]) == TEXT_LENGTH
