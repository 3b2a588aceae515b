"""Whoever was blocked, recovered or relieved while their call waited is refused, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from tests.clubs.house import House, contend, open_house, overtake, person

from lastcall.app import register
from lastcall.clubs.life import archive_club, pause_club
from lastcall.clubs.ownership import transfer_club
from lastcall.clubs.service import create_club
from lastcall.connections.switches import set_fleet_switch
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import NotAllowed, NotSignedIn
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.people import account, api_tokens, holding
from lastcall.people.account import rename, request_sign_in
from lastcall.people.actor import Actor
from lastcall.people.api_tokens import actor_of_token, create_token, revoke_token
from lastcall.people.identities import remove_identity
from lastcall.people.links import Purpose, make_link
from lastcall.people.passkeys import remove_passkey
from lastcall.people.recovery import move_person, recover_person
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person, block_person, set_operator
from lastcall.people.sessions import Browser, Way, end_other_sessions, end_session_by_id, open_session
from lastcall.people.sign_in import redeem_sign_in_code, redeem_sign_in_link
from lastcall.people.tables import Person
from lastcall.people.tokens import code_of
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.mail import MailSink

Act = Callable[[Database, Actor], Awaitable[Any]]


def mailer(db: Database) -> Mailer:
    return Mailer(db, None, "http://localhost")


async def email_of(db: Database, who: Actor) -> str:
    email: str = await db.pool.fetchval("select email from people where id = $1", who.person_id)
    return email


async def signed_in(db: Database) -> Actor:
    who = await person(db, "sam")
    async with db.transaction() as tx:
        _, session_id = await open_session(tx, who.person_id, Way.LINK, Browser())
    return replace(who, session_id=session_id)


async def recover(db: Database, who: Actor) -> None:
    await recover_person(db, mailer(db), await email_of(db, who))


async def token(db: Database, who: Actor) -> None:
    await create_token(db, mailer(db), who, "hidden", {Scope.READ}, timedelta(days=1))


ENDS: dict[str, Act] = {
    "blocked": lambda db, who: block_person(db, None, who.person_id),
    "recovered": recover,
}


async def passkey_gone(db: Database, who: Actor) -> None:
    await remove_passkey(db, who, new_id())


ACTS: dict[str, Act] = {
    "a new token": token,
    "a new name": lambda db, who: rename(db, who, "Hidden"),
    "a passkey's removal": passkey_gone,
    "a linked account's removal": lambda db, who: remove_identity(db, who, new_id()),
    "a token's revocation": lambda db, who: revoke_token(db, who, new_id()),
    "the end of another session": lambda db, who: end_session_by_id(db, who, new_id()),
    "the end of all others": end_other_sessions,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("act", ACTS)
async def test_a_change_to_an_account_that_ended_meanwhile_is_refused(
    db: Database, act: str, end: str
) -> None:
    register()
    who = await signed_in(db)
    outcome = await contend(db, lambda: ENDS[end](db, who), lambda: ACTS[act](db, who))
    assert isinstance(outcome, NotSignedIn), outcome
    tokens = await db.pool.fetchval("select count(*) from api_tokens where person_id = $1", who.person_id)
    name = await db.pool.fetchval("select display_name from people where id = $1", who.person_id)
    assert (tokens, name != "Hidden") == (0, True)


async def test_twin_without_holding_the_actor_a_token_outlives_the_recovery(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        pass

    who = await signed_in(db)
    monkeypatch.setattr(api_tokens, "hold_actor", nothing)
    await overtake(db, lambda: recover(db, who), lambda: token(db, who))
    assert await db.pool.fetchval("select count(*) from api_tokens where revoked_at is null") == 1


async def by_token(db: Database, who: Actor) -> tuple[Actor, UUID]:
    scopes = frozenset(Scope) - (set() if who.is_operator else {Scope.OPERATOR})
    token_id, secret = await create_token(db, mailer(db), who, "program", scopes, timedelta(days=1))
    actor = await actor_of_token(db, secret)
    assert actor is not None
    return actor, token_id


TOKEN_ACTS: dict[str, Callable[[House, Actor], Awaitable[Any]]] = {
    "account": lambda club, who: rename(club.db, who, "Hidden"),
    "club": lambda club, who: pause_club(club.db, who, club.club_id),
    "operator": lambda club, who: add_person(club.db, "c@example.org", "C", actor=who),
}


async def revoked_while_waiting(db: Database, act: str) -> Any:
    """A call by a token begins, and comes to wait for a row that it needs; then the token is revoked."""
    club = await open_house(db)
    who = await person(db, "op", operator=True) if act == "operator" else club.owner
    program, token_id = await by_token(db, who)
    async with db.transaction() as tx:
        await tx.raw.execute("select from people where id = $1 for no key update", who.person_id)
        await tx.raw.execute("select from club_gates where club_id = $1 for no key update", club.club_id)
        call = asyncio.ensure_future(TOKEN_ACTS[act](club, program))
        await wait_until_blocked(db, "", by=tx.raw.get_server_pid())
        await revoke_token(db, who, token_id)
    return (await asyncio.gather(call, return_exceptions=True))[0]


@pytest.mark.parametrize("act", TOKEN_ACTS)
async def test_a_call_that_waits_while_its_token_is_revoked_is_refused(db: Database, act: str) -> None:
    register()
    outcome = await revoked_while_waiting(db, act)
    assert isinstance(outcome, NotSignedIn), outcome
    assert outcome.code == "token_refused"


async def test_twin_without_the_second_look_at_the_token_the_call_goes_through(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(holding, "require_token_now", nothing)
    assert await revoked_while_waiting(db, "account") is None


OPERATES: dict[str, Callable[[House, Actor], Awaitable[Any]]] = {
    "archive a club": lambda club, who: archive_club(club.db, who, club.club_id),
    "give a club away": lambda club, who: transfer_club(club.db, who, club.club_id, who.person_id),
    "add a club": lambda club, who: create_club(
        club.db, who, "Mine", f"{club.slug}-2"[-40:], "UTC", "a@example.org"
    ),
    "add a person": lambda club, who: add_person(club.db, "b@example.org", "B", actor=who),
    "stop everything": lambda club, who: set_fleet_switch(club.db, who, is_on=True),
}


@pytest.mark.parametrize("act", OPERATES)
async def test_an_operator_who_was_relieved_meanwhile_is_refused(db: Database, act: str) -> None:
    register()
    club, who = await open_house(db), await person(db, "op", operator=True)
    outcome = await contend(
        db,
        lambda: set_operator(db, None, who.person_id, is_operator=False),
        lambda: OPERATES[act](club, who),
    )
    assert isinstance(outcome, NotAllowed), outcome
    assert await club.run("select state || (owner_id = $2) from clubs where id = $1", who.person_id) == (
        "activefalse"
    )


async def link_for(db: Database, who: Actor, here: Browser) -> str:
    async with db.transaction() as tx:
        return await make_link(tx, Purpose.SIGN_IN, person_id=who.person_id, browser_key=here.key)


REDEEMS: dict[str, Callable[[Database, str, Browser], Awaitable[Any]]] = {
    "link": redeem_sign_in_link,
    "code": lambda db, token, here: redeem_sign_in_code(db, code_of(token), here),
}


@pytest.mark.parametrize("way", REDEEMS)
async def test_signing_in_and_being_blocked_at_once_wait_for_each_other_in_one_order(
    db: Database, way: str
) -> None:
    register()
    who, here = await person(db, "sam"), Browser(key="browser", source=way)
    token = await link_for(db, who, here)

    async with db.transaction() as tx:
        # As a block begins: it has the person, and comes to their links next.
        await tx.raw.execute("select from people where id = $1 for no key update", who.person_id)
        redeeming = asyncio.ensure_future(REDEEMS[way](db, token, here))
        await wait_until_blocked(db, "people", by=tx.raw.get_server_pid())
        await block_person(db, None, who.person_id)
    outcome = (await asyncio.gather(redeeming, return_exceptions=True))[0]
    assert isinstance(outcome, NotSignedIn), outcome
    assert await sessions_of(db, who.person_id) == 0


async def sessions_of(db: Database, person_id: UUID) -> int:
    count: int = await db.pool.fetchval("select count(*) from sessions where person_id = $1", person_id)
    return count


async def mailed_while_moving(db: Database, who: Actor, *, holds: bool) -> tuple[int, int]:
    """A sign-in mail is asked for while the person is moved to another address, not yet committed: how many mails
    went to the old one, and how many rows name it or would sign in from it."""
    old = await email_of(db, who)
    async with MailSink() as sink:
        sending = Mailer(db, mail_server(sink.url, "lastcall@club.example"), "http://localhost")
        async with sending.running(), db.transaction() as tx:
            await move_person(db, mailer(db), old, f"new-{old}")
            await request_sign_in(db, sending, old, Browser(key="browser", source=old))
            if holds:
                await wait_until_blocked(db, "people", by=tx.raw.get_server_pid())
            else:
                await sink.mail_to(old)
        count = "select count(*) from outgoing_mail where address = $1"
        links = "select count(*) from sign_in_links where person_id = $1 and used_at is null"
        rows = await db.pool.fetchval(count, old) + await db.pool.fetchval(links, who.person_id)
        return len(sink.received), rows


async def test_who_moves_or_is_erased_meanwhile_has_nothing_sent_to_the_address_that_was_theirs(
    db: Database,
) -> None:
    assert await mailed_while_moving(db, await person(db, "sam"), holds=True) == (0, 0)


async def test_twin_without_holding_them_the_old_address_is_written_down_and_gets_a_link_that_works(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unheld(email: str) -> Any:
        return select(Person.id, Person.email, Person.display_name, Person.blocked_at).where(
            Person.email == email
        )

    monkeypatch.setattr(account, "person_to_mail", unheld)
    assert await mailed_while_moving(db, await person(db, "sam"), holds=False) == (1, 2)
