"""``lastcall fleet``: what all accounts share."""

from __future__ import annotations

import rich_click as click

from lastcall.cli.running import command_body, opened_database


@click.group()
def fleet() -> None:
    """All accounts together."""


@fleet.command()
@click.argument("requests_per_minute", type=int)
@command_body
async def limit(requests_per_minute: int) -> None:
    """Set how many requests a minute all accounts together may send to VRChat."""
    from lastcall.connections.switches import set_fleet_limit

    async with opened_database() as database:
        await set_fleet_limit(database, None, requests_per_minute)
    click.echo(f"All accounts together may send {requests_per_minute} requests a minute.")
