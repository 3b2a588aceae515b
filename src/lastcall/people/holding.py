"""Who acts, judged once more inside the transaction that acts for them.

A request knows its ``Actor`` from before its transaction began. Whoever was blocked, erased, signed out or relieved of
the operators' part meanwhile is met by these: they hold the rows until the transaction ends, so that whoever takes a
right away comes before it, and it is refused, or after it, and takes away what it made as well. An API token is looked
at and not held: nothing that it makes ends with it.

People come after gates in the lock order and before their links, sessions and ways to sign in.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from lastcall.db.clock import NOW
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import NotAllowed, NotSignedIn
from lastcall.people.actor import Actor, require_operator
from lastcall.people.tables import ApiToken, Person, SignInSession


async def hold_actor(tx: Transaction, actor: Actor) -> None:
    """For changes to the actor's own account. Raises ``NotSignedIn`` once they are blocked, or the browser they use
    is signed out, or the token revoked.
    """
    still = await tx.scalar(
        select(Person.id)
        .where(Person.id == actor.person_id, Person.blocked_at.is_(None))
        .with_for_update(key_share=True)
    )
    if still is not None and actor.session_id is not None:
        still = await tx.scalar(
            select(SignInSession.id)
            .where(
                SignInSession.id == actor.session_id,
                SignInSession.revoked_at.is_(None),
                SignInSession.expires_at > NOW,
            )
            .with_for_update(read=True)
        )
    if still is None:
        raise NotSignedIn("not_signed_in", "You are not signed in any more.", advice="Sign in again.")
    await require_token_now(tx, actor)


async def require_token_now(tx: Reader, actor: Actor) -> None:
    """Raises ``NotSignedIn`` for a token that was revoked or expired since the request began. Nothing to do in a
    browser, whose session ``hold_actor`` looks at.
    """
    if actor.token_id is None:
        return
    live = (ApiToken.id == actor.token_id, ApiToken.revoked_at.is_(None), ApiToken.expires_at > NOW)
    if await tx.scalar(select(ApiToken.id).where(*live)) is None:
        raise token_refused()


async def require_operator_now(tx: Reader, actor: Actor | None) -> None:
    """For what an operator, or the host's command line (no ``actor``), reads. Raises ``NotAllowed`` for whoever is no
    operator, or none any more.
    """
    require_operator(actor)
    if actor is None:
        return
    still = await tx.scalar(
        select(Person.id).where(Person.id == actor.person_id, Person.is_operator, Person.blocked_at.is_(None))
    )
    if still is None:
        raise no_longer_operator()
    await require_token_now(tx, actor)


async def hold_operator(tx: Transaction, actor: Actor | None, *others: UUID) -> None:
    """For what an operator does, or the host's command line (no ``actor``). ``others`` are people whom the
    transaction will hold too: all are taken in the order of their ids. Raises ``NotAllowed`` for whoever is no
    operator, or none any more.
    """
    require_operator(actor)
    if actor is None:
        return
    rows = await tx.execute(
        select(Person.id, Person.is_operator, Person.blocked_at)
        .where(Person.id.in_({actor.person_id, *others}))
        .order_by(Person.id)
        .with_for_update(read=True)
    )
    if not any(row.id == actor.person_id and row.is_operator and not row.blocked_at for row in rows.all()):
        raise no_longer_operator()
    await require_token_now(tx, actor)


def token_refused() -> NotSignedIn:
    """The one answer to a token that is unknown, revoked or expired, or whose person is blocked."""
    return NotSignedIn(
        "token_refused",
        "This API token is unknown, expired or revoked.",
        advice="Make a new one on your account page.",
    )


def no_longer_operator() -> NotAllowed:
    return NotAllowed("operators_only", "You are no longer an operator.", advice="Ask an operator.")
