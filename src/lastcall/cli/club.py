"""``lastcall club``: clubs, their owners and their life."""

from __future__ import annotations

from typing import Any

import rich_click as click

from lastcall.cli.running import command_body, go_through, opened_database, run_owner, write_lines

CLUB = click.argument("slug", metavar="CLUB")


@click.group()
def club() -> None:
    """Clubs: each is a tenant of its own. CLUB is the last part of its address, /c/CLUB."""


@club.command()
@click.argument("name")
@click.option("--owner", required=True, metavar="MAIL", help="Owns the club; added as a person if unknown.")
@click.option("--slug", help="The club's address, /c/SLUG; made from the name by default.")
@click.option("--zone", default="UTC", show_default=True, help="The club's time zone, like Europe/Berlin.")
@command_body
async def add(name: str, owner: str, slug: str | None, zone: str) -> None:
    """Add a club called NAME."""
    from lastcall.clubs.service import create_club

    slug = slug or "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
    async with opened_database() as database:
        made = await create_club(database, None, name, slug, zone, owner)
    click.echo(f"Added the club {name} at /c/{slug}, owned by {owner}.")
    if made.is_new_person:
        click.echo(f"{owner} is new here. Next: lastcall sign-in-link {owner}")


@club.command("list")
@click.option("--search", default="", help="Only clubs whose name or address holds this.")
@command_body
async def list_(search: str) -> None:
    """Show every club, the newest first."""
    from lastcall.clubs.queries import clubs_page

    after, count = None, 0
    async with opened_database() as database, database.read() as tx:
        while True:
            page = await clubs_page(tx, None, search=search, after=after)
            for one in page.clubs:
                click.echo(f"{one.slug:<40} {one.state:<9} {one.name}, owned by {one.owner_name}")
            count += len(page.clubs)
            after = page.next
            if after is None:
                break
    if not count:
        click.echo(
            "There is no such club."
            if search
            else "There is no club yet: lastcall club add NAME --owner MAIL"
        )


@club.command()
@CLUB
@command_body
async def show(slug: str) -> None:
    """Show a club's settings and its owner."""
    from lastcall.clubs.queries import club_at, club_settings
    from lastcall.db.ids import encode_id

    async with opened_database() as database, database.read() as tx:
        found = await club_settings(tx, None, (await club_at(tx, slug)).id)
    days = "never" if found.retention_days is None else f"after {found.retention_days} days"
    lines = {
        "id": encode_id(found.id),
        "name": found.name,
        "state": found.state,
        "owner": found.owner_name,
        "zone": found.zone,
        "archives": days,
        "created": f"{found.created_at:%Y-%m-%d %H:%M} UTC",
    }
    for key, value in lines.items():
        click.echo(f"{key:<9} {value}")


@club.command()
@CLUB
@command_body
async def pause(slug: str) -> None:
    """Stop what the club does by itself: retention and agents. Reviewed actions go on."""
    from lastcall.clubs.life import pause_club

    await _live(slug, pause_club, "is paused")


@club.command()
@CLUB
@command_body
async def resume(slug: str) -> None:
    """Let a paused club go on."""
    from lastcall.clubs.life import resume_club

    await _live(slug, resume_club, "goes on")


@club.command()
@CLUB
@command_body
async def archive(slug: str) -> None:
    """Close a club: it is disconnected, what was not sent never is. All of it can still be read."""
    from lastcall.clubs.life import archive_club

    await _live(slug, archive_club, "is archived")


@club.command()
@CLUB
@command_body
async def unarchive(slug: str) -> None:
    """Bring an archived club back. It is not connected to its VRChat group any more."""
    from lastcall.clubs.life import unarchive_club

    await _live(slug, unarchive_club, "is back")


@club.command()
@CLUB
@click.argument("email", metavar="MAIL")
@click.option("--keep-role", metavar="ROLE", help="A staff role that the former owner keeps, by name.")
@command_body
async def transfer(slug: str, email: str, keep_role: str | None) -> None:
    """Give a club to the person with the address MAIL."""
    from lastcall.clubs.ownership import transfer_club
    from lastcall.clubs.queries import club_at, roles_of
    from lastcall.errors import NotFound
    from lastcall.people.queries import person_by_email

    async with opened_database() as database:
        async with database.read() as tx:
            club_id = (await club_at(tx, slug)).id
            new_owner = await person_by_email(tx, email)
            roles = {role.name: role.id for role in await roles_of(tx, club_id)}
        if keep_role is not None and keep_role not in roles:
            raise NotFound("role_unknown", f"There is no role “{keep_role}”; there are {', '.join(roles)}.")
        kept = None if keep_role is None else roles[keep_role]
        await transfer_club(database, None, club_id, new_owner, former_owner_role_id=kept)
    click.echo(f"{email} owns /c/{slug} now.")


@club.command()
@CLUB
@click.option("--confirm", required=True, metavar="CLUB", help="The same name again: nothing brings it back.")
@command_body
async def delete(slug: str, confirm: str) -> None:
    """Delete an archived club and all that belongs to it, for good.

    It is gone for everybody at once. Its rows are removed page by page while this command runs; if it is stopped,
    the server goes on when it is started next.
    """
    from lastcall.clubs.deletion import club_deletion_owner
    from lastcall.clubs.life import delete_club
    from lastcall.clubs.queries import club_at

    async with opened_database() as database:
        async with database.read() as tx:
            club_id = (await club_at(tx, slug)).id
        await delete_club(database, None, club_id, confirm_slug=confirm)
        await run_owner(club_deletion_owner(database))
    click.echo(f"/c/{slug} and everything in it is gone.")


async def _live(slug: str, step: Any, outcome: str) -> None:
    """One step of the club's life, and the deadlines that follow from it: this process has no scheduler."""
    from lastcall.clubs.queries import club_at
    from lastcall.decisions.retention.refreshes import retention_refresh_owner

    async with opened_database() as database:
        async with database.read() as tx:
            club_id = (await club_at(tx, slug)).id
        await step(database, None, club_id)
        await run_owner(retention_refresh_owner(database))
        await go_through(database)
    click.echo(f"/c/{slug} {outcome}.")


@club.command()
@CLUB
@click.option(
    "--to", "path", default="-", type=click.Path(allow_dash=True), help="The file; the terminal by default."
)
@command_body
async def export(slug: str, path: str) -> None:
    """Write down every row of CLUB, as JSON lines, without secrets."""
    from lastcall.clubs.export import export_club
    from lastcall.clubs.queries import club_at

    async with opened_database() as database:
        async with database.read() as tx:
            found = await club_at(tx, slug)
        await write_lines(export_club(database, None, found.id), path)
