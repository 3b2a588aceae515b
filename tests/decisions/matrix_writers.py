"""Every writer of what candidates are judged by, one line each: what is there before, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

from tests.decisions.conftest import Desk, Door, agent_invite
from tests.decisions.matrix_house import House

from lastcall.access.acceptance import accept_invite, accept_invite_as_agent
from lastcall.access.deciding import (
    approve_join_request,
    delete_join_request,
    reject_join_request,
    withdraw_join_request,
)
from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import AgentSubject, PersonSubject, record_join_request
from lastcall.access.slack.linking import Issued, issue_link, request_access
from lastcall.clubs.activity import System
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.life import (
    archive_club,
    delete_club,
    pause_club,
    pause_for_budget,
    resume_after_budget,
    resume_club,
    unarchive_club,
)
from lastcall.clubs.queries import read_settings
from lastcall.clubs.service import ClubFields, edit_club
from lastcall.db.database import Database
from lastcall.decisions.approvals.asking import Ask, ask_approval, resubmit, withdraw
from lastcall.decisions.approvals.deciding import approve, reject, request_revision
from lastcall.decisions.questions.deciding import decide
from lastcall.decisions.retention.controls import archive, keep, revive, unkeep
from lastcall.decisions.retention.due import refresh
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.decisions.retention.proposals import ARCHIVE, Proposed, propose_archive
from lastcall.people.tokens import new_token, token_hash
from lastcall.testing.agents import let_in_agent

Act: TypeAlias = Callable[[Database], Awaitable[object]]
Prepare: TypeAlias = Callable[[House], Awaitable[Act]]
SOON, LATER = timedelta(days=50), timedelta(days=5)
"""How old what is written is, and what else waits: so the earliest deadline is that of what is written."""
ROBOT = AgentSubject("robot")
BUDGET = System("budget")


@dataclass(frozen=True)
class Writer:
    """``clause`` is the producer it stands for; ``is_outermost``: it refuses to run in a caller's transaction."""

    clause: str
    prepare: Prepare
    is_outermost: bool = False


async def _two(door: Door) -> UUID:
    await door.waits_since(LATER)
    return await door.waits_since(SOON)


async def _accepts(house: House) -> Act:
    token = await _agent_token(house)
    return lambda db: accept_invite_as_agent(db, token, ROBOT)


async def _agent_token(house: House) -> str:
    made = await create_invite(house.db, house.owner, house.club_id, (), kind=InviteKind.AGENT)
    return made.token


async def _records(house: House) -> Act:
    invite = await agent_invite(house.db, house.owner, house.club_id)
    return lambda db: record_join_request(db, house.club_id, invite, ROBOT)


async def _replays(house: House) -> Act:
    token = await _agent_token(house)
    made = await accept_invite_as_agent(house.db, token, ROBOT)
    await house.door.waits_since(LATER)
    await house.db.pool.execute(
        "update join_requests set activity_at = lastcall_now() - $2::interval where id = $1",
        made.request_id,
        SOON,
    )
    await house.derive(house.door, made.request_id)
    return lambda db: accept_invite_as_agent(db, token, ROBOT, claim_secret=made.claim_secret)


async def _is_let_in(house: House) -> Act:
    await house.door.waits_since(LATER)
    guest = await house.guest()
    made = await create_invite(house.db, house.owner, house.club_id, [house.role])
    return lambda db: accept_invite(db, guest, made.token)


async def _moves(house: House) -> Act:
    item = await _two(house.door)
    return lambda db: house.at(db).move(item)


_WORKSPACE = """
    with team as (
        insert into directory (kind, key, club_id) values ('slack_team', 'T1', $1) on conflict do nothing
    )
    insert into slack_installations (club_id, id, team_id, team_name, token_sealed, role_id, installed_by)
    values ($1, gen_random_uuid(), 'T1', 'Team', '', $2, $3) on conflict do nothing
"""


async def _asks_by_slack(house: House) -> Act:
    await house.raw.execute(_WORKSPACE, house.club_id, house.role, house.owner.person_id)
    guest = await house.guest()
    issued = await issue_link(house.db, "T1", "U1", "guest", token_hash(new_token()))
    assert isinstance(issued, Issued)
    return lambda db: request_access(db, guest, issued.token)


async def _proposes(house: House) -> Act:
    door, desk = house.at(house.db), house.at(house.db, Desk)
    agent, _ = await let_in_agent(house.db, house.club_id, house.owner.person_id)
    items = [
        Proposed(JOIN_REQUEST, await _two(door), 0, "Old."),
        Proposed(APPROVAL, await _two(desk), 0, "Old."),
    ]
    proposal = await propose_archive(house.db, agent, house.club_id, items)
    return lambda db: decide(db, house.owner, house.club_id, proposal, ARCHIVE)


def _decides(decide: Callable[..., Awaitable[None]]) -> Prepare:
    async def prepare(house: House) -> Act:
        item = await _two(house.door)
        return lambda db: decide(db, house.owner, house.club_id, item)

    return prepare


async def _withdraws(house: House) -> Act:
    await house.door.waits_since(LATER)
    guest = await house.guest()
    made = await create_invite(house.db, house.owner, house.club_id, [house.role], approves=False)
    subject = PersonSubject(guest.person_id, None)
    item = await record_join_request(house.db, house.club_id, made.id, subject)
    return lambda db: withdraw_join_request(db, guest, house.club_id, item)


