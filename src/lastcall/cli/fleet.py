"""``lastcall fleet``: what all accounts share."""

from __future__ import annotations

import rich_click as click

from lastcall.cli.running import command_body, opened_database


@click.group()
def fleet() -> None:
    """All accounts together."""


@fleet.command()
@command_body
async def stop() -> None:
    """Stop every account. What was already sent is still settled."""
    await _switch(is_on=True)
    click.echo("All accounts are stopped.")


@fleet.command()
@command_body
async def go() -> None:
    """Let the accounts go on, but for those that are stopped each."""
    await _switch(is_on=False)
    click.echo("The accounts may work.")


@fleet.command()
@click.argument("requests_per_minute", type=int)
@command_body
async def limit(requests_per_minute: int) -> None:
    """Set how many requests a minute all accounts together may send to VRChat."""
    from lastcall.connections.switches import set_fleet_limit

    async with opened_database() as database:
        await set_fleet_limit(database, None, requests_per_minute)
    click.echo(f"All accounts together may send {requests_per_minute} requests a minute.")


async def _switch(*, is_on: bool) -> None:
    from lastcall.connections.switches import set_fleet_switch

    async with opened_database() as database:
        await set_fleet_switch(database, None, is_on=is_on)
