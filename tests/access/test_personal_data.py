"""A person's data is handed out whole and alone, and goes for good: from every table, while they are signed in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.access.conftest import Door, email_of, fresh, open_door, person

from lastcall.access.acceptance import accept_invite
from lastcall.access.invites import renew_invite, revoke_invite
from lastcall.access.queries import invites_page
from lastcall.app import register
from lastcall.clubs.export import export_club
from lastcall.clubs.ownership import transfer_club
from lastcall.clubs.service import add_club
from lastcall.clubs.tables import Club, tables_of_clubs
from lastcall.db.base import Base
from lastcall.db.bus import CacheDrop
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, NotAllowed, NotFound, NotSignedIn
from lastcall.mail.mailer import Mailer
from lastcall.people import erasing
from lastcall.people.actor import Actor
from lastcall.people.api_tokens import actor_of_token, create_token
from lastcall.people.erasing import erase_person, export_person
from lastcall.people.personal_data import ERASED_NAME, sources
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person
from lastcall.people.sessions import actor_of_session
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.testing.locks import wait_until_blocked


@pytest.fixture(autouse=True)
def registered() -> None:
    register()


DAY = timedelta(days=1)


def no_mail(db: Database) -> Mailer:
    return Mailer(db, None, "http://localhost")


async def signed_in(db: Database, who: Actor) -> tuple[str, Actor]:
    return await redeem_sign_in_link(db, await make_sign_in_link(db, await email_of(db, who)))


async def text_of(lines: AsyncIterator[bytes]) -> str:
    return b"".join([line async for line in lines]).decode()


async def mentions(db: Database, needle: str) -> list[str]:
    """The tables in which some row says this, wherever in it: what a dump would show."""
    says = "select exists (select from {} t where position(lower($1) in lower(t::text)) > 0)"
    names = [table.name for table in Base.metadata.sorted_tables]
    return [name for name in names if await db.pool.fetchval(says.format(name), needle)]


POINTS_AT_PEOPLE_WITHOUT_SAYING_SO = {"activity_log.actor_id"}


def test_every_column_that_points_at_a_person_is_answered_for_once() -> None:
    pointing = {
        f"{table.name}.{column.name}"
        for table in Base.metadata.sorted_tables
        for column in table.columns
        if any(key.target_fullname == "people.id" for key in column.foreign_keys)
    }
    answered = [column for source in sources() for column in source.columns]
    assert len(answered) == len(set(answered))
    assert set(answered) - {"people.id"} == pointing | POINTS_AT_PEOPLE_WITHOUT_SAYING_SO
    erased_with_another = {"passkey", "account at a provider", "API token", "profile"}
    assert {
        source.name for source in sources() if source.erase is None and not source.kept
    } == erased_with_another


async def lived_in(db: Database, door: Door, who: Actor) -> str:
    """Give somebody a trace in as many places as one step each makes; answers a session of theirs."""
    await accept_invite(db, who, (await door.invite(email=await email_of(db, who))).token)
    second = await open_door(db)
    await accept_invite(db, who, (await second.invite(approves=False)).token)
    session, actor = await signed_in(db, who)
    await create_token(db, no_mail(db), actor, f"{who.display_name} bot", {Scope.READ}, DAY)
    await db.pool.execute(
        "insert into outgoing_mail (id, kind, address) values (gen_random_uuid(), 'sign_in', $1)",
        (await email_of(db, who)).upper(),
    )
    return session


async def test_an_export_is_whole_and_of_nobody_else(db: Database, door: Door) -> None:
    other = await person(db, "somebodyelse")
    await lived_in(db, door, other)
    session = await lived_in(db, door, door.guest)
    exported = await text_of(export_person(db, door.guest, door.guest.person_id))
    rows = [json.loads(line) for line in exported.splitlines()]
    assert {
        "profile",
        "session",
        "sign-in link",
        "API token",
        "mail",
        "role in a club",
        "invitation you used",
        "join request",
        "audit entry",
        "what you did in a club",
    } <= {row["what"] for row in rows}
    assert await email_of(db, door.guest) in exported
    assert session not in exported
    for stranger in (other, door.owner, door.deputy):
        for about in (await email_of(db, stranger), encode_id(stranger.person_id), str(stranger.person_id)):
            assert about not in exported
    hashes = await db.pool.fetch(
        "select encode(token_hash, 'hex') as hex from sessions union all"
        " select encode(token_hash, 'hex') from invites union all"
        " select encode(token_hash, 'hex') from api_tokens union all"
        " select encode(token_hash, 'hex') from sign_in_links"
    )
    assert len(hashes) > 5
    assert [row for row in hashes if row["hex"] in exported] == []


async def test_a_page_that_is_full_is_followed_by_the_next(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lived_in(db, door, door.guest)
    whole = await text_of(export_person(db, None, door.guest.person_id))
    monkeypatch.setattr("lastcall.people.personal_data.PAGE", 1)
    in_pages = await text_of(export_person(db, None, door.guest.person_id))
    # Two more are there by then: each export is in the audit itself.
    assert len(in_pages.splitlines()) == len(whole.splitlines()) + 1


async def test_only_the_person_and_operators_may(db: Database, door: Door) -> None:
    _, guest = await signed_in(db, door.guest)
    with pytest.raises(NotFound):
        await text_of(export_person(db, door.deputy, door.guest.person_id))
    with pytest.raises(NotFound):
        await erase_person(db, door.owner, door.guest.person_id)
    stale = Actor(guest.person_id, guest.display_name, is_operator=False, session_id=guest.session_id)
    with pytest.raises(NotAllowed) as refused:
        await erase_person(db, stale, guest.person_id)
    assert refused.value.code == "step_up_needed"
    token = Actor(guest.person_id, "x", is_operator=False, scopes=frozenset(Scope))
    with pytest.raises(NotAllowed):
        await erase_person(db, token, guest.person_id)
    assert await actor_of_session(db, (await signed_in(db, door.guest))[0]) is not None


async def test_an_erased_person_is_in_no_table_by_name_or_address_and_out_everywhere(
    db: Database, door: Door
) -> None:
    name = f"Nightjar {fresh()}"
    email = f"{fresh()}@example.org"
    who = Actor(await add_person(db, email, name), name, is_operator=False)
    await db.pool.execute("update people set email_verified_at = lastcall_now() where id = $1", who.person_id)
    elsewhere = await lived_in(db, door, who)
    invite = await db.pool.fetchval(
        "select invite_id from invite_uses where club_id = $1 and person_id = $2", door.club_id, who.person_id
    )
    here, actor = await signed_in(db, who)
    _, token = await create_token(db, no_mail(db), actor, name, {Scope.READ}, DAY)
    asked = await make_sign_in_link(db, email)
    assert set(await mentions(db, email)) >= {"people", "invites", "join_requests", "outgoing_mail"}
    dropped: list[CacheDrop] = []
    db.bus.subscribe(CacheDrop, dropped.append)

    await erase_person(db, actor, who.person_id)

    assert await mentions(db, email) == []
    assert await mentions(db, name) == []
    for session in (here, elsewhere):
        assert await actor_of_session(db, session) is None
    assert len([drop for drop in dropped if drop.cache == "session"]) == 2, "open streams are told"
    assert await actor_of_token(db, token) is None
    with pytest.raises(NotSignedIn):
        await redeem_sign_in_link(db, asked)
    assert await door.held_by(who) == set()
    requests = await db.pool.fetch(
        "select status, archive_due_at from join_requests where person_id = $1 order by id", who.person_id
    )
    assert [row["status"] for row in requests] == ["approved", "withdrawn"]
    assert [row["archive_due_at"] for row in requests] == [None, None]
    # Who did what stays true, by the id alone.
    assert (
        await db.pool.fetchval("select person_id from invite_uses where invite_id = $1", invite)
        == who.person_id
    )
    row = await db.pool.fetchrow("select * from people where id = $1", who.person_id)
    assert (row["display_name"], row["email_verified_at"]) == (ERASED_NAME, None)
    await erase_person(db, None, who.person_id)


async def test_an_invitation_for_an_address_lets_in_nobody_else_once_that_is_erased(
    db: Database, door: Door
) -> None:
    email = await email_of(db, door.guest)
    invite = await door.invite(email=email)
    ended = await door.invite(email=email.upper())
    await revoke_invite(db, door.owner, door.club_id, ended.id)
    await erase_person(db, None, door.guest.person_id)
    stranger = await person(db, "stranger")
    with pytest.raises(NotFound):
        await accept_invite(db, stranger, invite.token)
    for one in (invite, ended):
        with pytest.raises(Conflict) as refused:
            await renew_invite(db, door.owner, door.club_id, one.id)
        assert refused.value.code == "invite_address_forgotten"
    assert await door.requests() == []
    async with db.read() as tx:
        page = await invites_page(tx, door.owner, door.club_id)
    assert [(one.state, one.email) for one in page.invites] == [("revoked", None)] * 2


async def test_an_erased_persons_address_is_free_for_somebody_new(db: Database, door: Door) -> None:
    email = await email_of(db, door.guest)
    await accept_invite(db, door.guest, (await door.invite()).token)
    await erase_person(db, None, door.guest.person_id)
    anew = await add_person(db, email, "Somebody new")
    assert anew != door.guest.person_id
    _, actor = await redeem_sign_in_link(db, await make_sign_in_link(db, email))
    assert actor.person_id == anew
    assert await door.held_by(actor) == set()


async def test_an_owner_is_told_which_clubs_and_the_last_operator_stays(db: Database, door: Door) -> None:
    with pytest.raises(Conflict, match=f"The {door.slug}"):
        await erase_person(db, None, door.owner.person_id)
    await db.pool.execute("update people set is_operator = false")
    last, other = await person(db, "last"), await person(db, "other")
    await db.pool.execute("update people set is_operator = true where id = $1", last.person_id)
    with pytest.raises(Conflict, match="Nobody else"):
        await erase_person(db, None, last.person_id)
    await db.pool.execute("update people set is_operator = true where id = $1", other.person_id)
    outcomes = await asyncio.gather(
        *(erase_person(db, None, who.person_id) for who in (last, other)), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "NoneType"]


async def test_twin_without_the_operators_lock_both_leave(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, other = await person(db, "last"), await person(db, "other")
    await db.pool.execute("update people set is_operator = false")
    await db.pool.execute(
        "update people set is_operator = true where id = any ($1)", [last.person_id, other.person_id]
    )
    both_looked = asyncio.Barrier(2)
    look = erasing._is_erased

    async def look_together(tx: Any, person_id: UUID) -> bool:
        answer = await look(tx, person_id)
        await both_looked.wait()
        return answer

    async def no_lock(*_: object) -> None:
        return None

    monkeypatch.setattr(erasing, "_is_erased", look_together)
    monkeypatch.setattr(erasing, "_lock", no_lock)
    await asyncio.gather(*(erase_person(db, None, who.person_id) for who in (last, other)))
    assert await db.pool.fetchval("select count(*) from people where is_operator") == 0


async def test_a_person_who_is_let_in_while_they_are_erased_stays_out(db: Database, door: Door) -> None:
    invite = await door.invite()
    async with db.transaction() as tx:
        # The acceptance is held at the person's row, behind the erasure's.
        await erasing._lock(tx, door.guest.person_id)
        accepting = asyncio.create_task(accept_invite(db, door.guest, invite.token))
        await wait_until_blocked(db, "from people", by=tx.raw.get_server_pid())
        await tx.raw.execute(
            "update people set blocked_at = lastcall_now(), erased_at = lastcall_now() where id = $1",
            door.guest.person_id,
        )
    with pytest.raises(NotSignedIn):
        await accepting
    assert await door.held_by(door.guest) == set()


async def test_an_erasure_waits_for_no_call_that_removes_an_old_key_and_waits_for_a_gate(
    db: Database, door: Door
) -> None:
    await db.pool.execute(
        "insert into idempotency_keys (person_id, key, digest) values ($1, 'key-of-old', sha256('x'))",
        door.guest.person_id,
    )
    async with db.transaction() as tx:
        await tx.raw.execute(
            "delete from idempotency_keys where person_id = $1", door.guest.person_id
        )  # as any call sweeps
        await asyncio.wait_for(asyncio.ensure_future(erase_person(db, None, door.guest.person_id)), 10)
    assert await db.pool.fetchval("select count(*) from idempotency_keys") == 0


async def test_a_clubs_export_ends_where_its_reader_owns_it_no_more(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lastcall.clubs.export.PAGE", 1)
    lines = export_club(db, door.owner, door.club_id)
    first = json.loads(await anext(lines))
    assert first["table"] == "clubs"
    await transfer_club(db, None, door.club_id, door.guest.person_id)
    with pytest.raises(NotFound):
        await text_of(lines)


async def test_a_clubs_export_is_whole_and_of_no_other_club(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = await open_door(db)
    for club in (door, elsewhere):
        await accept_invite(db, club.guest, (await club.invite()).token)
        await accept_invite(db, await person(db, "waiting"), (await club.invite(approves=False)).token)
    monkeypatch.setattr("lastcall.clubs.export.PAGE", 2)
    exported = await text_of(export_club(db, door.owner, door.club_id))
    rows = [json.loads(line) for line in exported.splitlines()]
    for table in (Club.__table__, *tables_of_clubs()):
        column = "id" if table.name == "clubs" else "club_id"
        expected = await db.pool.fetchval(
            f"select count(*) from {table.name} where {column} = $1", door.club_id
        )
        assert len([row for row in rows if row["table"] == table.name]) == expected, table.name
    assert len([row for row in rows if row["table"] == "join_requests"]) == 2
    for mark in (elsewhere.slug, encode_id(elsewhere.club_id), encode_id(elsewhere.guest.person_id)):
        assert mark not in exported
    hashes = await db.pool.fetch("select encode(token_hash, 'hex') as hex from invites")
    assert [row for row in hashes if row["hex"] in exported] == []
    for nobody in (door.deputy, door.guest):
        with pytest.raises(NotAllowed):
            await text_of(export_club(db, nobody, door.club_id))
    with pytest.raises(NotFound):
        await text_of(export_club(db, elsewhere.owner, door.club_id))
    assert await text_of(export_club(db, None, elsewhere.club_id)) != ""
    await add_club(db, None, "Empty", f"empty-{fresh()}", "UTC", door.owner.person_id)
