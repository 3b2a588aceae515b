"""``lastcall serve``: web pages, API and scheduler in one process."""

from __future__ import annotations

import rich_click as click

from lastcall.cli.running import command_body
from lastcall.settings import load


@click.command()
@click.option("--host", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on.")
@command_body
async def serve(host: str | None, port: int | None) -> None:
    """Run the server: pages, API and deadlines. Starts the embedded database when no DATABASE_URL is set."""
    from lastcall.cli.server import serve as run

    await run(load(host=host, port=port))
