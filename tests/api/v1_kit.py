"""The application in this process, and people's programs that call it with tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import httpx2
from litestar import Litestar
from tests.web.conftest import World, build_world

from lastcall.app import House, create_app
from lastcall.cli.server import bind, running_server
from lastcall.clubs.queries import roles_of
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.mail.mailer import Mailer
from lastcall.people.api_tokens import create_token
from lastcall.people.scopes import Scope
from lastcall.settings import Settings

URL = "http://localhost:8420"
SETTINGS = Settings()


@dataclass
class Program:
    """What calls the API, with one token or none."""

    client: httpx2.AsyncClient
    token: str | None

    async def __call__(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        sent["headers"] = headers | sent.get("headers", {})
        return await self.client.request(method, f"/api/v1{path}", **sent)


@dataclass
class Api:
    """The application over the world's database. ``club`` is its club's id as the API spells it."""

    world: World
    app: Litestar
    client: httpx2.AsyncClient
    unsent: Mailer

    @property
    def url(self) -> str:
        return str(self.client.base_url).rstrip("/")

    @property
    def club(self) -> str:
        return encode_id(self.world.club_id)

    async def token(
        self,
        name: str,
        scopes: Collection[Scope] | None = None,
        *,
        life: timedelta = timedelta(days=1),
        everything: bool = False,
    ) -> str:
        """A token of somebody of the world, with every scope they may have unless ``scopes`` says less.
        ``everything``: that of an operator too, whom the caller made one meanwhile.
        """
        actor = replace(self.world.actors[name], is_recent=True)
        actor = replace(actor, is_operator=actor.is_operator or everything)
        most = [scope for scope in Scope if scope is not Scope.OPERATOR or actor.is_operator]
        _, token = await create_token(self.world.db, self.unsent, actor, "test", scopes or most, life)
        return token

    async def program(self, name: str | None, scopes: Collection[Scope] | None = None) -> Program:
        return Program(self.client, await self.token(name, scopes) if name else None)

    async def role(self) -> str:
        """The id of a preset role that nobody holds."""
        async with self.world.db.read() as tx:
            return encode_id((await roles_of(tx, self.world.club_id))[0].id)


@asynccontextmanager
async def open_api(database: Database, settings: Settings = SETTINGS) -> AsyncIterator[Api]:
    app = create_app(House(settings, database))
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
    async with httpx2.AsyncClient(transport=transport, base_url=URL, timeout=30) as client:
        yield Api(await build_world(database), app, client, Mailer(database, None, URL))


@asynccontextmanager
async def serve_api(database: Database) -> AsyncIterator[Api]:
    """Like ``open_api``, behind a real server: ``client`` calls it on its port."""
    taken = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with (
        running_server(Settings(public_url=url), database, taken=taken) as server,
        httpx2.AsyncClient(base_url=url, trust_env=False, timeout=30) as client,
    ):
        app = cast("Litestar", server.config.app)
        yield Api(await build_world(database), app, client, Mailer(database, None, url))


def check(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document, after looking whether it is one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["detail"].endswith(".")
    return body
