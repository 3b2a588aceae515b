"""People of one club who are told things, and the mail server that takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg
from tests.decisions.conftest import Door

from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader
from lastcall.deadlines.owner import Done, Failed, More, Owner, Stop
from lastcall.decisions.deliveries.deliver import Message, ToPerson, deliver
from lastcall.decisions.deliveries.kinds import Kind, Words
from lastcall.decisions.deliveries.sending import deliveries_owner
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.mail.words import say
from lastcall.people.actor import Actor
from lastcall.people.preferences import Topic
from lastcall.people.service import add_person
from lastcall.testing.mail import MailSink

FROM = "Night Shift <lastcall@club.example>"
PUBLIC_URL = "https://lastcall.club.example"
OWNER = "attic@example.org"
TOPIC = Topic("test", "a test tells me")
KIND = Kind(
    "test.told",
    TOPIC,
    lambda told, _: Words(
        say("News"), say("Something happened in {club}.", club=told.club), say("Look"), "inbox"
    ),
)


async def tell(door: Door, dedup: str = "one", person_id: UUID | None = None) -> None:
    """Tell the club's owner, or that person, something once."""
    async with door.db.transaction() as tx:
        await deliver(
            tx, door.club_id, [ToPerson(person_id or door.owner.person_id)], Message("test.told", dedup)
        )


async def row(door: Door, channel: str = "mail") -> asyncpg.Record:
    """The one delivery by that channel."""
    found = await door.db.pool.fetchrow(
        "select * from deliveries where club_id = $1 and channel = $2", door.club_id, channel
    )
    assert found is not None
    return found


async def state(door: Door, channel: str = "mail") -> str:
    return str((await row(door, channel))["state"])


async def add_staff(door: Door, name: str, *permissions: str) -> Actor:
    """Somebody with a role that has these permissions, and a verified address."""
    actor = Actor(await add_person(door.db, f"{name}@example.org", name), name, is_operator=False)
    role_id = new_id()
    await door.db.pool.execute(
        "insert into staff_roles (club_id, id, name, permissions) values ($1, $2, $3, $4)",
        door.club_id,
        role_id,
        name,
        list(permissions),
    )
    await door.db.pool.execute(
        "insert into staff_assignments (club_id, id, role_id, person_id) values ($1, $2, $3, $4)",
        door.club_id,
        new_id(),
        role_id,
        actor.person_id,
    )
    await door.db.pool.execute("update people set email_verified_at = lastcall_now()")
    return actor


@asynccontextmanager
async def sending(door: Door, sink: MailSink) -> AsyncIterator[Owner]:
    """The owner of deliveries, with a mailer that hands over to ``sink``."""
    async with Mailer(door.db, mail_server(sink.url, FROM), PUBLIC_URL).running() as mailer:
        yield deliveries_owner(door.db, mailer)


async def passes(owner: Owner) -> Done | Failed:
    """Passes until nothing that is due is left."""
    while isinstance(result := await owner.run_pass(Stop()), More):
        pass
    assert isinstance(result, Done | Failed)
    return result


@dataclass
class Pager:
    """A channel that keeps what it is told to say; ``fails``: what it raises instead, once each."""

    people: set[UUID]
    name: str = "slack"
    said: list[tuple[UUID, str, str]] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)

    async def reaches(self, tx: Reader, club_id: UUID, person_ids: Collection[UUID]) -> Collection[UUID]:
        del tx, club_id
        return self.people.intersection(person_ids)

    async def send(self, db: Database, club_id: UUID, person_id: UUID, text: str, path: str) -> None:
        del db, club_id
        if self.fails:
            raise self.fails.pop(0)
        self.said.append((person_id, text, path))
