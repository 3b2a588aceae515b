"""``lastcall db``: the database's schema."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from lastcall.cli.running import command_body, database_address, go_through, opened_database, opened_file
from lastcall.settings import load


@click.group()
def db() -> None:
    """The database: bring it up to date, describe it."""


@db.command()
@command_body
async def migrate() -> None:
    """Bring the database up to this version. Safe to repeat."""
    from lastcall.db.migrations import current
    from lastcall.db.migrations import migrate as bring_up_to_date
    from lastcall.schema import SCHEMA

    async with database_address(load(), join_running=True) as url:
        await bring_up_to_date(url, SCHEMA)
        click.echo(f"The database is at {await current(url)}.")


@db.command()
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path), required=False)
@command_body
async def dump(file: Path | None) -> None:
    """Write the schema (no data) to FILE, or to the terminal."""
    from lastcall.db.dump import dump as schema_of

    async with opened_database() as database:
        text = await schema_of(database.url)
    with opened_file(str(file or "-"), "w") as output:
        output.write(text)


@db.command()
@click.confirmation_option(
    prompt="Unsent work will be cancelled and must be reviewed anew. Was the database restored from a backup?"
)
@command_body
async def restored() -> None:
    """Say that the database went back in time: connections start anew, and unsent work needs a new review."""
    from lastcall.connections.restored import restored as after_restore

    async with opened_database() as database:
        done = await after_restore(database, None)
        await go_through(database)
    many = "1 connection starts" if done.connections == 1 else f"{done.connections} connections start"
    click.echo(f"{many} a new epoch; unsent work needs a new review.")