def _club(act: Callable[[Database, UUID], Awaitable[object]], *before: Any) -> Prepare:
    """In a club of its own, whose two items are the earliest."""

    async def prepare(house: House) -> Act:
        door = await house.another_club()
        await _two(door)
        await Desk(door.db, door.owner, door.club_id).waits_since(SOON)
        for step in before:
            await step(house.db, door.club_id)
        return lambda db: act(db, door.club_id)

    return prepare


async def _pauses(db: Database, club_id: UUID) -> None:
    await pause_club(db, None, club_id)


async def _resumes(db: Database, club_id: UUID) -> None:
    await resume_club(db, None, club_id)


async def _archives(db: Database, club_id: UUID) -> None:
    await archive_club(db, None, club_id)


async def _unarchives(db: Database, club_id: UUID) -> None:
    await unarchive_club(db, None, club_id)


async def _deletes(db: Database, club_id: UUID) -> None:
    async with db.read() as tx:
        slug = (await read_settings(tx, club_id)).slug
    await delete_club(db, None, club_id, confirm_slug=slug)


async def _seven_days_more(db: Database, club_id: UUID) -> None:
    async with db.read() as tx:
        now = await read_settings(tx, club_id)
    await edit_club(db, None, club_id, ClubFields(now.name, now.slug, now.zone, 97), now.updated_at)


async def _budget_pauses(db: Database, club_id: UUID) -> None:
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        assert await pause_for_budget(tx, club_id, by=BUDGET)


async def _budget_resumes(db: Database, club_id: UUID) -> None:
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        assert await resume_after_budget(tx, club_id, by=BUDGET)


def _by_hand(made: type[Door], act: Any, *before: Any) -> Prepare:
    async def prepare(house: House) -> Act:
        door = house.at(house.db, made)
        item = await _two(door)
        for version, step in enumerate(before):
            await step(house.db, house.owner, house.club_id, door.kind, item, seen_version=version)
        seen = len(before)
        return lambda db: act(db, house.owner, house.club_id, door.kind, item, seen_version=seen)

    return prepare


async def _asks(house: House) -> Act:
    return lambda db: ask_approval(db, house.staff, house.club_id, Ask("question", "May I?"))


def _approval(act: Callable[[Database, House, UUID], Awaitable[object]]) -> Prepare:
    async def prepare(house: House) -> Act:
        await house.at(house.db, Desk).waits_since(LATER)
        item = await ask_approval(house.db, house.staff, house.club_id, Ask("question", "May I?"))
        async with house.db.transaction() as tx:
            old = "update approvals set activity_at = lastcall_now() - $2::interval where id = $1"
            await tx.raw.execute(old, item, SOON)
            await refresh(tx, house.club_id, [item], kind=APPROVAL)
        return lambda db: act(db, house, item)

    return prepare


WRITERS: dict[str, Writer] = {
    "an agent accepts": Writer("ACC-01", _accepts, is_outermost=True),
    "a request is recorded": Writer("ACC-01", _records),
    "an agent accepts again": Writer("ACC-02", _replays, is_outermost=True),
    "a request is active": Writer("ACC-02", _moves),
    "a person is let in at once": Writer("ACC-03", _is_let_in, is_outermost=True),
    "a request is approved": Writer("ACC-04", _decides(approve_join_request), is_outermost=True),
    "a request is rejected": Writer("ACC-04", _decides(reject_join_request), is_outermost=True),
    "a request is withdrawn": Writer("ACC-19", _withdraws, is_outermost=True),
    "a request is deleted": Writer("ACC-16", _decides(delete_join_request), is_outermost=True),
    "somebody asks by Slack": Writer("ACC-05", _asks_by_slack, is_outermost=True),
    "a club is paused": Writer("ACC-06", _club(_pauses)),
    "a club goes on": Writer("ACC-06", _club(_resumes, _pauses)),
    "a club is archived": Writer("ACC-06", _club(_archives)),
    "a club is brought back": Writer("ACC-06", _club(_unarchives, _archives)),
    "a club is deleted": Writer("ACC-06", _club(_deletes, _archives)),
    "a club keeps longer": Writer("ACC-19", _club(_seven_days_more)),
    "a budget pauses": Writer("ACC-07", _club(_budget_pauses)),
    "a budget lets go on": Writer("ACC-07", _club(_budget_resumes, _budget_pauses)),
    **{
        f"{made.kind.name} {name}": Writer("ACC-08", _by_hand(made, act, *before))
        for made in (Door, Desk)
        for name, act, before in (
            ("kept", keep, ()),
            ("let go", unkeep, (keep,)),
            ("archived", archive, ()),
            ("revived", revive, (archive,)),
        )
    },
    "a proposal is accepted": Writer("ACC-08", _proposes),
    "an approval is asked for": Writer("ACC-19", _asks),
    "an approval is asked for anew": Writer(
        "ACC-19",
        _approval(
            lambda db, house, item: resubmit(
                db, house.staff, house.club_id, item, seen_revision=1, title="May I now?", body=""
            )
        ),
    ),
    "an approval is taken back": Writer(
        "ACC-19", _approval(lambda db, house, item: withdraw(db, house.staff, house.club_id, item))
    ),
    **{
        f"an approval meets {act.__name__}": Writer(
            "ACC-19",
            _approval(
                lambda db, house, item, act=act, more=more: act(  # type: ignore[misc]
                    db, house.owner, house.club_id, item, seen_revision=1, **more
                )
            ),
        )
        for act, more in ((approve, {}), (reject, {}), (request_revision, {"note": "Say why."}))
    },
}
"""By what happens."""
