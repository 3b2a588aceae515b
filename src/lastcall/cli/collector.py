"""``lastcall collector``: the process that signs in at VRChat and does what was queued."""

from __future__ import annotations

import asyncio
import sys

import rich_click as click

from lastcall.cli.running import command_body
from lastcall.errors import Invalid
from lastcall.settings import load

QUESTIONS = {
    "username": "VRChat user name of the account",
    "password": "The password of the account",
    "totp": "The code of the account's authenticator app",
    "emailOtp": "The code that VRChat sent by mail",
}


async def ask(what: str) -> str:
    """Ask the person at the terminal. Nothing they type is echoed but the user name, and nothing is
    stored.
    """
    if not sys.stdin.isatty():
        raise Invalid(
            "no_terminal",
            f"The collector needs to know: {QUESTIONS[what]}. There is no terminal to ask at.",
            advice="Start it once in a terminal; it keeps its sign-in.",
        )
    question = QUESTIONS[what]
    return str(await asyncio.to_thread(click.prompt, question, hide_input=what == "password"))


@click.command()
@click.option("--server", "server_url", metavar="URL", help="Where the server is.")
@click.option("--sign-in-anew", is_flag=True, help="Make a new VRChat session although one is kept.")
@command_body
async def collector(server_url: str | None, sign_in_anew: bool) -> None:
    """Run the collector of one account. Needs LASTCALL_ACCOUNT and LASTCALL_WORKER_KEY in its environment."""
    from dataclasses import replace

    from lastcall.collector.main import config_from, run_collector

    config = config_from(load(server_url=server_url))
    sys.exit(await run_collector(replace(config, signs_in_anew=sign_in_anew), ask))
