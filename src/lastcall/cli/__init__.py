"""The ``lastcall`` command: nouns, then verbs. Each noun is one file here.

An error of the house's family is one sentence and an advice on stderr and exit status 1; a wrong option is
status 2.
"""

from __future__ import annotations

import rich_click as click

from lastcall import __version__
from lastcall.cli.account import account
from lastcall.cli.club import club
from lastcall.cli.collector import collector
from lastcall.cli.connection import connection
from lastcall.cli.db import db
from lastcall.cli.demo import demo
from lastcall.cli.fleet import fleet
from lastcall.cli.mail import mail
from lastcall.cli.operation import operation
from lastcall.cli.person import person
from lastcall.cli.retention import retention
from lastcall.cli.serve import serve
from lastcall.cli.sign_in_link import sign_in_link
from lastcall.cli.simulator import simulator

__all__ = ["cli", "main"]


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Settings come from lastcall.toml in the current folder and from LASTCALL_… in the environment.",
)
@click.version_option(__version__, message="lastcall %(version)s")
def cli() -> None:
    """The back office of a VRChat club: who gets in, what gets sent, and by when."""


for _command in (
    serve,
    demo,
    collector,
    simulator,
    person,
    sign_in_link,
    club,
    account,
    connection,
    fleet,
    operation,
    retention,
    mail,
    db,
):
    cli.add_command(_command)


def main() -> None:
    """The console script."""
    cli()
