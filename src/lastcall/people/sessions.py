"""Server-side sessions: a row each, found by the hash of a token that only the browser has."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import insert, update

from lastcall.db.bus import CacheDrop
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.tables import SignInSession
from lastcall.people.tokens import new_token, token_hash

SESSION_LIFE = timedelta(days=14)
_ACTOR = """
    select p.id, p.display_name, p.is_operator
    from sessions s
    join people p on p.id = s.person_id
    where s.token_hash = $1
      and s.revoked_at is null
      and s.expires_at > (select lastcall_now())
      and p.blocked_at is null
"""
SESSION_CACHE = "session"  # the cache named in CacheDrop; whoever holds a stream open for a session ends it


def session_key(session_token: str) -> str:
    """The key under which ``CacheDrop`` names a session whose authority ended: the hex of its hash."""
    return token_hash(session_token).hex()


async def open_session(tx: Transaction, person_id: UUID) -> str:
    """A new session in the caller's transaction; answers its token, which is stored nowhere."""
    token = new_token()
    await tx.execute(
        insert(SignInSession).values(
            id=new_id(), person_id=person_id, token_hash=token_hash(token), expires_at=NOW + SESSION_LIFE
        )
    )
    return token


async def actor_of_session(db: Database, session_token: str) -> Actor | None:
    """Who this session belongs to, or nobody: unknown, ended, expired and blocked are alike.

    One statement by a unique key a request. Nothing is kept in memory, so an ended session or a blocked
    person has no authority from the next request on, in every process.
    """
    row = await db.pool.fetchrow(_ACTOR, token_hash(session_token))
    return None if row is None else Actor(row["id"], row["display_name"], row["is_operator"])


async def end_session(db: Database, session_token: str) -> None:
    """Sign this browser out. An unknown or ended session is nothing to do."""
    async with db.transaction() as tx:
        person_id = await tx.scalar(
            update(SignInSession)
            .where(SignInSession.token_hash == token_hash(session_token), SignInSession.revoked_at.is_(None))
            .values(revoked_at=NOW)
            .returning(SignInSession.person_id)
        )
        if person_id is None:
            return
        tx.publish(CacheDrop(SESSION_CACHE, session_key(session_token)))
        await audit(tx, person_id, "person.signed_out", str(person_id))


async def end_all_sessions(db: Database, person_id: UUID) -> int:
    """Sign the person out everywhere; answers how many sessions ended."""
    async with db.transaction() as tx:
        ended = (
            await tx.execute(
                update(SignInSession)
                .where(SignInSession.person_id == person_id, SignInSession.revoked_at.is_(None))
                .values(revoked_at=NOW)
                .returning(SignInSession.token_hash)
            )
        ).all()
        for (hashed,) in ended:
            tx.publish(CacheDrop(SESSION_CACHE, hashed.hex()))
        if ended:
            await audit(tx, person_id, "person.signed_out_everywhere", str(person_id), sessions=len(ended))
    return len(ended)
