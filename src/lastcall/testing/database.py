"""pytest fixtures: a server for each test process, a migrated template, a database as new for each test.

Put ``pytest_plugins = ["lastcall.testing.database"]`` into the top ``conftest.py``.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg
import pytest

from lastcall.db.connect import Connection, connect
from lastcall.db.database import Database
from lastcall.db.embedded import EmbeddedServer, temporary_server
from lastcall.db.embedded.binaries import DISTRIBUTION, look_at
from lastcall.db.migrations import migrate
from lastcall.schema import SCHEMA
from lastcall.testing.clock import INSTALL, TestClock

FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "200",
}
"""A test server may lose everything when it is killed; tests that kill it start their own. The minimal log
makes copying the template four times as fast."""

OLDEST = DISTRIBUTION / "15" / "bin"
"""Debian's PostgreSQL 15, the floor, on which tests marked ``postgres15`` run as well where it is installed.
"""

CHEAP_SINCE = 16
"""The first version in which a role says how often its password is hashed; each sign-in hashes as often."""

_TEMPLATE = "lastcall_template"
_REUSE = Path(__file__).with_name("reuse.sql")
_numbers = itertools.count(1)


class TestServer:
    """A running server with a migrated template database on it.

    No database is dropped before the whole server is: copying and removing files is what tests would mostly
    do then (on ext4 a new file is sought among those removed lately, which took a third of the machine).
    """

    __test__ = False

    def __init__(self, server: EmbeddedServer, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self._loop = loop
        self._returned: list[str] = []
        self._janitors: dict[str, Connection] = {}

    def url_of(self, name: str) -> str:
        """Address of the database ``name`` on this server."""
        return urlunsplit(urlsplit(self.server.url)._replace(path=f"/{name}"))

    async def create(self, name: str | None = None, template: str | None = _TEMPLATE) -> str:
        """A new database, migrated unless ``template`` is ``None``; returns its address."""
        name = name or f"test_{os.getpid()}_{next(_numbers)}"
        source = template or "template1"
        await self.execute(f"create database {name} template {source} strategy file_copy")
        return self.url_of(name)

    def take(self) -> str:
        """Address of a migrated database that is as new: one that came back, else a copy of the template.

        Like ``give_back`` for fixtures that are no coroutines.
        """
        return self._returned.pop() if self._returned else self._loop.run_until_complete(self.create())

    def give_back(self, url: str) -> bool:
        """For the next one to take, unless a trace would stay in it (``reuse.sql``)."""
        return self._loop.run_until_complete(self._restore(url))

    async def _restore(self, url: str) -> bool:
        # The connection is kept, idle: a new one would plan all statements anew, which takes longer than they do.
        janitor = self._janitors.pop(url, None)
        if janitor is None or janitor.is_closed():
            janitor = await connect(url)
        try:
            is_restored = await janitor.fetchval("select lastcall_kept.restore()")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            is_restored = False  # A test cut every connection of its database, this one too.
        if is_restored:
            self._janitors[url] = janitor
            self._returned.append(url)
            return True
        janitor.terminate()
        return False

    async def close(self) -> None:
        """Let go of the databases that came back."""
        for janitor in self._janitors.values():
            await janitor.close()

    async def execute(self, statement: str) -> None:
        """Run a statement of the whole server."""
        connection = await connect(self.server.maintenance_url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked ``postgres15`` a second time, on the oldest server, where that is installed."""
    if (
        "postgres" not in metafunc.fixturenames
        or metafunc.definition.get_closest_marker("postgres15") is None
    ):
        return
    sources: list[Path | None] = [None]
    names = ["newest"]
    if look_at(OLDEST) is not None:
        sources.append(OLDEST)
        names.append("15")
    metafunc.parametrize("postgres_bin", sources, ids=names, scope="session", indirect=True)


@pytest.fixture(scope="session")
def postgres_bin(request: pytest.FixtureRequest) -> Path | None:
    """Folder of the server's programs; ``None`` is the wheel's."""
    folder: Path | None = getattr(request, "param", None)
    return folder


@pytest.fixture(scope="session")
def postgres_servers() -> Iterator[Callable[[Path | None], TestServer]]:
    """The servers of this test process, each started when it is first asked for."""
    loop = asyncio.new_event_loop()  # the tests' loops are left alone
    stack = AsyncExitStack()
    servers: dict[Path | None, TestServer] = {}

    def get(folder: Path | None) -> TestServer:
        if folder not in servers:
            servers[folder] = loop.run_until_complete(stack.enter_async_context(_test_server(folder, loop)))
        return servers[folder]

    yield get
    loop.run_until_complete(stack.aclose())
    loop.close()


@pytest.fixture
def postgres(postgres_bin: Path | None, postgres_servers: Callable[[Path | None], TestServer]) -> TestServer:
    """The server that this test uses."""
    return postgres_servers(postgres_bin)


@pytest.fixture
async def empty_database_url(postgres: TestServer) -> str:
    """Address of a database of this test's own with nothing in it."""
    return await postgres.create(template=None)


@pytest.fixture
def database_url(postgres: TestServer) -> Iterator[str]:
    """Address of a migrated database of this test's own, as new, with a clock that the test sets."""
    url = postgres.take()
    yield url
    postgres.give_back(url)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """That database, opened."""
    database = await Database.open(database_url)
    yield database
    await database.close()


@pytest.fixture(scope="module")
def shared_url(postgres_servers: Callable[[Path | None], TestServer]) -> Iterator[str]:
    """Address of a migrated database that the tests of one module share: each keeps to clubs of its own."""
    server = postgres_servers(None)
    url = server.take()
    yield url
    server.give_back(url)


@pytest.fixture
async def db(shared_url: str) -> AsyncIterator[Database]:
    """That database, opened."""
    database = await Database.open(shared_url)
    yield database
    await database.close()


@pytest.fixture
def test_clock(database_url: str) -> TestClock:
    """The clock of that database."""
    return TestClock(database_url)


@asynccontextmanager
async def _test_server(bin_dir: Path | None, loop: asyncio.AbstractEventLoop) -> AsyncIterator[TestServer]:
    async with temporary_server(bin_dir, FAST) as server:
        test_server = TestServer(server, loop)
        await _make_sign_in_cheap(server.maintenance_url)
        url = await test_server.create(_TEMPLATE, template=None)
        await migrate(url, SCHEMA)
        connection = await connect(url)
        await connection.execute(INSTALL)
        await connection.execute(_REUSE.read_text(encoding="utf-8"))
        await connection.execute("call lastcall_kept.keep()")
        await connection.close()
        yield test_server
        await test_server.close()


async def _make_sign_in_cheap(url: str) -> None:
    """The same password, hashed once and not 4096 times: tests connect all the time, and both sides hash."""
    connection = await connect(url)
    try:
        if connection.get_server_version().major >= CHEAP_SINCE:
            password = unquote(urlsplit(url).password or "")
            await connection.execute("set scram_iterations = 1")
            await connection.execute(f"alter role current_user password '{password}'")
    finally:
        await connection.close()
