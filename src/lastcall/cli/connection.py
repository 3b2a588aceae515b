"""``lastcall connection``: a club and its VRChat group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from lastcall.cli.running import command_body, opened_database
from lastcall.errors import Invalid, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from lastcall.clubs.queries import ClubView
    from lastcall.connections.queries import ConnectionCard
    from lastcall.connections.states import Feature
    from lastcall.db.database import Database


@click.group()
def connection() -> None:
    """Connections between clubs and their VRChat groups."""


@connection.command()
@click.argument("club", metavar="CLUB")
@click.argument("group_id", metavar="GRP_ID")
@click.option("--account", "alias", metavar="ALIAS", help="The account that serves it; chosen by default.")
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
async def add(club: str, group_id: str, alias: str | None, features: tuple[str, ...]) -> None:
    """Connect the club at /c/CLUB to its VRChat group. The account joins it, or waits until the group lets it in."""
    from lastcall.clubs.queries import club_at
    from lastcall.connections.accounts import account_named
    from lastcall.connections.connect import connect_club
    from lastcall.connections.queries import connection_card

    chosen = [_feature(name) for name in features]
    async with opened_database() as database:
        async with database.read() as tx:
            found = await club_at(tx, club)
        account_id = None if alias is None else await account_named(database, alias)
        await connect_club(
            database, None, found.id, group_id=group_id, account_id=account_id, features=chosen
        )
        async with database.read() as tx:
            card = await connection_card(tx, found.id)
    served_by = "" if card is None else f" through {card.account_alias}"
    click.echo(f"{found.name} is being connected to {group_id}{served_by}.")
    click.echo("Let the account into the group; `lastcall connection show` says how it gets on.")


@connection.command()
@click.argument("club", metavar="CLUB")
@command_body
async def show(club: str) -> None:
    """Show how the connection of the club at /c/CLUB gets on."""
    from lastcall.connections.health import connection_health
    from lastcall.telemetry.queries import coverage_of
    from lastcall.web.connection_words import COVERAGE, GRANTS, STATES, fault_of

    async with opened_database() as database:
        found, card = await _connected(database, club)
        async with database.read() as tx:
            health = await connection_health(tx, found.id)
            coverage = await coverage_of(tx, found.id)
    if health is None or coverage is None:
        raise _not_connected(found.name)
    state = STATES[health.state]
    click.echo(f"group      {card.group_name} ({card.group_id})")
    click.echo(f"account    {card.account_alias}, {health.account_state.words}")
    click.echo(f"state      {state.look.word}{', stopped' if card.kill_switch else ''}")
    click.echo(f"           {state.sentence} {state.advice}".rstrip())
    click.echo(f"last look  {_moment(health.last_success_at)}")
    click.echo(f"next look  {_moment(health.next_look_at)}")
    if fault := fault_of(health.last_fault):
        click.echo(f"fault      {fault.label}. {fault.advice}".rstrip())
    click.echo(
        f"analytics  {COVERAGE[coverage.state].look.word}, last observed {_moment(coverage.observed_at)}"
    )
    click.echo(f"           {COVERAGE[coverage.state].sentence}")
    for one in card.readiness:
        if one.is_on:
            lacks = one.missing_grant and f", lacks “{GRANTS[one.missing_grant]}” ({one.missing_grant})"
            click.echo(f"feature    {one.feature}{lacks or '' if one.is_known else ', not looked at yet'}")


@connection.command()
@click.argument("club", metavar="CLUB")
@command_body
async def check(club: str) -> None:
    """Have the group of the club at /c/CLUB looked at as soon as its account may."""
    from lastcall.connections.looks import check_now

    async with opened_database() as database:
        found, card = await _connected(database, club)
        await check_now(database, None, found.id, card.connection_id)
    click.echo(f"The group of {found.name} is looked at as soon as its account may.")


@connection.command()
@click.argument("club", metavar="CLUB")
@command_body
async def rejoin(club: str) -> None:
    """Let the account of the club at /c/CLUB try to come into the group again."""
    from lastcall.connections.looks import rejoin as join_again

    async with opened_database() as database:
        found, card = await _connected(database, club)
        await join_again(database, None, found.id, card.connection_id)
    click.echo(f"The account tries to come into the group of {found.name} again.")


@connection.command()
@click.argument("club", metavar="CLUB")
@click.argument("name", metavar="NAME")
@click.argument("switch", type=click.Choice(["on", "off"]))
@command_body
async def feature(club: str, name: str, switch: str) -> None:
    """Switch one feature of the club at /c/CLUB: analytics, membership_management, posts or instances."""
    from lastcall.connections.features import switch_feature

    chosen = _feature(name)
    async with opened_database() as database:
        found, card = await _connected(database, club)
        await switch_feature(database, None, found.id, card.connection_id, chosen, is_on=switch == "on")
    click.echo(f"{chosen.label} is {switch} for {found.name}.")


@connection.command()
@click.argument("club", metavar="CLUB")
@click.option("--without-leaving", is_flag=True, help="End it though the account cannot leave the group.")
@command_body
async def disconnect(club: str, without_leaving: bool) -> None:
    """End the connection of the club at /c/CLUB: nothing unsent goes out, and the account leaves the group."""
    from lastcall.connections.connect import disconnect_club, finish_disconnect

    async with opened_database() as database:
        found, card = await _connected(database, club)
        await disconnect_club(database, None, found.id, card.connection_id)
        if without_leaving:
            await finish_disconnect(database, None, found.id, card.connection_id)
    rest = (
        "Its account stays a member there until somebody removes it."
        if without_leaving
        else "Its account leaves the group now."
    )
    click.echo(f"{found.name} is disconnected from {card.group_name}. {rest}")


@connection.command()
@click.argument("club", metavar="CLUB")
@click.argument("requests_per_minute", type=int)
@command_body
async def limit(club: str, requests_per_minute: int) -> None:
    """Set how many of its account's requests a minute the club at /c/CLUB may use. The lowest of connection,
    account and fleet counts."""
    from lastcall.connections.switches import set_connection_limit

    async with opened_database() as database:
        found, card = await _connected(database, club)
        await set_connection_limit(database, None, found.id, card.connection_id, requests_per_minute)
    click.echo(f"{found.name} may use {requests_per_minute} requests a minute.")


@connection.command()
@click.argument("club", metavar="CLUB")
@click.option("--account", "alias", metavar="ALIAS", help="Which account takes over; chosen by default.")
@command_body
async def reassign(club: str, alias: str | None) -> None:
    """Let another account serve the club at /c/CLUB, when its own is quarantined, retiring or retired. The new one
    has to become a member of the group before anything is sent."""
    from lastcall.connections.accounts import account_named
    from lastcall.connections.queries import connection_card
    from lastcall.connections.reassigning import reassign_connection

    async with opened_database() as database:
        found, card = await _connected(database, club)
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


async def _connected(database: Database, club: str) -> tuple[ClubView, ConnectionCard]:
    """The club at that address, and its connection."""
    from lastcall.clubs.queries import club_at
    from lastcall.connections.queries import connection_card

    async with database.read() as tx:
        found = await club_at(tx, club)
        card = await connection_card(tx, found.id)
    if card is None:
        raise _not_connected(found.name)
    return found, card


def _feature(name: str) -> Feature:
    from lastcall.connections.states import Feature

    if name not in set(Feature):
        raise Invalid(
            "feature_unknown",
            f"There is no feature {name}.",
            advice=f"Choose from: {', '.join(Feature)}.",
            field="feature",
        )
    return Feature(name)


def _moment(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _not_connected(club_name: str) -> NotFound:
    return NotFound(
        "connection_unknown",
        f"{club_name} is not connected to a group.",
        advice="Connect it first with `lastcall connection add`.",
    )
