"""``lastcall person``: who may sign in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import rich_click as click

from lastcall.cli.running import command_body, opened_database, write_lines
from lastcall.settings import load


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


@person.command("list")
@click.option("--search", default="", help="Only those with this in their name or address.")
@command_body
async def list_(search: str) -> None:
    """Show people, those added last first."""
    from lastcall.people.queries import PAGE_MOST, people_page

    count = 0
    after = None
    async with opened_database() as database, database.read() as tx:
        while True:
            page = await people_page(tx, None, search=search, after=after, limit=PAGE_MOST)
            for one in page.rows:
                click.echo(f"{one.email:<40} {one.display_name:<32} {_state(one)}".rstrip())
            count += len(page.rows)
            if page.next is None:
                break
            after = page.next
    if not count:
        click.echo("Nobody is called that." if search else "Nobody yet: lastcall person add MAIL --operator")


@person.command()
@click.argument("email", metavar="MAIL")
@command_body
async def show(email: str) -> None:
    """Show one person and the last of what the audit says about them."""
    from lastcall.people.queries import audit_page, person_for_operators

    async with _known(email) as (database, person_id), database.read() as tx:
        found = await person_for_operators(tx, None, person_id)
        entries = await audit_page(tx, None, about=person_id, limit=10)
    click.echo(f"{found.display_name} <{found.email}>  {_state(found)}".rstrip())
    click.echo(f"  address {'confirmed' if found.is_verified else 'not confirmed'}")
    click.echo(f"  added {found.created_at:%Y-%m-%d %H:%M} UTC")
    seen = f"{found.last_seen_at:%Y-%m-%d %H:%M} UTC" if found.last_seen_at else "never"
    click.echo(f"  last seen {seen}")
    for one in entries.rows:
        click.echo(
            f"  {one.created_at:%Y-%m-%d %H:%M} UTC  {one.action}  by {one.actor_name or 'the server'}"
        )


@person.command()
@click.argument("email", metavar="MAIL")
@command_body
async def block(email: str) -> None:
    """Sign the person out everywhere and let them do nothing in any club, at once."""
    from lastcall.people.service import block_person

    async with _known(email) as (database, person_id):
        await block_person(database, None, person_id)
    click.echo(f"{email} is blocked.")


@person.command()
@click.argument("email", metavar="MAIL")
@command_body
async def unblock(email: str) -> None:
    """Let a blocked person in again, with the roles they had."""
    from lastcall.people.service import unblock_person

    async with _known(email) as (database, person_id):
        await unblock_person(database, None, person_id)
    click.echo(f"{email} may sign in again. Next: lastcall sign-in-link {email}")


@person.command()
@click.argument("email", metavar="MAIL")
@click.option("--remove", is_flag=True, help="Take it away instead.")
@command_body
async def operator(email: str, remove: bool) -> None:
    """Make the person an operator: they may run the server."""
    from lastcall.people.service import set_operator

    async with _known(email) as (database, person_id):
        await set_operator(database, None, person_id, is_operator=not remove)
    click.echo(f"{email} is {'no longer an operator' if remove else 'an operator'}.")


@person.command()
@click.argument("email", metavar="MAIL")
@click.argument("new", metavar="NEW_MAIL")
@command_body
async def move(email: str, new: str) -> None:
    """Give the person another mail address. The old one is told, where the server sends mail."""
    from lastcall.people.recovery import move_person

    async with opened_database() as database, _mailer(database) as mailer:
        await move_person(database, mailer, email, new)
    click.echo(f"{email} is {new} now.")


@person.command()
@click.argument("email", metavar="MAIL")
@click.confirmation_option(
    prompt="This ends all their sessions and API tokens and removes their passkeys and linked accounts. Go on?"
)
@command_body
async def recover(email: str) -> None:
    """Take away every way in that the person has, and print one link that signs them in."""
    from lastcall.people.recovery import recover_person

    async with opened_database() as database, _mailer(database) as mailer:
        ended = await recover_person(database, mailer, email)
    click.echo(
        f"Ended {ended.sessions} sessions and {ended.tokens} API tokens; removed {ended.passkeys} passkeys and"
        f" {ended.identities} linked accounts.",
        err=True,
    )
    click.echo(f"{load().public_url.rstrip('/')}/sign-in/{ended.link}")


@person.command()
@click.argument("email", metavar="MAIL")
@click.option(
    "--to", "path", default="-", type=click.Path(allow_dash=True), help="The file; the terminal by default."
)
@command_body
async def export(email: str, path: str) -> None:
    """Write down everything that is kept about the person, as JSON lines. It holds no secrets."""
    from lastcall.people.erasing import export_person

    async with _known(email) as (database, person_id):
        await write_lines(export_person(database, None, person_id), path)


@person.command()
@click.argument("email", metavar="MAIL")
@click.confirmation_option(
    prompt="This cannot be undone: their name, address and every way in go for good. Go on?"
)
@command_body
async def erase(email: str) -> None:
    """Erase a person for good. What they did stays, as done by an erased person."""
    from lastcall.people.erasing import erase_person

    async with _known(email) as (database, person_id):
        await erase_person(database, None, person_id)
    click.echo(f"{email} is erased.")


@asynccontextmanager
async def _known(email: str) -> AsyncIterator[tuple[Any, UUID]]:
    """The database, and the person with this address."""
    from lastcall.people.queries import person_by_email

    async with opened_database() as database:
        async with database.read() as tx:
            person_id = await person_by_email(tx, email)
        yield database, person_id


@asynccontextmanager
async def _mailer(database: Any) -> AsyncIterator[Any]:
    """What sends mail, until all of it is sent."""
    from lastcall.app import mailer

    async with mailer(load(), database).running() as running:
        yield running


def _state(one: Any) -> str:
    words = ["operator"] if one.is_operator else []
    if one.erased_at is not None:
        words.append("erased")
    elif one.blocked_at is not None:
        words.append("blocked")
    return ", ".join(words)
