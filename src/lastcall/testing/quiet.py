"""Prove that nothing is sent to a database for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.testing.waiting import eventually

_CALLS = """
select s.queryid, sum(s.calls)::bigint as calls, min(s.query) as query
from pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = $1 group by s.queryid
"""


@asynccontextmanager
async def assert_quiet(database: Database, seconds: float) -> AsyncIterator[None]:
    """The body, then the rest of ``seconds``, and not one statement in ``database`` meanwhile.

    Two witnesses: the server's ``pg_stat_statements`` (every process on that database; asked from another
    one) and this process's own counter. ``AssertionError`` names the statements.
    """
    calls, sent = await calls_by_statement(database.url), database.statements
    end = asyncio.get_running_loop().time() + seconds
    yield
    await asyncio.sleep(max(0.0, end - asyncio.get_running_loop().time()))
    own = database.statements - sent
    later = await calls_by_statement(database.url)
    extra = {query: more for query, count in later.items() if (more := count - calls.get(query, 0))}
    assert not extra, f"statements in {seconds} quiet seconds: {extra}"
    assert own == 0, f"this process sent {own} statements in {seconds} quiet seconds"


REST = 2.0
"""Seconds without a statement after which a process counts as at rest."""


async def collector_settled(database: Database, *, within: float = 40.0) -> None:
    """Return once a collector has said hello to this server and nothing was sent to the database for ``REST``.

    ``AssertionError`` after ``within`` seconds for either.
    """
    loop = asyncio.get_running_loop()

    async def is_known() -> bool:
        return bool(await database.pool.fetchval("select exists (select from collectors)"))

    await eventually(is_known, within=within, message="no collector said hello")
    seen, since = database.statements, loop.time()

    def is_at_rest() -> bool:
        nonlocal seen, since
        if database.statements != seen:
            seen, since = database.statements, loop.time()
        return loop.time() - since >= REST

    await eventually(is_at_rest, within=within, message=f"no rest of {REST} seconds within {within}")


async def calls_by_statement(url: str) -> dict[str, int]:
    """How often each statement was executed in the database of ``url`` since the statistics began."""
    parts = urlsplit(url)
    connection = await connect(urlunsplit(parts._replace(path="/postgres")))
    try:
        await connection.execute("create extension if not exists pg_stat_statements")
        rows = await connection.fetch(_CALLS, parts.path.lstrip("/"))
    finally:
        await connection.close()
    return {f"{row['query']} [{row['queryid']}]": row["calls"] for row in rows}
