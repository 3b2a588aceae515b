"""``lastcall demo``: see it run without a VRChat account, a club or a database of your own."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys

import rich_click as click

from lastcall.cli.running import command_body
from lastcall.errors import Unavailable
from lastcall.settings import Settings, load

MEMBERS = 40
SHOWN = 3


@click.command()
@click.option("--once", is_flag=True, help="Play a scripted evening by itself, say what was seen, and end.")
@command_body
async def demo(once: bool) -> None:
    """Run Lastcall with a simulated VRChat, a club of forty and a collector; print a link to sign in.

    Nothing here reaches the real VRChat. Ctrl-C ends all of it; the club is kept for the next time.
    """
    settings = load()
    if settings.database_url is not None:
        raise Unavailable(
            "demo_needs_its_own_database",
            "The demo runs on a database of its own and leaves yours alone.",
            advice="Unset DATABASE_URL for this command.",
        )
    if once:
        await _once(settings)
    else:
        await _to_click_through(settings)


async def _to_click_through(settings: Settings) -> None:

    from lastcall.demo.club import EMAIL, plan_the_night
    from lastcall.demo.stage import stage
    from lastcall.people.sign_in import make_sign_in_link

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with stage(settings, members=MEMBERS, is_kept=True, say=click.echo) as running:
        await plan_the_night(running.db, running.club, running.seed)
        token = await make_sign_in_link(running.db, EMAIL)
        click.echo("\nSign in as the owner of the club with this link (good once, for 15 minutes):\n")
        click.echo(f"  {settings.public_url.rstrip('/')}/sign-in/{token}\n")
        click.echo("People to try New action on:\n")
        for member in running.seed.members[-SHOWN - 1 : -1]:
            click.echo(f"  {member}  a member")
        click.echo(f"  {running.seed.strangers[-1]}  to invite")
        click.echo("\nCtrl-C ends the demo.")
        await stop.wait()
        click.echo("Stopping")


async def _once(settings: Settings) -> None:
    from rich.console import Console

    from lastcall.demo.evening import play
    from lastcall.demo.show import Bars, closing_table
    from lastcall.demo.stage import stage

    console = Console()
    alone = dataclasses.replace(settings, port=0, simulator_port=0)
    async with stage(alone, members=MEMBERS, is_kept=False, say=console.print) as running:
        bars = Bars(console)
        with bars.progress:
            expectations = await play(running, bars.show)
    if not closing_table(console, expectations):
        sys.exit(1)
