"""``lastcall operation``: why an action stands as it does, and settling by hand what a deadline should have settled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rich_click as click

from lastcall.cli.running import command_body, go_through, instant, opened_database, run_owner

if TYPE_CHECKING:
    from lastcall.operations.host import HostView

ID = click.argument("operation_id", metavar="ID")
JSON = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")


@click.group()
def operation() -> None:
    """Actions on VRChat of all clubs. ID is the end of an action's address."""


@operation.command()
@ID
@JSON
@command_body
async def explain(operation_id: str, as_json: bool) -> None:
    """Show one action: its state, why, what comes next and when, and what has happened to it."""
    from lastcall.db.ids import decode_id
    from lastcall.operations.host import host_view

    async with opened_database() as database, database.read() as tx:
        found = await host_view(tx, decode_id(operation_id))
    click.echo(_json(_explained(found)) if as_json else _text(found))


@operation.command()
@ID
@click.option("--nonce", required=True, metavar="N", help="Of the submission, as `explain` shows it.")
@click.option("--expiry", required=True, metavar="T", help="Of the submission, as `explain` shows it.")
@DRY_RUN
@command_body
async def recover(operation_id: str, nonce: str, expiry: str, dry_run: bool) -> None:
    """Record that the outcome of one submission is unknown, where no deadline did so. Nothing is sent again."""
    from lastcall.db.ids import decode_id
    from lastcall.operations.services.recover import recover as recover_one

    until = instant(expiry, "expiry", "Copy it from `lastcall operation explain`.")
    asked = decode_id(operation_id), decode_id(nonce), until
    async with opened_database() as database:
        found = await recover_one(database, *asked, dry_run=dry_run)
        if not dry_run:
            await go_through(database)
    if dry_run:
        click.echo(f"{operation_id} would end as “Outcome unknown”. Nothing was changed.")
    else:
        click.echo(f"{operation_id} ended as “{found.row.state.label}”. {found.explanation.next}")


@operation.command()
@DRY_RUN
@JSON
@command_body
async def late(dry_run: bool, as_json: bool) -> None:
    """Settle now whatever was not sent within 15 minutes of its time, in all clubs; the server does so by itself."""
    from lastcall.deadlines.batch import BatchOwner
    from lastcall.operations.host import late_counts
    from lastcall.operations.owners.lateness import Late
    from lastcall.operations.signals import LATE_CLAIMED, LATE_PENDING

    settled: dict[str, int] = {}
    async with opened_database() as database:
        async with database.read() as tx:
            found = await late_counts(tx)
        if not dry_run:
            rows = Late(database, "pending"), Late(database, "claimed")
            for name, source in zip((LATE_PENDING, LATE_CLAIMED), rows, strict=True):
                await run_owner(BatchOwner(name, source))
            await go_through(database)
            settled = dict(rows[0].settled + rows[1].settled)
    if as_json:
        click.echo(_json({"late": found, "settled": settled, "isDryRun": dry_run}))
        return
    click.echo(f"Late: {found['pending']} waiting, {found['claimed']} being prepared.")
    if dry_run:
        click.echo("Nothing was changed.")
    elif settled:
        click.echo(
            "Settled: " + ", ".join(f"{count} {_SETTLED[state]}" for state, count in settled.items()) + "."
        )


_SETTLED = {
    "missed": "missed",
    "cancelled": "cancelled with their event",
    "pending": "moved with their event to a later time",
}


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


def _explained(found: HostView) -> dict[str, Any]:
    """As the HTTP API explains it, with the club and the claim."""
    import msgspec

    from lastcall.api.v1.routes.operation_story import explanation_shape
    from lastcall.db.ids import encode_id

    shape = explanation_shape(found.row, found.explanation, found.happened)
    claim = None
    if found.nonce is not None:
        claim = {"nonce": encode_id(found.nonce), "expiresAt": found.expires_at}
    return {**msgspec.to_builtins(shape), "club": found.club_slug, "claim": claim}


def _text(found: HostView) -> str:
    from lastcall.db.ids import encode_id

    row, told = found.row, found.explanation
    about = row.target_user_id or row.title or ""
    lines = {
        "action": f"{row.kind.words.label} {about}".rstrip(),
        "club": f"/c/{found.club_slug}",
        "state": row.state.label,
        "why": "" if told.why is None else f"{told.why} ({row.code})",
        "next": told.next,
        "at": "" if told.next_at is None else _shown(told.next_at),
        "due": _shown(row.due_at),
        "revision": f"{row.revision}, under the authority of {row.actor_name}",
    }
    if found.nonce is not None and found.expires_at is not None and not row.state.is_terminal:
        lines["nonce"] = encode_id(found.nonce)
        lines["expiry"] = found.expires_at.astimezone(UTC).isoformat()
    told_lines = [f"{name:<9} {text}" for name, text in lines.items() if text]
    for moment in found.happened:
        words = [moment.what.value.replace("_", " ").capitalize()]
        if moment.state is not None:
            words.append(f"as {moment.state.label}")
        if moment.by_name is not None:
            words.append(f"by {moment.by_name}")
        told_lines.append(f"{_shown(moment.at)}  {' '.join(words)}")
    return "\n".join(told_lines)


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
