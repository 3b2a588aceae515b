"""``lastcall retention``: what is archived when nobody decides it, when, and why an item is not."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import rich_click as click

from lastcall.cli.running import command_body, instant, opened_database, run_owner

if TYPE_CHECKING:
    from lastcall.decisions.retention.explain import Explanation
    from lastcall.decisions.retention.host import Scheduled

KIND = click.option("--kind", metavar="KIND", help="Only items of this kind, like join_request.")
PAGE = 100
"""Lines that are read at once."""


@click.group()
def retention() -> None:
    """Items that nobody decides: archived after the days that their club has set."""


@retention.command()
@KIND
@click.option(
    "--limit", default=PAGE, show_default=True, type=click.IntRange(1, 10_000), help="Lines at most."
)
@command_body
async def due(kind: str | None, limit: int) -> None:
    """Show what will be archived by itself in all clubs, the earliest first."""
    from lastcall.decisions.retention.host import kinds_named, scheduled

    found: list[Scheduled] = []
    async with opened_database() as database, database.read() as tx:
        for one in kinds_named(kind):
            found += await scheduled(tx, one, limit=limit)
    found.sort(key=lambda each: (each.found_at, each.explanation.id))
    for each in found[:limit]:
        click.echo(_line(each))
    if not found:
        click.echo("Nothing waits that would be archived by itself.")


@retention.command("next")
@command_body
async def next_() -> None:
    """Show the next deadline of each kind, by the database's clock."""
    from lastcall.decisions.retention.host import next_due

    async with opened_database() as database, database.read() as tx:
        found = await next_due(tx)
    for owner, deadline in found.deadlines.items():
        click.echo(f"{owner:<24} {_time(deadline) if deadline else 'nothing'}")
    if found.refreshes:
        click.echo(f"Clubs that changed and whose items have not followed yet: {found.refreshes}")


@retention.command()
@click.argument("slug", metavar="CLUB")
@click.argument("kind")
@click.argument("item_id", metavar="ID")
@command_body
async def explain(slug: str, kind: str, item_id: str) -> None:
    """Say when one item of a club will be archived by itself, or why it will not. KIND is like join_request."""
    from lastcall.clubs.queries import club_at
    from lastcall.db.ids import decode_id
    from lastcall.decisions.retention.explain import explain as explain_items
    from lastcall.decisions.retention.kinds import kind_named

    asked, wanted = decode_id(item_id), kind_named(kind)
    async with opened_database() as database, database.read() as tx:
        club_id = (await club_at(tx, slug)).id
        found = await explain_items(tx, club_id, wanted, [asked])
    if asked not in found:
        raise wanted.unknown()
    for key, value in _facts(found[asked]).items():
        click.echo(f"{key:<14} {value}")


@retention.command("dry-run")
@KIND
@click.option("--at", metavar="TIME", help="As if it were then, like 2027-01-31T00:00Z; now by default.")
@command_body
async def dry_run(kind: str | None, at: str | None) -> None:
    """Show what would be archived, and change nothing."""
    from lastcall.decisions.retention.host import kinds_named, next_due, scheduled

    count = 0
    async with opened_database() as database, database.read() as tx:
        upto = instant(at, "at", "Write it like 2027-01-31T00:00Z.") if at else (await next_due(tx)).now
        for one in kinds_named(kind):
            after = None
            while page := await scheduled(tx, one, upto=upto, after=after, limit=PAGE):
                for found in page:
                    # What the facts refuse by now is found, looked at and left.
                    if found.explanation.due_at is not None and found.explanation.due_at <= upto:
                        click.echo(_line(found))
                        count += 1
                after = page[-1].cursor
    click.echo(f"Would be archived: {count}. Nothing was changed.")


@retention.command()
@KIND
@command_body
async def run(kind: str | None) -> None:
    """Archive now whatever is due, in all clubs; the server does so by itself."""
    from lastcall.deadlines.sweep import SweepOwner
    from lastcall.decisions.retention.host import kinds_named
    from lastcall.decisions.retention.refreshes import retention_refresh_owner
    from lastcall.decisions.retention.sweep import DueItems

    async with opened_database() as database:
        await run_owner(retention_refresh_owner(database))
        for one in kinds_named(kind):
            items = DueItems(database, one)
            await run_owner(SweepOwner(one.owner, items))
            click.echo(f"{one.name:<14} archived {items.archived}")


def _line(found: Scheduled) -> str:
    from lastcall.db.ids import encode_id

    item = found.explanation
    return f"{_time(found.found_at)}  {found.club:<24} {item.kind.name:<14} {encode_id(item.id)}"


def _facts(found: Explanation) -> dict[str, Any]:
    view, days = found.retention, found.retention_days
    facts = {
        "outlook": found.outlook.words,
        "archives at": _time(found.due_at) if found.due_at else "never, as things stand",
        "status": found.status,
        "last activity": _time(found.activity_at),
        "idle since": _time(found.idle_since),
        "club archives": f"after {days} days" if days else "nothing",
        "version": view.version,
    }
    if view.archived_at:
        facts["archived"] = f"{_time(view.archived_at)} by {found.archived_by or 'itself'}"
    return facts


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
