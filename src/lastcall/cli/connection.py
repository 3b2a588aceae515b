"""``lastcall connection``: a club and its VRChat group."""

from __future__ import annotations

import rich_click as click

from lastcall.cli.running import command_body, opened_database
from lastcall.errors import Invalid, NotFound


@click.group()
def connection() -> None:
    """Connections between clubs and their VRChat groups."""


@connection.command()
@click.argument("club", metavar="CLUB")
@click.argument("group_id", metavar="GRP_ID")
@click.option("--account", "alias", metavar="ALIAS", help="Which account serves it; chosen by default.")
@click.option("--group-name", help="The group's name until it is read from VRChat.")
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME",
    default=("membership_management",),
    show_default=True,
    help="What Lastcall may do there; repeat for several.",
)
@command_body
async def add(
    club: str, group_id: str, alias: str | None, group_name: str | None, features: tuple[str, ...]
) -> None:
    """Connect the club at /c/CLUB to its VRChat group. The account comes into the group with its next pass, or is a
    member already; an invite-only group has to invite it."""
    from lastcall.clubs.queries import club_at
    from lastcall.connections.accounts import account_named
    from lastcall.connections.connect import connect_club
    from lastcall.connections.queries import connection_card
    from lastcall.connections.states import Feature

    for name in features:
        if name not in set(Feature):
            raise Invalid(
                "feature_unknown",
                f"There is no feature {name}.",
                advice=f"Choose from: {', '.join(Feature)}.",
                field="feature",
            )
    chosen = [Feature(name) for name in features]
    async with opened_database() as database:
        async with database.read() as tx:
            found = await club_at(tx, club)
        await connect_club(
            database,
            None,
            found.id,
            group_id=group_id,
            group_name=group_name,
            account_id=None if alias is None else await account_named(database, alias),
            features=chosen,
        )
        async with database.read() as tx:
            card = await connection_card(tx, found.id)
    served_by = "an account" if card is None else card.account_alias
    click.echo(f"Connected {found.name} to {group_id} through {served_by}, which comes into the group now.")


@connection.command()
@click.argument("club", metavar="CLUB")
@click.argument("requests_per_minute", type=int)
@command_body
async def limit(club: str, requests_per_minute: int) -> None:
    """Set how many of its account's requests a minute the club at /c/CLUB may use. The lowest of connection,
    account and fleet counts."""
    from lastcall.clubs.queries import club_at
    from lastcall.connections.queries import connection_card
    from lastcall.connections.switches import set_connection_limit

    async with opened_database() as database:
        async with database.read() as tx:
            found = await club_at(tx, club)
            card = await connection_card(tx, found.id)
        if card is None:
            raise _not_connected(found.name)
        await set_connection_limit(database, None, found.id, card.connection_id, requests_per_minute)
    click.echo(f"{found.name} may use {requests_per_minute} requests a minute.")


@connection.command()
@click.argument("club", metavar="CLUB")
@click.option("--account", "alias", metavar="ALIAS", help="Which account takes over; chosen by default.")
@command_body
async def reassign(club: str, alias: str | None) -> None:
    """Let another account serve the club at /c/CLUB, when its own is quarantined, retiring or retired. The new one
    has to become a member of the group before anything is sent."""
    from lastcall.clubs.queries import club_at
    from lastcall.connections.accounts import account_named
    from lastcall.connections.queries import connection_card
    from lastcall.connections.reassigning import reassign_connection

    async with opened_database() as database:
        async with database.read() as tx:
            found = await club_at(tx, club)
            card = await connection_card(tx, found.id)
        if card is None:
            raise _not_connected(found.name)
        account_id = None if alias is None else await account_named(database, alias)
        await reassign_connection(database, None, found.id, card.connection_id, account_id)
        async with database.read() as tx:
            now = await connection_card(tx, found.id)
    served_by = card.account_alias if now is None else now.account_alias
    click.echo(f"{found.name} is served by {served_by} from now on. Let it into the group.")


@connection.command("list")
@command_body
async def list_() -> None:
    """Show every club's connection."""
    from lastcall.connections.overview import overview

    async with opened_database() as database, database.read() as tx:
        found = (await overview(tx, None)).connections
    for one in found:
        state = "frozen" if one.frozen_at else "stopped" if one.kill_switch else one.state
        click.echo(f"{one.club_name:<32} {one.group_name:<32} {one.account_alias:<24} {state}")
    if not found:
        click.echo("No club is connected yet: lastcall connection add CLUB GRP_ID")


def _not_connected(club_name: str) -> NotFound:
    return NotFound(
        "connection_unknown",
        f"{club_name} is not connected to a group.",
        advice="Connect it first with `lastcall connection add`.",
    )
