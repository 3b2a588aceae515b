"""``lastcall account``: VRChat accounts made for this purpose, and their collectors' keys."""

from __future__ import annotations

from uuid import UUID

import rich_click as click

from lastcall.cli.running import command_body, opened_database

ALIAS = click.argument("alias")


@click.group()
def account() -> None:
    """VRChat accounts that collectors run. Passwords and cookies stay with the collector."""


@account.command()
@ALIAS
@click.argument("vrchat_user_id", metavar="USR_ID")
@command_body
async def add(alias: str, vrchat_user_id: str) -> None:
    """Add an account called ALIAS, and print its worker key, once."""
    from lastcall.connections.accounts import add_account

    async with opened_database() as database:
        made = await add_account(database, None, alias, vrchat_user_id)
    _print_key(made.account_id, made.key)


@account.command()
@ALIAS
@click.option("--revoke", is_flag=True, help="Take the key away and give no other.")
@command_body
async def key(alias: str, revoke: bool) -> None:
    """Replace the account's worker key and print the new one, once. The old one stops at once."""
    from lastcall.connections.accounts import account_named, revoke_key, rotate_key

    async with opened_database() as database:
        account_id = await account_named(database, alias)
        if revoke:
            await revoke_key(database, None, account_id)
            click.echo(f"The key of {alias} is revoked.")
        else:
            made = await rotate_key(database, None, account_id)
            _print_key(made.account_id, made.key)


@account.command()
@ALIAS
@click.argument("position", type=click.Choice(["stop", "go"]))
@command_body
async def switch(alias: str, position: str) -> None:
    """Stop everything this account does, or let it go on. What was already sent is still settled."""
    from lastcall.connections.accounts import account_named
    from lastcall.connections.switches import set_account_switch

    async with opened_database() as database:
        account_id = await account_named(database, alias)
        await set_account_switch(database, None, account_id, is_on=position == "stop")
    click.echo(f"{alias} is stopped." if position == "stop" else f"{alias} may work.")


@account.command()
@ALIAS
@click.argument("requests_per_minute", type=int)
@command_body
async def limit(alias: str, requests_per_minute: int) -> None:
    """Set how many requests a minute this account may send to VRChat."""
    from lastcall.connections.accounts import account_named
    from lastcall.connections.switches import set_account_limits

    async with opened_database() as database:
        account_id = await account_named(database, alias)
        await set_account_limits(database, None, account_id, requests_per_minute=requests_per_minute)
    click.echo(f"{alias} may send {requests_per_minute} requests a minute.")


@account.command()
@ALIAS
@command_body
async def ready(alias: str) -> None:
    """Put the account back to work, after a new sign-in or a cooldown."""
    from lastcall.connections.accounts import account_named, set_account_state
    from lastcall.connections.states import AccountState

    async with opened_database() as database:
        await set_account_state(database, None, await account_named(database, alias), AccountState.READY)
    click.echo(f"{alias} may work.")


@account.command("list")
@command_body
async def list_() -> None:
    """Show the accounts."""
    from lastcall.connections.queries import overview
    from lastcall.db.ids import encode_id

    async with opened_database() as database, database.read() as tx:
        found = (await overview(tx, None)).accounts
    for one in found:
        state = "stopped" if one.kill_switch else one.state
        click.echo(f"{encode_id(one.account_id)}  {one.alias:<24} {state:<14} {one.vrchat_user_id}")
    if not found:
        click.echo("There is no account yet: lastcall account add ALIAS USR_ID")


def _print_key(account_id: UUID, worker_key: str) -> None:
    from lastcall.db.ids import encode_id

    click.echo(f"LASTCALL_ACCOUNT={encode_id(account_id)}")
    click.echo(f"LASTCALL_WORKER_KEY={worker_key}")
    click.echo("Give both to the collector's environment. The key is shown only this once.", err=True)
