"""``lastcall club``: clubs and their owners."""

from __future__ import annotations

import rich_click as click

from lastcall.cli.running import command_body, opened_database


@click.group()
def club() -> None:
    """Clubs: each is a tenant of its own."""


@club.command()
@click.argument("name")
@click.option("--owner", required=True, metavar="MAIL", help="A person added before; owns the club.")
@click.option("--slug", help="The club's address, /c/SLUG; made from the name by default.")
@click.option("--zone", default="UTC", show_default=True, help="The club's time zone, like Europe/Berlin.")
@command_body
async def add(name: str, owner: str, slug: str | None, zone: str) -> None:
    """Add a club called NAME."""
    from lastcall.clubs.service import add_club
    from lastcall.people.queries import person_by_email

    slug = slug or "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
    async with opened_database() as database:
        async with database.read() as tx:
            owner_id = await person_by_email(tx, owner)
        await add_club(database, None, name, slug, zone, owner_id)
    click.echo(f"Added the club {name} at /c/{slug}, owned by {owner}.")
