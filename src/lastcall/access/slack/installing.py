"""Putting the app into a club's workspace, and taking it out again.

Somebody of the club goes to Slack with a state that only their browser can bring back; what Slack says is asked for
outside of any transaction, and then judged anew.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import delete, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_once

from lastcall.access.policy import handed_on
from lastcall.access.slack.api import Installed, SlackApi
from lastcall.access.slack.linking import TEAM_DIRECTORY
from lastcall.access.slack.tables import SlackInstallation, SlackPerson
from lastcall.access.slack.vault import Vault
from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.activity import System, log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_open, require_staff
from lastcall.clubs.tables import Club, StaffRole
from lastcall.db.database import Database
from lastcall.db.ids import decode_id, encode_id, new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

SLACK = System("slack")
STATE_LIFE = timedelta(minutes=10)
"""From the button here to Slack's answer."""
BACK = "/slack/installed"

log_line = structlog.get_logger()


@dataclass(frozen=True)
class Slack:
    """The app, as the settings name it, and the key for its tokens. ``back`` is the whole address of ``BACK``."""

    api: SlackApi
    vault: Vault
    back: str


@dataclass(frozen=True)
class SlackView:
    """The workspace of a club. ``is_linked`` says whether the reader is known there."""

    team_id: str
    team_name: str
    role: str
    installed_at: datetime
    linked: int
    is_linked: bool


async def slack_of(tx: Reader, actor: Actor, club_id: UUID) -> SlackView | None:
    """The club's workspace, for its staff."""
    await require_staff(tx, actor, club_id, scope=Scope.READ)
    row = (
        await tx.execute(
            select(
                SlackInstallation.team_id,
                SlackInstallation.team_name,
                SlackInstallation.installed_at,
                StaffRole.name,
            )
            .join(
                StaffRole,
                (StaffRole.club_id == SlackInstallation.club_id)
                & (StaffRole.id == SlackInstallation.role_id),
            )
            .where(SlackInstallation.club_id == club_id)
        )
    ).one_or_none()
    if row is None:
        return None
    found = await tx.execute(select(SlackPerson.person_id).where(SlackPerson.club_id == club_id))
    linked = set(found.scalars())
    return SlackView(
        row.team_id, row.team_name, row.name, row.installed_at, len(linked), actor.person_id in linked
    )


async def begin_install(
    db: Database,
    slack: Slack,
    actor: Actor,
    club_id: UUID,
    role_id: UUID,
    browser: bytes,
    clock: Clock = SYSTEM_CLOCK,
) -> str:
    """The address at Slack where the actor puts the app into the club's workspace. ``role_id`` is what people who ask
    over Slack are to hold.

    Needs ``manage_staff`` and a role that the actor may hand on (``NotAllowed``). ``browser`` stands for the browser,
    which alone can come back.
    """
    async with db.read() as tx:
        await _judge(tx, actor, club_id, role_id)
    ends_at = int((clock.wall() + STATE_LIFE).timestamp())
    said = f"{encode_id(club_id)}.{encode_id(role_id)}.{ends_at}"
    return slack.api.install_address(slack.back, f"{said}.{_seal(slack, actor, browser, said)}")


async def finish_install(
    db: Database,
    slack: Slack,
    actor: Actor,
    code: str,
    state: str,
    browser: bytes,
    clock: Clock = SYSTEM_CLOCK,
) -> str:
    """Take up what Slack sent the browser back with; answers the club's slug. It replaces what the club had.

    Raises ``Invalid`` for a state that is not this browser's or too old, ``NotFound`` for a code that Slack does not
    take, ``Unavailable`` when Slack does not answer, ``Conflict`` for another club's workspace, and what
    ``begin_install`` raises.
    """
    actor.require_scope(Scope.ACCESS)
    club_id, role_id = _opened(slack, actor, state, browser, clock)
    async with db.read() as tx:
        await _judge(tx, actor, club_id, role_id)
    installed = await slack.api.exchange(code, slack.back)
    sealed = slack.vault.seal(club_id, installed.token)
    async with db.transaction(outermost=True) as tx:
        await _judge(tx, actor, club_id, role_id)
        await require_open(tx, club_id)
        await _take_team(tx, club_id, installed)
        values = {"club_id": club_id, "id": new_id(), "team_id": installed.team_id}
        values |= {"team_name": installed.team_name, "token_sealed": sealed, "role_id": role_id}
        await tx.execute(insert(SlackInstallation).values(installed_by=actor.person_id, **values))
        await log(tx, club_id, actor, "slack.connected", "club", club_id, {"team": installed.team_id})
        slug: str = (await tx.execute(select(Club.slug).where(Club.id == club_id))).scalar_one()
    return slug


