"""A wrong address is one clear sentence that never shows the password; a session has its limits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from lastcall.db import connect as connecting
from lastcall.db.connect import TimeLimits, connect
from lastcall.db.database import Database
from lastcall.errors import Invalid, LastcallError, Unavailable
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.proxy import CuttingProxy
from lastcall.testing.waiting import eventually


@pytest.fixture
async def tcp_url(database_url: str) -> AsyncIterator[str]:
    """The database over TCP on the loopback."""
    async with CuttingProxy(database_url) as proxy:
        yield proxy.url


async def refusal(url: str) -> LastcallError:
    with pytest.raises(LastcallError) as caught:
        await Database.open(url)
    assert caught.value.advice
    assert "secret" not in str(caught.value) + caught.value.advice
    assert caught.value.sentence.count(". ") == 0
    return caught.value


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://me:secret@db/club", "starts with 'mysql:'"),
        ("postgresql+asyncpg://me:secret@db/club", "starts with 'postgresql+asyncpg:'"),
        ("db.example/club", "has no 'postgresql://' in front"),
        ("", "has no 'postgresql://' in front"),
        ("postgresql:///club", "names no host"),
        ("postgresql://me:secret@db", "names no database"),
        ("postgresql://me:secret@db:port/club", "is no address"),
        ("postgresql://me:secret@[::1/club", "is no address"),
        ("postgresql://me:secret@127.0.0.1/club?sslmode=perhaps", "cannot be used"),
    ],
)
async def test_a_malformed_address_is_invalid_before_anything_is_dialled(url: str, sentence: str) -> None:
    error = await refusal(url)
    assert isinstance(error, Invalid)
    assert sentence in error.sentence


async def test_nothing_listening_there(tcp_url: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = await refusal(f"postgresql://me:secret@127.0.0.1:{port}/club")
    assert (error.code, error.status) == ("database_unreachable", 503)
    assert f"127.0.0.1:{port} cannot be reached" in error.sentence


async def test_a_socket_folder_without_a_server() -> None:
    error = await refusal("postgresql://me:secret@/club?host=/nonexistent")
    assert error.code == "database_unreachable"


async def test_a_host_that_does_not_exist() -> None:
    error = await refusal("postgresql://me:secret@nowhere.invalid/club")
    assert error.code in {"database_host_unknown", "database_unreachable"}


async def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "CONNECT_TIMEOUT", timedelta(seconds=1))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        error = await refusal(f"postgresql://me:secret@127.0.0.1:{port}/club?sslmode=disable")
    assert "did not answer in 1 seconds" in error.sentence


async def test_a_wrong_password_and_an_unknown_user(tcp_url: str) -> None:
    parts = urlsplit(tcp_url)
    for user in ("lastcall:secret", "nobody:secret"):
        error = await refusal(urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{parts.port}")))
        assert error.code == "database_sign_in_refused"


async def test_a_database_that_does_not_exist(tcp_url: str) -> None:
    error = await refusal(urlunsplit(urlsplit(tcp_url)._replace(path="/elsewhere")))
    assert error.code == "database_missing"
    assert "'elsewhere'" in error.sentence


async def test_tls_demanded_from_a_server_without_it(tcp_url: str) -> None:
    error = await refusal(tcp_url.replace("sslmode=disable", "sslmode=require"))
    assert error.code == "database_tls"


async def test_a_server_that_is_too_old(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "MINIMUM_MAJOR", 99)
    error = await refusal(database_url)
    assert (error.code, error.status) == ("database_too_old", 503)
    assert "needs 99 or newer" in error.sentence


async def test_a_full_server(database_url: str) -> None:
    connection = await connect(database_url)
    try:
        name = urlsplit(database_url).path.lstrip("/")
        await connection.execute(f"alter database {name} connection limit 0")
        await connection.execute("create role plain login password 'plain'")
        url = database_url.replace("//lastcall:", "//plain:plain@", 1).split("@", 2)
        error = await refusal("@".join((url[0], url[2])))
        assert error.code == "database_full"
    finally:
        await connection.execute("drop role plain")
        await connection.close()


async def test_both_spellings_of_the_scheme_and_a_socket_work(tcp_url: str, database_url: str) -> None:
    for url in (tcp_url.replace("postgresql:", "postgres:"), database_url):
        connection = await connect(url, application_name="lastcall test")
        assert await connection.fetchval("show timezone") == "UTC"
        assert await connection.fetchval("show application_name") == "lastcall test"
        await connection.close()


async def test_statements_see_what_was_committed_before_them_whatever_the_server_prefers(
    database: Database, database_url: str
) -> None:
    name = urlsplit(database_url).path.lstrip("/")
    await database.pool.execute(f"alter database {name} set default_transaction_isolation = 'serializable'")
    later = await Database.open(database_url)
    async with later.transaction() as tx:
        assert not await tx.raw.fetchval("select kill_switch from fleet_settings")
        await database.pool.execute("update fleet_settings set kill_switch = true")
        assert await tx.raw.fetchval("select kill_switch from fleet_settings")
    assert await later.pool.fetchval("show transaction_isolation") == "read committed"
    await later.close()


async def test_a_vanished_peer_is_noticed_on_tcp(tcp_url: str) -> None:
    connection = await connect(tcp_url)
    channel = connection._transport.get_extra_info("socket")
    assert channel.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert channel.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
    await connection.close()


@pytest.mark.postgres15
async def test_waiting_for_a_lock_ends_with_the_lock_limit(database: Database, database_url: str) -> None:
    hasty = await Database.open(database_url, limits=TimeLimits(lock=timedelta(milliseconds=300)))

    async def wait_for_it() -> None:
        async with hasty.transaction() as tx:
            await tx.raw.execute("lock table directory")

    async with database.transaction() as tx:
        await tx.raw.execute("lock table directory")
        waiting = asyncio.create_task(wait_for_it())
        await wait_until_blocked(database, "lock table directory", by=tx.raw.get_server_pid())
        with pytest.raises(asyncpg.LockNotAvailableError):
            await waiting
    await hasty.close()


async def test_a_statement_ends_with_the_statement_limit(database_url: str) -> None:
    hasty = await Database.open(database_url, limits=TimeLimits(statement=timedelta(milliseconds=50)))
    with pytest.raises(asyncpg.QueryCanceledError):
        await hasty.pool.execute("select pg_sleep(30)")
    await hasty.close()


async def test_a_transaction_left_idle_is_ended_and_the_pool_recovers(database_url: str) -> None:
    hasty = await Database.open(
        database_url, limits=TimeLimits(idle_in_transaction=timedelta(milliseconds=50)), pool_size=1
    )
    with pytest.raises(Unavailable, match="lost, and nothing was saved"):
        async with hasty.transaction() as tx:
            await eventually(tx.raw.is_closed)
            await tx.raw.execute("select 1")
    async with hasty.transaction() as tx:
        assert await tx.raw.fetchval("select 1") == 1
    await hasty.close()


async def test_limits_are_five_thirty_and_sixty_seconds(database: Database) -> None:
    for name, limit in (
        ("lock_timeout", "5s"),
        ("statement_timeout", "30s"),
        ("idle_in_transaction_session_timeout", "1min"),
    ):
        assert await database.pool.fetchval(f"show {name}") == limit
        async with database.read() as reader:
            assert await reader.raw.fetchval(f"show {name}") == limit


async def test_connections_that_died_in_the_pools_are_replaced(database: Database, database_url: str) -> None:
    async with database.transaction() as tx:
        first = tx.raw
        pid = tx.raw.get_server_pid()
    hot = await database.pool.fetchval("select pg_backend_pid()")
    killer = await connect(database_url)
    await killer.execute("select pg_terminate_backend($1), pg_terminate_backend($2)", pid, hot)
    await eventually(first.is_closed)
    async with database.transaction() as tx:
        assert await tx.raw.fetchval("select 1") == 1
    assert await database.pool.fetchval("select 1") == 1
    await killer.close()


async def test_waiting_for_a_connection_has_an_end(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lastcall.db.database.POOL_WAIT", 0.1)
    small = await Database.open(database_url, pool_size=1)

    async def second() -> None:
        async with small.transaction():
            pytest.fail("it began")

    async with small.transaction():
        with pytest.raises(Unavailable, match="were in use"):
            await asyncio.create_task(second())
    await small.close()


async def test_a_server_that_is_away_is_unavailable_and_not_a_traceback(database_url: str) -> None:
    async with CuttingProxy(database_url) as proxy:
        database = await Database.open(proxy.url)
    with pytest.raises(Unavailable, match="cannot be reached"):
        async with database.transaction():
            pytest.fail("it began")
    with pytest.raises(Unavailable, match="cannot be reached"):
        await database.pool.fetchval("select 1")
    await database.close()
