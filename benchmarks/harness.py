"""What every benchmark shares: a server with durable commits, pgbench as the baseline, figures with their limits.

Rules: each figure names its layer (SQL, service or HTTP), is the median of at least five runs interleaved with its
baseline in the same process and on the same server, and says its limit. A figure is a ratio wherever the machine's
speed would else decide.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from lastcall.db.connect import PATIENT, connect
from lastcall.db.database import Database
from lastcall.db.embedded import temporary_server
from lastcall.db.embedded.binaries import find_binaries
from lastcall.db.migrations import migrate
from lastcall.schema import SCHEMA

RUNS = 5

LARGE = {"autovacuum": "off", "max_wal_size": "8GB", "wal_level": "minimal", "max_wal_senders": "0"}
"""Settings of a server for fixtures of a million rows: nothing tidies up while something is measured."""


@dataclass(frozen=True)
class Figure:
    """One measured number. ``at_least`` or ``at_most`` is the limit; without either it is only shown."""

    name: str
    layer: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def held(self) -> bool:
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def limit(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}" if self.at_most is not None else ""


@dataclass
class Server:
    """A running PostgreSQL and where its programs lie."""

    url: str
    programs: Path

    def url_of(self, name: str) -> str:
        """Address of the database ``name`` on this server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    async def pgbench(self, script: str, *, clients: int, seconds: float) -> float:
        """Transactions a second of ``script``, prepared, with ``clients`` connections."""
        parts = urlsplit(self.url)
        query = parse_qs(parts.query)
        environment = {
            "PGHOST": query.get("host", [parts.hostname or ""])[0],
            "PGPORT": str(parts.port or query.get("port", ["5432"])[0]),
            "PGUSER": unquote(parts.username or ""),
            "PGPASSWORD": unquote(parts.password or ""),
            "PGDATABASE": parts.path.lstrip("/"),
        }
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(script)
            file.flush()
            process = await asyncio.create_subprocess_exec(
                str(self.programs / "pgbench"),
                *("-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2))),
                *("-T", str(max(1, round(seconds))), "-f", file.name),
                env=environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, errors = await process.communicate()
        found = re.search(rb"tps = ([\d.]+)", out)
        if process.returncode or not found:
            message = f"pgbench failed: {errors.decode(errors='replace').strip()}"
            raise RuntimeError(message)
        return float(found[1])


@asynccontextmanager
async def server(
    programs: Path | None = None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Server]:
    """A fresh server with ``fsync`` and ``synchronous_commit`` on, as the product runs it; nothing is left of it."""
    async with temporary_server(programs, settings) as running:
        yield Server(running.url, find_binaries(programs).folder)


@asynccontextmanager
async def database(on: Server, name: str | None = None) -> AsyncIterator[Database]:
    """The product's schema on that server, opened as the product opens it. ``name``: in a database of that name."""
    url = on.url
    if name is not None:
        await create(on, name)
        url = on.url_of(name)
    await migrate(url, SCHEMA)
    opened = await Database.open(url)
    try:
        yield opened
    finally:
        await opened.close()


async def create(on: Server, name: str, template: str = "template1") -> None:
    """A new database on that server, copied from ``template``, to which nobody may be connected."""
    connection = await connect(on.url_of("postgres"), limits=PATIENT)
    try:
        await connection.execute(f"create database {name} template {template} strategy file_copy")
    finally:
        await connection.close()


async def medians(
    subject: Callable[[], Awaitable[float]], baseline: Callable[[], Awaitable[float]], runs: int = RUNS
) -> tuple[float, float, float]:
    """Run both in turn, ``runs`` times; return (subject, baseline, ratio) as medians, the ratio taken pair by pair."""
    pairs = [(await subject(), await baseline()) for _ in range(runs)]
    ratio = statistics.median(a / b for a, b in pairs)
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs), ratio


async def alternating(
    subject: Callable[[], Awaitable[object]],
    baseline: Callable[[], Awaitable[object]],
    calls: int,
    runs: int = RUNS,
) -> tuple[float, float, float]:
    """Call both in turn, ``calls`` times a run; return (ratio, subject, baseline) as medians over the runs.

    The times are seconds of the median call of a run; a call is paired with one of the same moment, so that whatever
    else the machine does weighs on both.
    """
    await subject()
    await baseline()
    pairs = [await _one_run(subject, baseline, calls) for _ in range(runs)]
    ratio = statistics.median(a / b for a, b in pairs)
    return ratio, statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


async def _one_run(
    subject: Callable[[], Awaitable[object]], baseline: Callable[[], Awaitable[object]], calls: int
) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(calls):
        for call, taken in zip((subject, baseline), times, strict=True):
            began = time.perf_counter()
            await call()
            taken.append(time.perf_counter() - began)
    return statistics.median(times[0]), statistics.median(times[1])


ONE_ROW = "benchmark_rows"


async def one_row_table(db: Database, rows: int = 1000) -> None:
    """The table for pgbench's one-row commits: ``rows`` narrow rows, one updated a transaction."""
    await db.pool.execute(f"create table if not exists {ONE_ROW} (id int primary key, n int not null)")
    await db.pool.execute(
        f"insert into {ONE_ROW} select g, 0 from generate_series(1, $1::int) g on conflict do nothing", rows
    )


def one_row_update(rows: int = 1000) -> str:
    """pgbench's script: one row updated and committed."""
    return f"\\set id random(1, {rows})\nupdate {ONE_ROW} set n = n + 1 where id = :id;\n"
