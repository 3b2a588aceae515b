"""What every command needs: one way to run, one way to fail, one way to reach the database."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import wraps
from typing import IO, TYPE_CHECKING, Any, ParamSpec

import rich_click as click

from lastcall.cli.logs import set_up_logs
from lastcall.errors import Invalid, LastcallError, Unavailable
from lastcall.settings import Settings, load

if TYPE_CHECKING:
    from lastcall.db.database import Database
    from lastcall.deadlines.owner import Owner

P = ParamSpec("P")


def fail(error: LastcallError, status: int = 1) -> None:
    """Print the error's sentence and advice to stderr and leave with ``status``."""
    click.echo(f"lastcall: {error.sentence}", err=True)
    if error.advice:
        click.echo(f"  {error.advice}", err=True)
    sys.exit(status)


def command_body(body: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async command to its end, with the family's errors shown as sentences."""

    @wraps(body)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        set_up_logs()
        try:
            asyncio.run(body(*args, **kwargs))
        except LastcallError as error:
            fail(error)
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception as error:
            from lastcall.api.problems import database_trouble

            trouble = database_trouble(error)
            if trouble is None:
                raise
            fail(trouble)

    return run


async def write_lines(lines: AsyncIterator[bytes], path: str) -> None:
    """Write an export to the file, or to the terminal for ``-``. A refusal comes before the file is touched."""
    first = await anext(lines, b"")
    with opened_file(path, "wb") as file:
        file.write(first)
        async for line in lines:
            file.write(line)


def instant(text: str, field: str, advice: str) -> datetime:
    """A moment that was typed. Raises ``Invalid`` with ``advice`` for one without a zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Invalid("time_malformed", f"“{text[:100]}” is no time with a zone.", advice=advice, field=field)
    return found


@contextmanager
def opened_file(path: str, mode: str) -> Iterator[IO[Any]]:
    """The file to write to, or the terminal for ``-``. Raises ``Invalid`` for one that cannot be written."""
    try:
        file = click.open_file(path, mode, encoding=None if "b" in mode else "utf-8")
    except OSError as error:
        raise Invalid(
            "file_not_writable", f"{path} cannot be written: {error.strerror}.", advice="Choose another file."
        ) from error
    with file:
        yield file


@asynccontextmanager
async def database_address(
    settings: Settings, *, join_running: bool, lost: Callable[[], None] | None = None
) -> AsyncIterator[str]:
    """The address of this installation's database, which is started when it is the embedded one.

    ``join_running``: a command given while the server runs uses the server's database; a second server does
    not. ``lost`` is called when an embedded database that was started here has ended by itself.
    """
    from lastcall.db.embedded import EmbeddedServer, running_url

    running = settings.database_url or (running_url(settings.home) if join_running else None)
    if running is not None:
        yield running
        return
    async with EmbeddedServer(settings.home, settings.postgres_bin) as server:
        watching = asyncio.create_task(server.ended())
        if lost is not None:
            watching.add_done_callback(lambda ended: None if ended.cancelled() else lost())
        try:
            yield server.url
        finally:
            watching.cancel()


@asynccontextmanager
async def opened_database() -> AsyncIterator[Any]:
    """The database for one command; servers with the wake channel hear at its end what it changed.

    An embedded one is brought up to date on the way; any other is left alone, because others may be using it. What
    rooms hang on each other is in force, as in the server.
    """
    from lastcall.app import register
    from lastcall.db.database import Database
    from lastcall.db.migrations import current, head, migrate
    from lastcall.deadlines.wake import telling
    from lastcall.schema import SCHEMA

    register()
    settings = load()
    async with database_address(settings, join_running=True) as url:
        if settings.database_url is None:
            await migrate(url, SCHEMA)
        elif await current(url) != head():
            raise Unavailable(
                "database_behind",
                "The database does not have this version's tables.",
                advice="Run `lastcall db migrate` first.",
            )
        database = await Database.open(url, pool_size=2)
        try:
            async with telling(database):
                yield database
        finally:
            await database.close()


async def run_owner(owner: Owner) -> None:
    """All that is due for this owner now, not only for this club."""
    from lastcall.deadlines.owner import Failed, More, Stop

    stop = Stop()
    while isinstance(result := await owner.run_pass(stop), More):
        pass
    if isinstance(result, Failed):
        raise Unavailable(
            "work_unfinished",
            f"It is done, but some of its rows could not be worked on: {result.error}",
            advice="The server tries again by itself when it runs.",
        )


async def go_through(database: Database) -> None:
    """What an ended epoch left, and what depended on what ended: this process has no scheduler."""
    from lastcall.deadlines.paged import PagedOwner
    from lastcall.operations.owners.epochs import EndedEpochs
    from lastcall.operations.owners.fanout import Fanouts
    from lastcall.operations.signals import EPOCH_CLEANUP, FANOUT

    await run_owner(PagedOwner(EPOCH_CLEANUP, EndedEpochs(database)))
    await run_owner(PagedOwner(FANOUT, Fanouts(database)))
