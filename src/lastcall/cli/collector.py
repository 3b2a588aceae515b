"""``lastcall collector``: the process that signs in at VRChat and does what was queued."""

from __future__ import annotations

import asyncio
import sys

import rich_click as click

from lastcall.cli.running import command_body, fail
from lastcall.errors import Invalid
from lastcall.settings import load

QUESTIONS = {
    "username": "VRChat user name of the {}",
    "password": "The password of the {}",
    "totp": "The code of the authenticator app of the {}",
    "emailOtp": "The code that VRChat sent by mail to the {}",
}


async def ask(name: str, what: str) -> str:
    """Ask the person at the terminal. Nothing they type is echoed but the user name, and nothing is
    stored. ``name`` is that of the account.
    """
    question = QUESTIONS[what].format("account" if name == "account" else f"account {name}")
    if not sys.stdin.isatty():
        raise Invalid(
            "no_terminal",
            f"The collector needs to know: {question}. There is no terminal to ask at.",
            advice="Start it once in a terminal; it keeps its sign-in.",
        )
    return str(await asyncio.to_thread(click.prompt, question, hide_input=what == "password"))


@click.command()
@click.option("--server", "server_url", metavar="URL", help="Where the server is.")
@click.option("--sign-in-anew", is_flag=True, help="Make a new VRChat session although one is kept.")
@click.option(
    "--check",
    is_flag=True,
    help="Sign in, say what each group lacks for its features, and end; 1 if one cannot work.",
)
@command_body
async def collector(server_url: str | None, sign_in_anew: bool, check: bool) -> None:
    """Run the collector of one account or several.

    Needs LASTCALL_ACCOUNT and LASTCALL_WORKER_KEY, or tables of accounts, in its settings. It ends with 77 when VRChat
    wants a person to sign in; what restarts it should then leave it down.
    """
    from dataclasses import replace

    from lastcall.collector.config import config_from
    from lastcall.vrchat.errors import ProviderFault

    config = replace(config_from(load(server_url=server_url)), signs_in_anew=sign_in_anew)
    if check:
        from lastcall.collector.checking import check_collector

        sys.exit(await check_collector(config, ask, click.echo))
    from lastcall.collector.main import NOT_SIGNED_IN, run_collector

    try:
        status = await run_collector(config, ask)
    except ProviderFault as fault:
        fail(fault, status=NOT_SIGNED_IN)
    else:
        sys.exit(status)
