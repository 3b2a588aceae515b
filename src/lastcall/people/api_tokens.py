"""API tokens: made by a person in a browser, shown once, stored as a hash, good for some scopes until a day."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, func, insert, select, update

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Invalid, NotFound
from lastcall.mail.mailer import Mailer
from lastcall.names import valid_name
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.holding import hold_actor
from lastcall.people.mails import TOKEN_CREATED, notify
from lastcall.people.scopes import Scope
from lastcall.people.tables import ApiToken
from lastcall.people.tokens import new_token, token_hash

PREFIX = "lc_"  # by which a secret scanner knows one of ours
HINT_LENGTH = 8  # characters of a token that stay visible
LONGEST_LIFE = timedelta(days=365)
MOST_TOKENS = 50  # live ones a person
USED_EVERY = timedelta(minutes=5)
"""How fine it is known when a token was last used: a row is not written at every call."""

_ACTOR = """
    select p.id, p.display_name, p.is_operator, t.id as token_id, t.scopes,
           coalesce(t.last_used_at, '-infinity') < (select lastcall_now()) - $2::interval as is_stale
    from api_tokens t
    join people p on p.id = t.person_id
    where t.token_hash = $1
      and t.revoked_at is null
      and t.expires_at > (select lastcall_now())
      and p.blocked_at is null
"""
_USED = """
    update api_tokens set last_used_at = (select lastcall_now())
    where id = $1 and coalesce(last_used_at, '-infinity') < (select lastcall_now()) - $2::interval
"""


@dataclass(frozen=True)
class TokenView:
    """A live token as its person sees it; ``hint`` is how it begins."""

    id: UUID
    name: str
    hint: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


async def create_token(
    db: Database, mailer: Mailer, actor: Actor, name: str, scopes: Collection[Scope], life: timedelta
) -> tuple[UUID, str]:
    """A new token for the actor's programs: its id, and the token, which is shown this once.

    Only a person in a browser makes one, and confirms that it is them. Raises ``Invalid`` for no scope, a life
    of more than ``LONGEST_LIFE``, or more than ``MOST_TOKENS`` live ones.
    """
    actor.require_recent()
    name = valid_name(name)
    if not scopes:
        raise Invalid("scopes_missing", "The token would be good for nothing.", field="scopes")
    if Scope.OPERATOR in scopes and not actor.is_operator:
        raise Invalid("scope_unknown", "Only operators have the scope “operator”.", field="scopes")
    if not timedelta(0) < life <= LONGEST_LIFE:
        raise Invalid(
            "life_out_of_range",
            "A token lives for at least a moment and at most 365 days.",
            advice="Choose an earlier end; make a new token then.",
            field="days",
        )
    token, token_id = PREFIX + new_token(), new_id()
    async with db.transaction() as tx:
        # Two forms at once must not pass the limit together; and a block waits for this, or this for it.
        await hold_actor(tx, actor)
        live = await tx.scalar(select(func.count()).where(*_live(actor.person_id)))
        if live >= MOST_TOKENS:
            raise Invalid(
                "too_many_tokens",
                f"You have {MOST_TOKENS} tokens already.",
                advice="Revoke those that nothing uses.",
            )
        await tx.execute(
            insert(ApiToken).values(
                id=token_id,
                person_id=actor.person_id,
                name=name,
                token_hash=token_hash(token),
                hint=token[:HINT_LENGTH],
                scopes=sorted(scopes),
                expires_at=NOW + life,
            )
        )
        await audit(
            tx,
            actor.person_id,
            "api_token.created",
            str(actor.person_id),
            token=str(token_id),
            name=name,
            scopes=sorted(scopes),
        )
        await notify(tx, mailer, actor.person_id, TOKEN_CREATED, name=name)
    return token_id, token


async def actor_of_token(db: Database, token: str) -> Actor | None:
    """Who this token acts for, or nobody: unknown, revoked, expired and blocked are alike. One statement."""
    row = await db.pool.fetchrow(_ACTOR, token_hash(token), USED_EVERY)
    if row is None:
        return None
    if row["is_stale"]:
        await db.pool.execute(_USED, row["token_id"], USED_EVERY)
    # A scope that this version does not know allows nothing.
    scopes = frozenset(scope for scope in Scope if scope in row["scopes"])
    return Actor(row["id"], row["display_name"], row["is_operator"], token_id=row["token_id"], scopes=scopes)


async def tokens_of(tx: Reader, actor: Actor) -> list[TokenView]:
    """The actor's own live tokens, the newest first."""
    actor.require_scope(Scope.READ)
    rows = await tx.execute(
        select(
            ApiToken.id,
            ApiToken.name,
            ApiToken.hint,
            ApiToken.scopes,
            ApiToken.created_at,
            ApiToken.expires_at,
            ApiToken.last_used_at,
        )
        .where(*_live(actor.person_id))
        .order_by(ApiToken.id.desc())
    )
    return [
        TokenView(**(row._asdict() | {"scopes": frozenset(s for s in Scope if s in row.scopes)}))
        for row in rows.all()
    ]


async def revoke_token(db: Database, actor: Actor, token_id: UUID) -> None:
    """End one of the actor's own tokens at once. ``NotFound`` for anybody else's; ended is nothing to do."""
    actor.require_scope(Scope.ACCOUNT)
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        mine = (ApiToken.id == token_id) & (ApiToken.person_id == actor.person_id)
        if await tx.scalar(select(ApiToken.id).where(mine)) is None:
            raise NotFound("token_unknown", "You have no such token.", advice="Reload the page.")
        revoked = await tx.scalar(
            update(ApiToken)
            .where(mine, ApiToken.revoked_at.is_(None))
            .values(revoked_at=NOW)
            .returning(ApiToken.id)
        )
        if revoked is not None:
            await audit(tx, actor.person_id, "api_token.revoked", str(actor.person_id), token=str(token_id))


async def revoke_all_tokens(tx: Transaction, person_id: UUID) -> int:
    """End every token of the person in the caller's transaction; answers how many."""
    revoked = await tx.execute(
        update(ApiToken)
        .where(ApiToken.person_id == person_id, ApiToken.revoked_at.is_(None))
        .values(revoked_at=NOW)
        .returning(ApiToken.id)
    )
    return len(revoked.all())


def _live(person_id: UUID) -> list[ColumnElement[bool]]:
    return [ApiToken.person_id == person_id, ApiToken.revoked_at.is_(None), ApiToken.expires_at > NOW]
