"""Uses of a passkey or a provider that are under way: begun by one browser, answered by it once.

The state is random and known to the browser (and the provider) alone; we keep its hash. What else must not be
guessed (the nonce, PKCE's verifier) is derived from the state and a secret of the browser, so nothing that
would help a reader of the database is stored.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, insert, select, update

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.limits import Limit, source_of, take
from lastcall.db.transaction import Transaction
from lastcall.errors import NotSignedIn
from lastcall.people.actor import Actor
from lastcall.people.data_retention import data_written
from lastcall.people.sessions import Browser
from lastcall.people.sign_in_tables import SignInFlow
from lastcall.people.tables import Person
from lastcall.people.tokens import browser_hash, new_token, token_hash

FLOW_LIFE = timedelta(minutes=10)
FLOW_STARTS = Limit("sign_in_flow", 120, timedelta(hours=1))
"""Begun from one source: each writes a row, and whoever begins them needs no account."""


class Purpose(StrEnum):
    """What the flow is for. All but the first belong to a person who is signed in."""

    SIGN_IN = "sign_in"
    ADD = "add"
    STEP_UP = "step_up"


@dataclass(frozen=True)
class Flow:
    """A flow that was answered just now. ``now`` is the database's, by which the answer is judged."""

    purpose: Purpose
    person_id: UUID | None
    next: str
    now: datetime


async def begin_flow(
    db: Database,
    purpose: Purpose,
    browser: Browser,
    *,
    actor: Actor | None,
    provider: str | None = None,
    next: str = "/",  # noqa: A002 - the word that pages use
) -> str:
    """A new flow's state. Without ``provider`` it is of a passkey; ``actor`` is nobody for a sign-in.

    Raises ``TooFast`` for a source that begins too many.
    """
    await take(db, FLOW_STARTS, source_of(browser.source))
    state = new_token()
    async with db.transaction() as tx:
        data_written(tx)
        await tx.execute(
            insert(SignInFlow).values(
                id=new_id(),
                kind="passkey" if provider is None else "provider",
                purpose=purpose,
                person_id=None if actor is None else actor.person_id,
                provider=provider,
                state_hash=token_hash(state),
                browser_hash=browser_hash(browser.key),
                next=next,
                expires_at=NOW + FLOW_LIFE,
            )
        )
    return state


async def take_flow(db: Database, state: str, browser: Browser, *, provider: str | None = None) -> Flow:
    """Use the flow up, before anything is made of its answer: a failed answer cannot be tried again.

    Raises the one ``NotSignedIn`` for a state that is unknown, used, expired, of another browser, of another
    provider or of another kind.
    """
    async with db.transaction(outermost=True) as tx:
        row = (
            await tx.execute(
                update(SignInFlow)
                .where(
                    SignInFlow.state_hash == token_hash(state),
                    *unused(),
                    *begun_by(browser),
                    *begun_at(provider),
                )
                .values(used_at=NOW)
                .returning(SignInFlow.purpose, SignInFlow.person_id, SignInFlow.next, SignInFlow.used_at)
            )
        ).one_or_none()
    if row is None:
        raise flow_over()
    return Flow(Purpose(row.purpose), row.person_id, row.next, row.used_at)


def unused() -> list[ColumnElement[bool]]:
    """What holds of a flow that may still be answered."""
    return [SignInFlow.used_at.is_(None), SignInFlow.expires_at > NOW]


def begun_by(browser: Browser) -> list[ColumnElement[bool]]:
    """What holds of a flow of this browser: nobody is signed in by an answer that somebody else sent them."""
    return [SignInFlow.browser_hash == browser_hash(browser.key)]


def begun_at(provider: str | None) -> list[ColumnElement[bool]]:
    """What holds of a flow with this provider, or of a passkey's."""
    return [SignInFlow.provider.is_not_distinct_from(provider)]


def flow_over() -> NotSignedIn:
    return NotSignedIn(
        "flow_over",
        "This sign-in was not begun in this browser, or it is over.",
        advice="Begin again; a sign-in is answered once, within ten minutes, where it was begun.",
    )


async def standing_person(tx: Transaction, person_id: UUID | None) -> Row[Any] | None:
    """The person if they may sign in, locked so that a block waits for the session it has to end."""
    return (
        await tx.execute(
            select(Person.id, Person.display_name, Person.is_operator)
            .where(Person.id == person_id, *not_blocked())
            .with_for_update(read=True)
        )
    ).one_or_none()


def not_blocked() -> list[ColumnElement[bool]]:
    """What holds of a person who may sign in."""
    return [Person.blocked_at.is_(None)]


def derived(browser: Browser, use: bytes, state: str) -> str:
    """A secret of this flow in 43 characters, the same whenever it is asked for and stored nowhere."""
    secret = hmac.digest(browser.key.encode(), use + b" " + state.encode(errors="surrogatepass"), "sha256")
    return base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
