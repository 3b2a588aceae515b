"""A club is made, edited, paused, archived and brought back, each step once and in the open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.clubs.house import House, contend, fresh, person, stale

from lastcall.clubs import listeners
from lastcall.clubs.life import archive_club, delete_club, pause_club, resume_club, unarchive_club
from lastcall.clubs.listeners import ClubChange, on_club_changed
from lastcall.clubs.queries import ClubSettings, club_at, club_by_slug, club_settings, clubs_of, clubs_page
from lastcall.clubs.service import ClubFields, add_club, create_club, edit_club
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.actor import Actor

Step = Callable[[Database, Actor | None, UUID], Awaitable[ClubSettings]]


async def settings(club: House, who: Actor | None = None) -> ClubSettings:
    async with club.db.read() as tx:
        return await club_settings(tx, who, club.club_id)


def fields_of(seen: ClubSettings) -> ClubFields:
    return ClubFields(seen.name, seen.slug, seen.zone, seen.retention_days)


async def test_a_club_is_made_with_an_owner_who_is_added_when_unknown(db: Database) -> None:
    operator, guest = await person(db, "operator", operator=True), await person(db, "guest")
    mail = f"new-{fresh()}@example.org"
    first = await create_club(db, operator, "First", f"first-{fresh()}", "Europe/Berlin", mail)
    second = await create_club(db, None, "Second", f"second-{fresh()}", "UTC", mail.upper())
    assert (first.is_new_person, second.is_new_person) == (True, False)
    assert first.owner_id == second.owner_id
    with pytest.raises(NotAllowed):
        await create_club(db, guest, "Third", f"third-{fresh()}", "UTC", mail)
    unknown = f"other-{fresh()}@example.org"
    with pytest.raises(Invalid):
        await create_club(db, operator, "ad\u202emin", f"third-{fresh()}", "UTC", unknown)
    assert not await db.pool.fetchval("select count(*) from people where email = $1", unknown)


async def test_settings_are_edited_as_a_whole_and_by_one_at_a_time(club: House) -> None:
    seen = await settings(club, club.owner)
    wanted = ClubFields(" The  Cafe\u0301 ", f"cafe-{fresh()}", "Europe/Berlin", 30)
    lost = await contend(
        club.db,
        lambda: edit_club(club.db, club.owner, club.club_id, wanted, seen.updated_at),
        lambda: edit_club(club.db, club.owner, club.club_id, fields_of(seen), seen.updated_at),
    )
    assert isinstance(lost, Conflict)
    now = await settings(club, club.owner)
    assert lost.fresh == now
    assert fields_of(now) == replace(wanted, name="The Caf\u00e9")
    async with club.db.read() as tx:
        assert (await club_by_slug(tx, club.deputy, wanted.slug))[0].id == club.club_id
        with pytest.raises(NotFound):
            await club_by_slug(tx, club.deputy, club.slug)
    await add_club(club.db, None, "Elsewhere", club.slug, "UTC", club.guest.person_id)
    with pytest.raises(Conflict) as refused:
        await edit_club(
            club.db, club.owner, club.club_id, replace(fields_of(now), slug=club.slug), now.updated_at
        )
    assert refused.value.code == "slug_taken"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "\u200b"}, "name"),
        ({"slug": "Attic"}, "slug"),
        ({"zone": "Europe/Atlantis"}, "zone"),
        ({"retention_days": 0}, "retention_days"),
        ({"retention_days": 3651}, "retention_days"),
    ],
)
async def test_a_malformed_setting_is_refused_with_its_field(
    club: House, changes: dict[str, Any], field: str
) -> None:
    seen = await settings(club)
    with pytest.raises(Invalid) as refused:
        await edit_club(
            club.db, club.owner, club.club_id, replace(fields_of(seen), **changes), seen.updated_at
        )
    assert refused.value.field == field
    assert await settings(club) == seen


@pytest.fixture
def heard() -> Any:
    """What listeners were told, in this test."""
    changes: list[tuple[UUID, ClubChange]] = []

    async def listen(_: Transaction, club_id: UUID, change: ClubChange) -> None:
        changes.append((club_id, change))

    on_club_changed(listen)
    yield changes
    listeners._listeners.remove(listen)


@pytest.mark.clause("ACC-06")
async def test_each_step_moves_the_gate_is_logged_and_is_told_in_its_transaction(
    club: House, heard: list[tuple[UUID, ClubChange]]
) -> None:
    steps: list[tuple[Step, str, ClubChange]] = [
        (pause_club, "paused", ClubChange.PAUSED),
        (resume_club, "active", ClubChange.RESUMED),
        (pause_club, "paused", ClubChange.PAUSED),
        (archive_club, "archived", ClubChange.ARCHIVED),
        (unarchive_club, "active", ClubChange.UNARCHIVED),
    ]
    gate, before = await club.gate(), await settings(club)
    for number, (step, state, change) in enumerate(steps, 1):
        after = await step(club.db, club.owner, club.club_id)
        assert after.state == state
        assert after.updated_at > before.updated_at
        assert (after.paused_at is not None) == (state == "paused") == (after.pause_reason == "manual")
        assert (after.archived_at is not None) == (state == "archived")
        assert await club.gate() == gate + number
        assert (await club.actions())[-1] == f"club.{change}"
        assert heard[-1] == (club.club_id, change)
        before = after
    await edit_club(
        club.db, club.owner, club.club_id, replace(fields_of(before), retention_days=None), before.updated_at
    )
    assert heard[-1] == (club.club_id, ClubChange.RETENTION)


@pytest.mark.parametrize(
    ("state", "refused"),
    [
        ("active", (resume_club, unarchive_club)),
        ("paused", (pause_club, unarchive_club)),
        ("archived", (pause_club, resume_club, archive_club)),
    ],
)
async def test_a_step_leaves_only_the_states_it_may_leave(
    club: House, state: str, refused: tuple[Step, ...]
) -> None:
    if state != "active":
        await (pause_club if state == "paused" else archive_club)(club.db, club.owner, club.club_id)
    seen = await settings(club)
    for step in refused:
        with pytest.raises(Conflict) as conflict:
            await step(club.db, club.owner, club.club_id)
        assert (conflict.value.code, conflict.value.fresh) == ("club_state", seen)


async def test_a_listener_that_refuses_undoes_the_step(
    club: House, heard: list[tuple[UUID, ClubChange]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise Conflict("not_now", "Not now.")

    monkeypatch.setattr(listeners, "_listeners", [*listeners._listeners, refuse])
    before = await settings(club)
    with pytest.raises(Conflict, match="Not now"):
        await pause_club(club.db, club.owner, club.club_id)
    assert await settings(club) == before
    assert "club.paused" not in await club.actions()


async def test_who_may_change_the_life_of_a_club(club: House) -> None:
    operator = await person(club.db, "operator", operator=True)
    for who, error in ((club.deputy, NotAllowed), (club.guest, NotFound)):
        seen = await settings(club)
        attempts = [step(club.db, who, club.club_id) for step in (pause_club, archive_club)]
        attempts.append(edit_club(club.db, who, club.club_id, fields_of(seen), seen.updated_at))
        for attempt in attempts:
            with pytest.raises(error):
                await attempt
        async with club.db.read() as tx:
            with pytest.raises(error):
                await club_settings(tx, who, club.club_id)
    with pytest.raises(NotAllowed) as refused:
        await archive_club(club.db, stale(club.owner), club.club_id)
    assert refused.value.code == "step_up_needed"
    await pause_club(club.db, stale(club.owner), club.club_id)
    await archive_club(club.db, operator, club.club_id)
    await unarchive_club(club.db, None, club.club_id)
    async with club.db.read() as tx:
        with pytest.raises(NotFound):
            await club_settings(tx, operator, UUID(int=7))


async def test_a_club_is_deleted_only_when_archived_confirmed_and_by_a_person_who_is_there(
    club: House,
) -> None:
    async def attempt(who: Actor | None, slug: str = club.slug) -> str:
        try:
            await delete_club(club.db, who, club.club_id, confirm_slug=slug)
        except LastcallError as error:
            return error.code
        return "deleted"

    assert await attempt(club.owner) == "club_state"
    await archive_club(club.db, club.owner, club.club_id)
    assert await attempt(stale(club.owner)) == "step_up_needed"
    assert await attempt(club.deputy) == "owner_only"
    assert await attempt(club.guest) == "club_unknown"
    assert await attempt(club.owner, club.slug.upper()) == "slug_differs"
    assert await attempt(club.owner) == "deleted"
    assert await attempt(None) == "club_unknown"
    async with club.db.read() as tx:
        for who in (club.owner, club.deputy):
            assert await clubs_of(tx, who) == []
            with pytest.raises(NotFound):
                await club_by_slug(tx, who, club.slug)
        with pytest.raises(NotFound):
            await club_at(tx, club.slug)
        shown = await clubs_page(tx, None, search=club.slug.upper())
    assert [view.state for view in shown.clubs] == ["deleting"] or shown.clubs == ()
    held = "select count(*) from audit_log where action = 'club.deleted' and subject = $1::uuid::text"
    assert await club.run(held) == 1
    with pytest.raises(Conflict):
        await add_club(club.db, None, "Next", club.slug, "UTC", club.guest.person_id)


async def test_operators_page_through_every_club(db: Database) -> None:
    mark = fresh()
    owner = await person(db, "owner")
    made = [
        await add_club(db, None, f"Page {mark}_%", f"page-{fresh()}", "UTC", owner.person_id)
        for _ in range(5)
    ]
    found: list[UUID] = []
    after = None
    async with db.read() as tx:
        with pytest.raises(NotAllowed):
            await clubs_page(tx, owner)
        for _ in range(3):
            page = await clubs_page(tx, None, search=f"{mark}_%", after=after, limit=2)
            found += [view.id for view in page.clubs]
            after = page.next
        assert after is None
        assert (await clubs_page(tx, None, search=f"{mark}_x")).clubs == ()
    assert found == made[::-1]
