"""``lastcall account``: VRChat accounts made for this purpose, and their collectors' keys."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import rich_click as click

from lastcall.cli.running import command_body, opened_database

if TYPE_CHECKING:
    from lastcall.connections.overview import AccountLine
    from lastcall.db.database import Database

ALIAS = click.argument("alias")


@click.group()
def account() -> None:
    """VRChat accounts that collectors run. Passwords and cookies stay with the collector."""


@account.command()
@ALIAS
@click.argument("vrchat_user_id", metavar="USR_ID")
@command_body
async def add(alias: str, vrchat_user_id: str) -> None:
    """Add an account called ALIAS, and print its worker key, once. It does nothing before `lastcall account ready`."""
    from lastcall.connections.accounts import add_account

    async with opened_database() as database:
        made = await add_account(database, None, alias, vrchat_user_id)
    _print_key(made.account_id, made.key)
    click.echo(f"Once you have looked at the account: lastcall account ready {alias}", err=True)


@account.command("rotate-key")
@ALIAS
@command_body
async def rotate_key(alias: str) -> None:
    """Replace the account's worker key and print the new one, once. The old one stops at once."""
    from lastcall.connections import accounts

    async with opened_database() as database:
        made = await accounts.rotate_key(database, None, await accounts.account_named(database, alias))
    _print_key(made.account_id, made.key)


@account.command("revoke-key")
@ALIAS
@command_body
async def revoke_key(alias: str) -> None:
    """Take the account's worker key away and give no other: its collector is refused until a rotation."""
    from lastcall.connections import accounts

    async with opened_database() as database:
        await accounts.revoke_key(database, None, await accounts.account_named(database, alias))
    click.echo(f"The key of {alias} is revoked.")


@account.command()
@ALIAS
@command_body
async def stop(alias: str) -> None:
    """Stop everything this account does. What was already sent is still settled."""
    await _switch(alias, is_on=True)


@account.command()
@ALIAS
@command_body
async def go(alias: str) -> None:
    """Let a stopped account go on."""
    await _switch(alias, is_on=False)


@account.command()
@ALIAS
@click.option("--requests", type=int, metavar="N", help="Requests a minute to VRChat.")
@click.option("--writes", type=int, metavar="N", help="Writes a day, once the account is grown.")
@click.option("--capacity", type=int, metavar="N", help="Clubs that it serves at most.")
@click.option(
    "--headroom", type=int, metavar="N", help="Places of those that are not given out by themselves."
)
@command_body
async def limit(
    alias: str, requests: int | None, writes: int | None, capacity: int | None, headroom: int | None
) -> None:
    """Set how much this account does; what is not given stays."""
    from lastcall.connections.accounts import account_named
    from lastcall.connections.switches import set_account_limits

    async with opened_database() as database:
        await set_account_limits(
            database,
            None,
            await account_named(database, alias),
            requests_per_minute=requests,
            writes_per_day=writes,
            capacity=capacity,
            reserved_headroom=headroom,
        )
        line = await _line(database, alias)
    click.echo(
        f"{alias}: {line.requests_per_minute} requests a minute, {line.writes_per_day} writes a day, "
        f"{line.capacity} clubs of which {line.reserved_headroom} are kept free."
    )
    if line.writes_allowed < line.writes_per_day:
        click.echo(f"As long as it is young it writes {line.writes_allowed} a day.")


@account.command()
@ALIAS
@command_body
async def ready(alias: str) -> None:
    """Let the account work: a new one, or after a new sign-in or a cooldown."""
    await _set(alias, "ready")
    click.echo(f"{alias} may work.")


@account.command()
@ALIAS
@command_body
async def degrade(alias: str) -> None:
    """Take the account out of work for a while; its clubs stay with it."""
    await _set(alias, "degraded")
    click.echo(f"{alias} is degraded and does nothing. `lastcall account ready {alias}` lets it work again.")


@account.command()
@ALIAS
@command_body
async def quarantine(alias: str) -> None:
    """Take an account out of work that VRChat has something against; its clubs can be given to others."""
    await _set(alias, "quarantined")
    click.echo(f"{alias} is quarantined and does nothing.")
    await _say_what_is_left(alias)


@account.command()
@ALIAS
@command_body
async def retire(alias: str) -> None:
    """Take an account out of work for good. While it has clubs it is retiring; say it again when none is left."""
    async with opened_database() as database:
        is_last = (await _line(database, alias)).connections == 0
    await _set(alias, "retired" if is_last else "retiring")
    click.echo(f"{alias} is {'retired' if is_last else 'retiring'} and does nothing.")
    await _say_what_is_left(alias)


@account.command("list")
@command_body
async def list_() -> None:
    """Show the accounts."""
    from lastcall.connections.overview import overview
    from lastcall.db.ids import encode_id

    async with opened_database() as database, database.read() as tx:
        found = (await overview(tx, None)).accounts
    for one in found:
        state = "stopped" if one.kill_switch else one.state.words
        clubs = f"{one.connections} of {one.capacity} clubs"
        writes = f"{one.writes_today} of {one.writes_allowed} writes today"
        click.echo(
            f"{encode_id(one.account_id)}  {one.alias:<24} {state:<14} {clubs:<20} {writes:<26} {one.vrchat_user_id}"
        )
    if not found:
        click.echo("There is no account yet: lastcall account add ALIAS USR_ID")


async def _switch(alias: str, *, is_on: bool) -> None:
    from lastcall.connections.accounts import account_named
    from lastcall.connections.switches import set_account_switch

    async with opened_database() as database:
        await set_account_switch(database, None, await account_named(database, alias), is_on=is_on)
    click.echo(f"{alias} is stopped." if is_on else f"{alias} may work.")


async def _set(alias: str, state: str) -> None:
    from lastcall.connections.accounts import account_named, set_account_state
    from lastcall.connections.states import AccountState

    async with opened_database() as database:
        await set_account_state(database, None, await account_named(database, alias), AccountState(state))


async def _line(database: Database, alias: str) -> AccountLine:
    from lastcall.connections.accounts import account_named
    from lastcall.connections.overview import overview

    account_id = await account_named(database, alias)
    async with database.read() as tx:
        return next(one for one in (await overview(tx, None)).accounts if one.account_id == account_id)


async def _say_what_is_left(alias: str) -> None:
    """Which clubs wait for another account."""
    from lastcall.connections.overview import overview

    async with opened_database() as database, database.read() as tx:
        left = [one for one in (await overview(tx, None)).connections if one.account_alias == alias]
    for one in left:
        click.echo(f"  {one.club_name}: {one.group_name}")
    if left:
        click.echo("Give each to another account: lastcall connection reassign CLUB [--account ALIAS]")


def _print_key(account_id: UUID, worker_key: str) -> None:
    from lastcall.db.ids import encode_id

    click.echo(f"LASTCALL_ACCOUNT={encode_id(account_id)}")
    click.echo(f"LASTCALL_WORKER_KEY={worker_key}")
    click.echo("Give both to the collector's environment. The key is shown only this once.", err=True)
