"""``lastcall sign-in-link``: the way in without passwords and without mail."""

from __future__ import annotations

import rich_click as click

from lastcall.cli.running import command_body, opened_database
from lastcall.settings import load


@click.command("sign-in-link")
@click.argument("email", metavar="MAIL")
@command_body
async def sign_in_link(email: str) -> None:
    """Print a link that signs MAIL in. It works once, for 15 minutes."""
    from lastcall.people.sign_in import make_sign_in_link

    async with opened_database() as database:
        token = await make_sign_in_link(database, email)
    click.echo(f"{load().public_url.rstrip('/')}/sign-in/{token}")
