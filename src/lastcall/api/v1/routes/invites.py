"""Invites of a club: who was asked in, with which roles."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, field
from msgspec.structs import replace

from lastcall.access.acceptance import accept_invite
from lastcall.access.invites import (
    InviteKind,
    create_invite,
    renew_invite,
    revoke_all_invites,
    revoke_invite,
)
from lastcall.access.queries import InviteState, InviteView, invite, invites_page, uses_of_invite
from lastcall.access.requests import RequestStatus
from lastcall.access.tables import MOST_USES
from lastcall.api.client import client_address
from lastcall.api.v1.answers import answers
from lastcall.api.v1.idempotency import Key, called, once
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.requests import ApiRequest
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, spelled
from lastcall.clubs.roles import ROLES_MOST
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant

TAGS = ["Invites"]
_LISTING = "invites"


class Invite(Shape, frozen=True):
    """An invite as those see it who may make one of its kind. `uses` of `maxUses` are taken; `acceptedBy` is the name
    of the person who used an invite that can be used once."""

    id: Id
    kind: InviteKind
    state: InviteState
    role_ids: list[Id]
    roles: list[str]
    agent_grants: list[AgentGrant]
    email: str | None
    approves: bool
    note: str | None
    max_uses: int
    uses: int
    invited_by: str
    accepted_by: str | None
    created_at: datetime
    expires_at: datetime


class InvitePage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end. A page of a filtered list may be short, even empty,
    and yet have a next one."""

    items: list[Invite]
    next: str | None


class NewInvite(Input, frozen=True):
    """An invite into roles that you may hand on, for people, for an agent or for either. With `email` only a person
    with that address can accept it, once, and it is mailed there where the server sends mail.
    `approves`: whoever accepts is let in by your authority as it is then; otherwise somebody decides. Agents always
    wait, and get at most `agentGrants` when they are approved.
    """

    role_ids: Annotated[list[Id], Meta(max_length=ROLES_MOST)] = field(default_factory=list)
    kind: InviteKind = InviteKind.PERSON
    agent_grants: list[AgentGrant] = field(default_factory=list)
    email: str | None = None
    approves: bool = True
    note: str | None = None
    life_hours: Annotated[int, Meta(ge=1, le=720)] = 168
    max_uses: Annotated[int, Meta(ge=1, le=MOST_USES)] = 1


class InviteMade(Shape, frozen=True):
    """The invite's token is shown this once and stored nowhere; it is null when the call is sent again. Whoever is
    invited opens `/invites/` with the token behind it.
    """

    id: Id
    token: str | None


class InviteUse(Shape, frozen=True):
    """One use of an invite: by a person or an agent, under their name. What it led to is told to those who may see
    join requests, and null for others and for a request that was deleted."""

    number: int
    name: str | None
    agent_name: str | None
    used_at: datetime
    join_request_id: str | None
    status: RequestStatus | None


class InviteUses(Shape, frozen=True):
    """Every use, the latest first."""

    items: list[InviteUse]


class Revoked(Shape, frozen=True):
    """How many invites were taken back."""

    revoked: int


class Accept(Input, frozen=True):
    """The token of an invite: what stands behind `/invites/` in its address."""

    token: Annotated[str, Meta(min_length=1, max_length=100)]


class Accepted(Shape, frozen=True):
    """What the invite turned into: a join request, approved at once where the invite says so."""

    club_id: Id
    join_request_id: Id
    status: RequestStatus


