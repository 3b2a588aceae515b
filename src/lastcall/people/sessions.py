"""Server-side sessions: a row each, found by the hash of a token that only the browser has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import ColumnElement, insert, select, update

from lastcall.db.bus import CacheDrop
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.holding import hold_actor
from lastcall.people.scopes import Scope
from lastcall.people.tables import SignInSession
from lastcall.people.tokens import new_token, token_hash

SESSION_LIFE = timedelta(days=14)
RECENT = timedelta(minutes=10)
"""How long a sign-in or a confirmation is enough for dangerous acts."""
SEEN_EVERY = timedelta(minutes=5)
"""How fine it is known when a session was last used: a row is not written at every request."""
USER_AGENT_LENGTH = 200  # characters
SESSION_CACHE = "session"  # the cache named in CacheDrop; whoever holds a stream open for a session ends it

_ACTOR = """
    select p.id, p.display_name, p.is_operator, s.id as session_id,
           s.authenticated_at > (select lastcall_now()) - $2::interval as is_recent,
           s.last_seen_at < (select lastcall_now()) - $3::interval as is_stale
    from sessions s
    join people p on p.id = s.person_id
    where s.token_hash = $1
      and s.revoked_at is null
      and s.expires_at > (select lastcall_now())
      and p.blocked_at is null
"""
_SEEN = """
    update sessions set last_seen_at = (select lastcall_now())
    where id = $1 and last_seen_at < (select lastcall_now()) - $2::interval
"""


class Way(StrEnum):
    """How a person signed in."""

    LINK = "link"
    CODE = "code"
    PASSKEY = "passkey"
    PROVIDER = "provider"
    COMMAND_LINE = "command line"
    """A link that the host's command line printed."""

    @property
    def label(self) -> str:
        """Finishes *Signed in by …*."""
        return _WAYS[self]


_WAYS = {
    Way.LINK: "a link in a mail",
    Way.CODE: "a code from a mail",
    Way.PASSKEY: "a passkey",
    Way.PROVIDER: "a linked account",
    Way.COMMAND_LINE: "a link from whoever runs the server",
}


@dataclass(frozen=True)
class Browser:
    """The browser that asks. ``key`` is its secret (the form cookie, or its session's token), ``session`` the
    token of the session that a new sign-in replaces, ``source`` the address that limits count."""

    key: str = ""
    user_agent: str = ""
    session: str | None = None
    source: str = ""


@dataclass(frozen=True)
class SessionView:
    """A session as its person sees it."""

    id: UUID
    user_agent: str
    signed_in_by: Way
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    is_this: bool


def session_key(session_token: str) -> str:
    """The key under which ``CacheDrop`` names a session whose authority ended: the hex of its hash."""
    return token_hash(session_token).hex()


async def open_session(tx: Transaction, person_id: UUID, way: Way, browser: Browser) -> tuple[str, UUID]:
    """A new session in the caller's transaction; answers its token, which is stored nowhere, and its id.

    The token is always new, and the session it replaces in this browser ends: what somebody planted there
    before the sign-in is worth nothing after it.
    """
    if browser.session:
        await _end(tx, SignInSession.token_hash == token_hash(browser.session))
    token, session_id = new_token(), new_id()
    await tx.execute(
        insert(SignInSession).values(
            id=session_id,
            person_id=person_id,
            token_hash=token_hash(token),
            user_agent=_cut(browser.user_agent),
            signed_in_by=way,
            expires_at=NOW + SESSION_LIFE,
        )
    )
    await audit(tx, person_id, "person.signed_in", str(person_id), way=way.value)
    return token, session_id


async def actor_of_session(db: Database, session_token: str) -> Actor | None:
    """Who this session belongs to, or nobody: unknown, ended, expired and blocked are alike.

    One statement by a unique key a request. Nothing is kept in memory, so an ended session or a blocked
    person has no authority from the next request on, in every process.
    """
    row = await db.pool.fetchrow(_ACTOR, token_hash(session_token), RECENT, SEEN_EVERY)
    if row is None:
        return None
    if row["is_stale"]:
        await db.pool.execute(_SEEN, row["session_id"], SEEN_EVERY)
    return Actor(
        row["id"],
        row["display_name"],
        row["is_operator"],
        session_id=row["session_id"],
        is_recent=row["is_recent"],
    )


