"""Whoever the token acts for: their sessions and tokens."""

from __future__ import annotations

from datetime import datetime

from litestar import delete, get
from litestar.di import NamedDependency
from litestar.response import Stream

from lastcall.api.files import file_of
from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, PathId, Shape, known
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor
from lastcall.people.api_tokens import revoke_token, tokens_of
from lastcall.people.erasing import export_person
from lastcall.people.scopes import Scope
from lastcall.people.sessions import Way, end_other_sessions, end_session_by_id, sessions_of

TAGS = ["Me"]


class Me(Shape, frozen=True):
    """Whoever the token acts for, and what it was made for."""

    id: Id
    display_name: str
    is_operator: bool
    scopes: list[Scope]


class Session(Shape, frozen=True):
    """A browser that is signed in."""

    id: Id
    user_agent: str
    signed_in_by: Way
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


class Sessions(Shape, frozen=True):
    """The one last used first. There is no further page."""

    items: list[Session]


class Token(Shape, frozen=True):
    """A live API token; `hint` is how it begins."""

    id: Id
    name: str
    hint: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


class Tokens(Shape, frozen=True):
    """The newest first. There is no further page."""

    items: list[Token]


class Ended(Shape, frozen=True):
    """How many sessions ended."""

    ended: int


@get("/me", tags=TAGS, responses=answers())
async def show_me(actor: NamedDependency[Actor]) -> Me:
    """Whoever the token acts for. Every token may ask, whatever it was made for."""
    return Me(
        id=encode_id(actor.person_id),
        display_name=actor.display_name,
        is_operator=actor.is_operator,
        scopes=sorted(actor.scopes or ()),
    )


@get("/me/sessions", tags=TAGS, responses=answers())
async def list_sessions(db: NamedDependency[Database], actor: NamedDependency[Actor]) -> Sessions:
    """The browsers in which you are signed in."""
    async with db.read() as tx:
        found = await sessions_of(tx, actor)
    return Sessions(
        items=[
            Session(
                id=encode_id(view.id),
                user_agent=view.user_agent,
                signed_in_by=view.signed_in_by,
                created_at=view.created_at,
                last_seen_at=view.last_seen_at,
                expires_at=view.expires_at,
            )
            for view in found
        ]
    )


@delete("/me/sessions/{session_id:str}", tags=TAGS, responses=answers(404))
async def end_session(
    db: NamedDependency[Database], actor: NamedDependency[Actor], session_id: PathId
) -> None:
    """Sign one browser out. One that is signed out already is nothing to do."""
    await end_session_by_id(db, actor, known(session_id))


@delete("/me/sessions", status_code=200, tags=TAGS, responses=answers())
async def end_sessions(db: NamedDependency[Database], actor: NamedDependency[Actor]) -> Ended:
    """Sign every browser out. API tokens stay."""
    return Ended(ended=await end_other_sessions(db, actor))


@get("/me/tokens", tags=TAGS, responses=answers())
async def list_tokens(db: NamedDependency[Database], actor: NamedDependency[Actor]) -> Tokens:
    """Your live API tokens. A new one is made on your account page, by a person in a browser."""
    async with db.read() as tx:
        found = await tokens_of(tx, actor)
    return Tokens(
        items=[
            Token(
                id=encode_id(view.id),
                name=view.name,
                hint=view.hint,
                scopes=sorted(view.scopes),
                created_at=view.created_at,
                expires_at=view.expires_at,
                last_used_at=view.last_used_at,
            )
            for view in found
        ]
    )


@delete("/me/tokens/{token_id:str}", tags=TAGS, responses=answers(404))
async def end_token(db: NamedDependency[Database], actor: NamedDependency[Actor], token_id: PathId) -> None:
    """Revoke an API token at once, this one too. One that is revoked already is nothing to do."""
    await revoke_token(db, actor, known(token_id))


@get("/me/export", media_type="application/x-ndjson", tags=TAGS, responses=answers())
async def export_me(db: NamedDependency[Database], actor: NamedDependency[Actor]) -> Stream:
    """Everything that is kept about you, one JSON object a line, without secrets and without other people. It is
    recorded in the audit.
    """
    return await file_of(export_person(db, actor, actor.person_id))


HANDLERS = (show_me, list_sessions, end_session, end_sessions, list_tokens, end_token, export_me)
