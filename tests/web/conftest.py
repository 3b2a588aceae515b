"""The whole application behind a real server on a loopback port, a club with people of every standing,
and browsers.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx2
import pytest

from lastcall.cli.server import Server, bind, running_server
from lastcall.clubs.queries import roles_of
from lastcall.clubs.service import add_club
from lastcall.clubs.staff import assign_role
from lastcall.connections.accounts import NewKey
from lastcall.connections.connect import connect_club
from lastcall.connections.states import Feature
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.operations.schedules import Immediate, Schedule
from lastcall.operations.services.enqueue import Enqueued, enqueue
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.settings import Settings
from lastcall.testing.connecting import activate
from lastcall.testing.fleet import ready_account
from lastcall.testing.mail import MailSink
from lastcall.testing.staff import change_role

PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""The test server speaks plain http; reading the host's certificates anew for every visitor took most of the time."""
FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]+)"')


def user(number: int) -> str:
    """The id of a VRChat user that nobody is."""
    return f"usr_00000000-0000-4000-8000-{number:012d}"


ROLE = "grol_00000000-0000-4000-8000-000000000001"


@dataclass
class World:
    """A club with an owner, staff without any permission, a stranger who owns another club, and an
    operator.
    """

    db: Database
    club_id: UUID
    connection_id: UUID
    key: NewKey
    actors: dict[str, Actor]
    sessions: dict[str, str]

    async def queue(
        self, kind: str, numbers: range | list[int], schedule: Schedule | None = None, by: str = "owner"
    ) -> Enqueued:
        extra = {"roleId": ROLE} if kind == "assign_role" else {}
        return await enqueue(
            self.db,
            self.actors[by],
            self.club_id,
            encode_id(new_id()),
            [{"kind": kind, "targetUserId": user(number), **extra} for number in numbers],
            schedule or Immediate(),
        )


async def build_world(db: Database) -> World:
    actors: dict[str, Actor] = {}
    sessions: dict[str, str] = {}
    for name in ("owner", "staff", "stranger", "operator"):
        email = f"{name}@example.org"
        await add_person(db, email, name.capitalize(), operator=name == "operator")
        sessions[name], actors[name] = await redeem_sign_in_link(db, await make_sign_in_link(db, email))
    owner = actors["owner"]
    club_id = await add_club(db, None, "Night Shift", "night-shift", "Europe/Berlin", owner.person_id)
    await add_club(db, None, "Elsewhere", "elsewhere", "UTC", actors["stranger"].person_id)
    async with db.read() as tx:
        role = (await roles_of(tx, club_id))[-1]
    await change_role(db, owner, club_id, role.id, permissions=[])
    await assign_role(db, owner, club_id, role.id, actors["staff"].person_id)
    key = await ready_account(db, "porter", "usr_1")
    connection_id = await connect_club(
        db,
        None,
        club_id,
        group_id="grp_1",
        group_name="Night Shift",
        account_id=key.account_id,
        features=list(Feature),
    )
    await activate(db, club_id, connection_id)
    return World(db, club_id, connection_id, key, actors, sessions)


@dataclass
class Site:
    """The running server. ``restart`` stops it and starts another on the same port, over the same
    database.
    """

    settings: Settings
    database: Database
    server: Server
    url: str
    mail: MailSink
    restart: Callable[[], Any]
    stop: Callable[[], Any]


@pytest.fixture
async def world(database: Database) -> World:
    return await build_world(database)


@pytest.fixture
async def site(database: Database) -> AsyncIterator[Site]:
    taken = bind("127.0.0.1", 0)
    port = taken.getsockname()[1]
    mails = AsyncExitStack()
    sink = await mails.enter_async_context(MailSink())
    settings = Settings(
        port=port,
        public_url=f"http://127.0.0.1:{port}",
        mail_url=sink.url,
        mail_from="Lastcall <lastcall@club.example>",
    )
    stack = AsyncExitStack()
    server = await stack.enter_async_context(running_server(settings, database, taken=taken))

    async def stop() -> None:
        await stack.aclose()

    async def restart() -> None:
        await stack.aclose()
        running.server = await stack.enter_async_context(
            running_server(settings, database, taken=bind("127.0.0.1", port))
        )

    running = Site(settings, database, server, settings.public_url, sink, restart, stop)
    yield running
    await stack.aclose()
    await mails.aclose()


@dataclass
class Visitor:
    """A browser without scripts: keeps cookies, follows nothing by itself, and finds a page's form token."""

    client: httpx2.AsyncClient
    tokens: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, **kwargs: Any) -> httpx2.Response:
        return await self.client.get(path, **kwargs)

    async def token(self, path: str = "/sign-in") -> str:
        found = FORM_TOKEN.search((await self.client.get(path)).text)
        assert found is not None, f"no form on {path}"
        return found[1]

    async def post(
        self, path: str, fields: Mapping[str, str | list[str]] | None = None, *, token: str | None = None
    ) -> httpx2.Response:
        given = await self.token("/") if token is None else token
        return await self.client.post(path, data={"form_token": given, **(fields or {})})


@pytest.fixture
async def visit(site: Site, world: World) -> AsyncIterator[Callable[..., Visitor]]:
    """Open the site as somebody of the world, or as nobody."""
    async with AsyncExitStack() as stack:

        async def close(client: httpx2.AsyncClient) -> None:
            await client.aclose()

        def visit(name: str | None = None, session: str | None = None) -> Visitor:
            cookie = session or (world.sessions[name] if name else None)
            client = httpx2.AsyncClient(
                base_url=site.url,
                cookies={"lastcall": cookie} if cookie else {},
                trust_env=False,
                timeout=20,
                verify=PLAIN,
            )
            stack.push_async_callback(close, client)
            return Visitor(client)

        yield visit