async def confirm_session(tx: Transaction, actor: Actor, way: Way) -> None:
    """The person showed again that it is them: their session is recent from now on."""
    await tx.execute(
        update(SignInSession)
        .where(SignInSession.id == actor.session_id, SignInSession.revoked_at.is_(None))
        .values(authenticated_at=NOW)
    )
    await audit(tx, actor.person_id, "person.confirmed", str(actor.person_id), way=way.value)


async def sessions_of(tx: Reader, actor: Actor) -> list[SessionView]:
    """The actor's own live sessions, the one last used first."""
    actor.require_scope(Scope.READ)
    rows = await tx.execute(
        select(
            SignInSession.id,
            SignInSession.user_agent,
            SignInSession.signed_in_by,
            SignInSession.created_at,
            SignInSession.last_seen_at,
            SignInSession.expires_at,
        )
        .where(
            SignInSession.person_id == actor.person_id,
            SignInSession.revoked_at.is_(None),
            SignInSession.expires_at > NOW,
        )
        .order_by(SignInSession.last_seen_at.desc(), SignInSession.id.desc())
    )
    return [
        SessionView(
            **(row._asdict() | {"signed_in_by": Way(row.signed_in_by)}), is_this=row.id == actor.session_id
        )
        for row in rows.all()
    ]


async def end_session(db: Database, session_token: str) -> None:
    """Sign this browser out. An unknown or ended session is nothing to do."""
    async with db.transaction() as tx:
        for person_id in await _end(tx, SignInSession.token_hash == token_hash(session_token)):
            await audit(tx, person_id, "person.signed_out", str(person_id))


async def end_session_by_id(db: Database, actor: Actor, session_id: UUID) -> None:
    """Sign one of the actor's own browsers out. ``NotFound`` for anybody else's; ended is nothing to do."""
    actor.require_scope(Scope.ACCOUNT)
    mine = (SignInSession.id == session_id) & (SignInSession.person_id == actor.person_id)
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        if await tx.scalar(select(SignInSession.id).where(mine)) is None:
            raise NotFound("session_unknown", "You have no such session.", advice="Reload the page.")
        if await _end(tx, mine):
            await audit(
                tx, actor.person_id, "person.session_ended", str(actor.person_id), session=str(session_id)
            )


async def end_other_sessions(db: Database, actor: Actor) -> int:
    """Sign the actor out everywhere but here; answers how many sessions ended."""
    actor.require_scope(Scope.ACCOUNT)
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        return await _end_many(db, actor.person_id, SignInSession.id.is_distinct_from(actor.session_id))


async def end_all_sessions(db: Database, person_id: UUID) -> int:
    """Sign the person out everywhere; answers how many sessions ended."""
    return await _end_many(db, person_id)


async def _end_many(db: Database, person_id: UUID, *which: ColumnElement[bool]) -> int:
    async with db.transaction() as tx:
        ended = await _end(tx, SignInSession.person_id == person_id, *which)
        if ended:
            await audit(tx, person_id, "person.signed_out_everywhere", str(person_id), sessions=len(ended))
    return len(ended)


async def _end(tx: Transaction, *which: ColumnElement[bool]) -> list[UUID]:
    """End these sessions, tell whoever holds a stream open for one, and answer whose they were."""
    rows = (
        await tx.execute(
            update(SignInSession)
            .where(*which, SignInSession.revoked_at.is_(None))
            .values(revoked_at=NOW)
            .returning(SignInSession.token_hash, SignInSession.person_id)
        )
    ).all()
    for row in rows:
        tx.publish(CacheDrop(SESSION_CACHE, row.token_hash.hex()))
    return [row.person_id for row in rows]


def _cut(user_agent: str) -> str:
    return "".join(c for c in user_agent if c.isprintable())[:USER_AGENT_LENGTH]