async def remove_install(db: Database, slack: Slack | None, actor: Actor, club_id: UUID) -> None:
    """Take the app out of the club: its links end, and nobody is linked any more. Slack is told afterwards, and when it
    does not answer, whoever runs the workspace removes the app there.

    Needs ``manage_staff``. Nothing happens in a club without one.
    """
    async with db.transaction(outermost=True) as tx:
        await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.ACCESS)
        sealed = await _remove(tx, club_id)
        if sealed is None:
            return
        await log(tx, club_id, actor, "slack.disconnected", "club", club_id)
    if slack is not None:
        try:
            await slack.api.revoke(slack.vault.open(club_id, sealed))
        except LastcallError as error:
            log_line.warning("slack_token_not_revoked", club=encode_id(club_id), error=error.sentence)


async def team_removed(db: Database, team_id: str, at: datetime) -> None:
    """Slack says that the app was taken out of the workspace at that time. An installation made since is left alone, so
    the news may come late or twice."""
    async with db.transaction(outermost=True) as tx:
        club_id = await tx.scalar(
            select(SlackInstallation.club_id)
            .join(Directory, Directory.club_id == SlackInstallation.club_id)
            .where(
                Directory.kind == TEAM_DIRECTORY,
                Directory.key == team_id,
                SlackInstallation.installed_at <= at,
            )
            .with_for_update(of=SlackInstallation)
        )
        if club_id is not None:
            await _remove(tx, club_id)
            await log(tx, club_id, SLACK, "slack.disconnected", "club", club_id)


async def _judge(tx: Reader, actor: Actor, club_id: UUID, role_id: UUID) -> None:
    await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.ACCESS)
    if not await handed_on(tx, club_id, actor.person_id, [role_id]):
        raise NotAllowed(
            "role_not_assignable", "None of your roles may hand this role on.", advice="Choose another role."
        )


async def _take_team(tx: Transaction, club_id: UUID, installed: Installed) -> None:
    """Let go of what the club had, and take the workspace for it."""
    await _remove(tx, club_id)
    taken = {"kind": TEAM_DIRECTORY, "key": installed.team_id, "club_id": club_id}
    made = await tx.scalar(
        insert_once(Directory).values(taken).on_conflict_do_nothing().returning(Directory.key)
    )
    if made is None:
        raise Conflict(
            "slack_team_taken",
            "Another club here is connected to this workspace.",
            advice="Disconnect it there first, or use another workspace.",
        )


async def _remove(tx: Transaction, club_id: UUID) -> bytes | None:
    """The sealed token of what was removed. Links and people go with it."""
    sealed: bytes | None = await tx.scalar(
        delete(SlackInstallation)
        .where(SlackInstallation.club_id == club_id)
        .returning(SlackInstallation.token_sealed)
    )
    await tx.execute(delete(Directory).where(Directory.kind == TEAM_DIRECTORY, Directory.club_id == club_id))
    return sealed


def _seal(slack: Slack, actor: Actor, browser: bytes, said: str) -> str:
    who = actor.person_id.bytes + browser + said.encode()
    return hmac.digest(slack.api.client_secret.encode(), b"slack install " + who, "sha256").hex()


def _opened(slack: Slack, actor: Actor, state: str, browser: bytes, clock: Clock) -> tuple[UUID, UUID]:
    said, _, seal = state.rpartition(".")
    if hmac.compare_digest(seal.encode(), _seal(slack, actor, browser, said).encode()):
        club, role, ends_at = said.split(".")
        if clock.wall().timestamp() < int(ends_at):
            return decode_id(club), decode_id(role)
    raise Invalid(
        "slack_state_wrong",
        "This did not begin in this browser, or too long ago.",
        advice="Begin again on the club's Slack page.",
    )
