"""``lastcall person``: who may sign in."""

from __future__ import annotations

import rich_click as click

from lastcall.cli.running import command_body, opened_database


@click.group()
def person() -> None:
    """People who may sign in."""


@person.command()
@click.argument("email", metavar="MAIL")
@click.option("--name", help="How others see them; the part of the address before the @ by default.")
@click.option("--operator", is_flag=True, help="May also run the server: accounts, switches, deadlines.")
@command_body
async def add(email: str, name: str | None, operator: bool) -> None:
    """Add a person. They sign in with a link: see `lastcall sign-in-link`."""
    from lastcall.people.service import add_person

    async with opened_database() as database:
        await add_person(database, email, name or email.partition("@")[0], operator=operator)
    role = "an operator" if operator else "a person"
    click.echo(f"Added {email} as {role}. Next: lastcall sign-in-link {email}")
