"""``lastcall simulator``: a VRChat to try things on."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from lastcall.cli.running import command_body
from lastcall.errors import Unavailable
from lastcall.settings import load


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on.")
@click.option(
    "--members",
    type=click.IntRange(3, 5000),
    default=40,
    show_default=True,
    help="Members of the group, its owner and the account among them.",
)
@click.option(
    "--requests-per-minute", type=click.IntRange(0), default=0, help="Limit of each account; 0 is none."
)
@click.option(
    "--ledger", type=click.Path(dir_okay=False, path_type=Path), help="Where to write what was applied."
)
@command_body
async def simulator(port: int | None, members: int, requests_per_minute: int, ledger: Path | None) -> None:
    """Run a simulated VRChat with one club in it. Nothing here reaches the real one."""
    from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator, run

    settings = load(simulator_port=port)

    def ready(running: Simulator) -> None:
        click.echo(f"A simulated VRChat is at {running.url}")
        click.echo(f"  group    {running.seed.group_id}")
        click.echo(f"  account  {running.seed.bot_id}, a member that holds every grant needed")
        click.echo(
            f"  sign-in  {BOT_USERNAME}, password {BOT_PASSWORD}, authenticator secret {BOT_TOTP_SECRET}"
        )
        click.echo(f"  people   {running.seed.members[0]} is a member, {running.seed.strangers[0]} is not")

    try:
        await run(
            host=settings.simulator_host,
            port=settings.simulator_port,
            members=members,
            requests_per_minute=requests_per_minute,
            ledger_file=ledger,
            ready=ready,
        )
    except OSError as error:
        raise Unavailable(
            "port_in_use",
            f"Port {settings.simulator_port} on {settings.simulator_host} cannot be taken: {error.strerror}.",
            advice="Stop the program that has it, or choose another with LASTCALL_SIMULATOR_PORT.",
        ) from error
