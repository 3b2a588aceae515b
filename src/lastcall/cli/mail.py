"""``lastcall mail``: try the mail server, look at what became of mails, hand in what came back."""

from __future__ import annotations

import sys

import rich_click as click

from lastcall.cli.running import command_body, opened_database
from lastcall.settings import load

NEWEST = 50  # rows


@click.group()
def mail() -> None:
    """Outgoing mail. Each is tried at most once; what it said is kept nowhere."""


@mail.command()
@click.argument("address")
@command_body
async def test(address: str) -> None:
    """Send a mail to ADDRESS now, and say what the mail server answered."""
    from lastcall.app import mailer
    from lastcall.errors import Unavailable
    from lastcall.mail.messages import Mail
    from lastcall.mail.states import MailState
    from lastcall.mail.words import say

    async with opened_database() as database:
        outcome = await mailer(load(), database).send_now(
            Mail(
                kind="test",
                to=address,
                subject=say("Mail from Lastcall arrives"),
                paragraphs=(
                    say("You asked for this mail with `lastcall mail test`. Nothing else is to be done."),
                ),
            )
        )
    if outcome.state is not MailState.SENT:
        what = "may or may not have left" if outcome.state is MailState.UNKNOWN else "was not sent"
        raise Unavailable(
            "mail_not_sent",
            f"The mail {what}: {outcome.error}.",
            advice="Check LASTCALL_MAIL_URL and the mail server's own log.",
        )
    click.echo(f"The mail server took the mail for {address}. Look whether it arrived, and not as spam.")


@mail.command()
@command_body
async def bounced() -> None:
    """Read a delivery report from standard input and mark the mail that it is about as bounced."""
    from lastcall.mail.bounces import REPORT_LIMIT, read_bounce, record_bounce

    bounce = read_bounce(sys.stdin.buffer.read(REPORT_LIMIT + 1))
    if not bounce.is_final:
        click.echo("The report is not about a failure, so nothing was changed.")
        return
    async with opened_database() as database:
        await record_bounce(database, bounce)
    click.echo(f"Marked as bounced: {bounce.reason}")


@mail.command("list")
@click.option("--trouble", is_flag=True, help="Only what failed, came back or is unknown.")
@command_body
async def list_(trouble: bool) -> None:
    """Show the newest mails and what became of them."""
    from lastcall.mail.queries import mails

    async with opened_database() as database, database.read() as tx:
        found = await mails(tx, only_trouble=trouble, limit=NEWEST)
    for one in found:
        state = "bounced" if one.bounced_at else one.state
        click.echo(
            f"{one.created_at:%Y-%m-%d %H:%M}Z  {state:<8} {one.kind:<20} {one.address}  {one.error or ''}".rstrip()
        )
    if not found:
        click.echo("There is none.")