@get("/clubs/{club:str}/invites", tags=TAGS, responses=answers(404))
async def list_invites(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    is_now: Annotated[InviteState | None, QueryParameter(name="state")] = None,
) -> InvitePage:
    """The invites of a club, the newest first; needs `manage_staff`, or `manage_agents` for those that agents can
    use."""
    after = read_cursor(_LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        page = await invites_page(tx, actor, known(club), state=is_now, after=after, limit=limit)
    return InvitePage(
        items=[_invite(view) for view in page.invites],
        next=None if page.next is None else write_cursor(_LISTING, page.next),
    )


@post("/clubs/{club:str}/invites", tags=TAGS, responses=answers(404, 409, body=True))
async def create_one_invite(
    request: ApiRequest,
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    mailer: NamedDependency[Mailer],
    club: PathId,
    data: JSONBody[NewInvite],
    key: Key = None,
) -> InviteMade:
    """Make an invite."""
    club_id = known(club)
    role_ids = [known_in(each, "role_ids") for each in data.role_ids]

    async def make() -> InviteMade:
        made = await create_invite(
            db,
            actor,
            club_id,
            role_ids,
            kind=data.kind,
            agent_grants=data.agent_grants,
            email=data.email,
            approves=data.approves,
            note=data.note,
            life=timedelta(hours=data.life_hours),
            max_uses=data.max_uses,
            mailer=mailer,
            source=client_address(request),
        )
        return InviteMade(id=encode_id(made.id), token=made.token)

    return await once(
        db, actor, called(request), key, data, make, InviteMade, stored=lambda made: replace(made, token=None)
    )


@delete("/clubs/{club:str}/invites/{invite_id:str}", tags=TAGS, responses=answers(404, 409))
async def end_invite(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, invite_id: PathId
) -> None:
    """Take an open invite back. One that was taken back already is nothing to do."""
    await revoke_invite(db, actor, known(club), known(invite_id))


@get("/clubs/{club:str}/invites/{invite_id:str}", tags=TAGS, responses=answers(404))
async def show_invite(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, invite_id: PathId
) -> Invite:
    """One invite."""
    async with db.read() as tx:
        return _invite(await invite(tx, actor, known(club), known(invite_id)))


@get("/clubs/{club:str}/invites/{invite_id:str}/uses", tags=TAGS, responses=answers(404))
async def list_uses(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, invite_id: PathId
) -> InviteUses:
    """Who used an invite, and when."""
    async with db.read() as tx:
        found = await uses_of_invite(tx, actor, known(club), known(invite_id))
    return InviteUses(
        items=[
            InviteUse(
                number=use.number,
                name=use.name,
                agent_name=use.agent_name,
                used_at=use.used_at,
                join_request_id=spelled(use.request_id),
                status=use.status,
            )
            for use in found
        ]
    )


@post("/clubs/{club:str}/invites/{invite_id:str}/renew", tags=TAGS, responses=answers(404, 409))
async def renew_one_invite(
    request: ApiRequest,
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    mailer: NamedDependency[Mailer],
    club: PathId,
    invite_id: PathId,
) -> InviteMade:
    """Make an invite again under a new token, for the uses that are left and as long as before; the old one is
    closed. It is mailed again where it is for an address."""
    made = await renew_invite(
        db, actor, known(club), known(invite_id), mailer=mailer, source=client_address(request)
    )
    return InviteMade(id=encode_id(made.id), token=made.token)


@post("/clubs/{club:str}/invites/revoke", status_code=200, tags=TAGS, responses=answers(404))
async def end_all_invites(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> Revoked:
    """Take every open invite back that you may take back one by one. Who waits already is not touched."""
    return Revoked(revoked=await revoke_all_invites(db, actor, known(club)))


@post("/invites/accept", status_code=200, tags=TAGS, responses=answers(404, 409, body=True))
async def accept_one_invite(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    mailer: NamedDependency[Mailer],
    data: JSONBody[Accept],
) -> Accepted:
    """Accept an invite as the person the token acts for. Doing it again is answered the same."""
    made = await accept_invite(db, actor, data.token, mailer=mailer)
    return Accepted(
        club_id=encode_id(made.club_id), join_request_id=encode_id(made.request_id), status=made.status
    )


def _invite(view: InviteView) -> Invite:
    return Invite(
        id=encode_id(view.id),
        kind=view.kind,
        state=view.state,
        role_ids=[encode_id(each) for each in view.role_ids],
        roles=list(view.roles),
        agent_grants=list(view.agent_grants),
        email=view.email,
        approves=view.approves,
        note=view.note,
        max_uses=view.max_uses,
        uses=view.uses,
        invited_by=view.invited_by,
        accepted_by=view.accepted_by,
        created_at=view.created_at,
        expires_at=view.expires_at,
    )


HANDLERS = (
    list_invites,
    create_one_invite,
    show_invite,
    list_uses,
    renew_one_invite,
    end_all_invites,
    end_invite,
    accept_one_invite,
)
