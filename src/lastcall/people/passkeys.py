"""Passkeys: adding one, signing in with one, confirming with one, removing one.

A passkey is asked for without a user name (the authenticator knows whose it is) and always with the person's
own check on their device (user verification), so that it stands for two factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from webauthn.helpers.structs import AuthenticatorTransport, PublicKeyCredentialDescriptor

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, Invalid, NotFound, NotSignedIn
from lastcall.mail.mailer import Mailer
from lastcall.names import valid_name
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.flows import Flow, Purpose, begin_flow, flow_over, standing_person, take_flow
from lastcall.people.holding import hold_actor
from lastcall.people.mails import Notice, notify
from lastcall.people.passkey_answers import (
    Assertion,
    RelyingParty,
    assertion_options,
    creation_options,
    read_assertion,
    read_registration,
)
from lastcall.people.scopes import Scope
from lastcall.people.sessions import Browser, Way, confirm_session, open_session
from lastcall.people.sign_in_tables import Passkey
from lastcall.people.tables import Person

MOST_PASSKEYS = 20
"""How many a person may have: far more than devices, few enough for a page and for a browser's question."""

PASSKEY_ADDED = Notice(
    "passkey_added", "A new passkey", "A passkey called “{name}” now signs in to your account."
)


@dataclass(frozen=True)
class PasskeyView:
    """A passkey as its person sees it."""

    id: UUID
    name: str
    is_backed_up: bool
    """It is kept in step over the person's devices, so losing one of them does not lose it."""
    created_at: datetime
    last_used_at: datetime | None


async def passkeys_of(tx: Reader, actor: Actor) -> list[PasskeyView]:
    """The actor's own passkeys, the oldest first."""
    actor.require_scope(Scope.READ)
    rows = await tx.execute(
        select(Passkey.id, Passkey.name, Passkey.is_backed_up, Passkey.created_at, Passkey.last_used_at)
        .where(Passkey.person_id == actor.person_id)
        .order_by(Passkey.id)
    )
    return [PasskeyView(**row._asdict()) for row in rows.all()]


async def begin_adding(db: Database, party: RelyingParty, actor: Actor, browser: Browser) -> dict[str, Any]:
    """What the browser hands to ``navigator.credentials.create``. Raises ``NotAllowed`` unless the actor
    confirmed just now.
    """
    actor.require_recent()
    async with db.read() as tx:
        known = await _known(tx, actor.person_id)
        email = await tx.scalar(select(Person.email).where(Person.id == actor.person_id))
    _check_room(len(known))
    state = await begin_flow(db, Purpose.ADD, browser, actor=actor)
    return creation_options(party, state, actor, email, known)


async def add_passkey(
    db: Database,
    mailer: Mailer,
    party: RelyingParty,
    actor: Actor,
    browser: Browser,
    answer: str,
    name: str,
) -> UUID:
    """Keep the public key that the browser answered with, and tell its person by mail.

    Raises ``Invalid`` for a name that is none and for an answer that does not fit, ``NotSignedIn`` for one that
    this browser did not begin, ``Conflict`` for a passkey that is known already.
    """
    actor.require_scope(Scope.ACCOUNT)  # that they confirmed was seen when this flow began
    name = valid_name(name, field="name")
    registration = read_registration(party, answer)
    flow = await take_flow(db, registration.state, browser)
    _check_flow(flow, Purpose.ADD, actor)
    key = registration.verified()
    async with db.transaction() as tx:
        # The person's row first, so that of two at once the second counts the first.
        await hold_actor(tx, actor)
        _check_room(len(await _known(tx, actor.person_id)))
        passkey_id: UUID | None = await tx.scalar(
            insert(Passkey)
            .values(
                id=new_id(),
                person_id=actor.person_id,
                credential_id=key.credential_id,
                public_key=key.credential_public_key,
                sign_count=key.sign_count,
                name=name,
                transports=registration.transports,
                is_backed_up=key.credential_backed_up,
            )
            .on_conflict_do_nothing()
            .returning(Passkey.id)
        )
        if passkey_id is None:
            raise Conflict("passkey_known", "This passkey was added before.", advice="Use another device.")
        await audit(tx, actor.person_id, "passkey.added", str(actor.person_id), passkey=str(passkey_id))
        await notify(tx, mailer, actor.person_id, PASSKEY_ADDED, name=name)
    return passkey_id


async def remove_passkey(db: Database, actor: Actor, passkey_id: UUID) -> None:
    """Forget the passkey; it signs nobody in any more. A mail link always remains. Raises ``NotFound`` for
    anybody else's and ``NotAllowed`` unless the actor confirmed just now.
    """
    actor.require_recent()
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        removed = await tx.scalar(
            delete(Passkey)
            .where(Passkey.id == passkey_id, Passkey.person_id == actor.person_id)
            .returning(Passkey.id)
        )
        if removed is None:
            raise NotFound("passkey_unknown", "You have no such passkey.", advice="Reload the page.")
        await audit(tx, actor.person_id, "passkey.removed", str(actor.person_id), passkey=str(passkey_id))


async def begin_signing_in(db: Database, party: RelyingParty, browser: Browser) -> dict[str, Any]:
    """What the browser hands to ``navigator.credentials.get``. It names nobody: the authenticator does."""
    return assertion_options(party, await begin_flow(db, Purpose.SIGN_IN, browser, actor=None), [])


async def begin_confirming(
    db: Database, party: RelyingParty, actor: Actor, browser: Browser
) -> dict[str, Any]:
    """As ``begin_signing_in``, for a passkey of this very person."""
    actor.require_scope(Scope.ACCOUNT)
    async with db.read() as tx:
        known = await _known(tx, actor.person_id)
    state = await begin_flow(db, Purpose.STEP_UP, browser, actor=actor)
    return assertion_options(party, state, known)


async def sign_in_by_passkey(
    db: Database, party: RelyingParty, browser: Browser, answer: str
) -> tuple[str, Actor]:
    """Open a session for whoever's passkey answered; its token and who that is.

    Unknown, wrongly signed, of another place, blocked: all raise the same ``NotSignedIn``.
    """
    assertion = read_assertion(party, answer)
    flow = await take_flow(db, assertion.state, browser)
    _check_flow(flow, Purpose.SIGN_IN, None)
    async with db.transaction(outermost=True) as tx:
        person = await _person_behind(tx, assertion)
        if person is not None:
            token, session_id = await open_session(tx, person.id, Way.PASSKEY, browser)
            return token, Actor(
                person.id, person.display_name, person.is_operator, session_id=session_id, is_recent=True
            )
    # Told after the commit, which may have written down that a count went back.
    raise passkey_refused()


async def confirm_by_passkey(
    db: Database, party: RelyingParty, actor: Actor, browser: Browser, answer: str
) -> None:
    """The actor showed again that it is them, with a passkey of their own."""
    actor.require_scope(Scope.ACCOUNT)
    assertion = read_assertion(party, answer)
    flow = await take_flow(db, assertion.state, browser)
    _check_flow(flow, Purpose.STEP_UP, actor)
    async with db.transaction(outermost=True) as tx:
        person = await _person_behind(tx, assertion, only=actor.person_id)
        if person is not None:
            await confirm_session(tx, actor, Way.PASSKEY)
            return
    raise passkey_refused()


def passkey_refused() -> NotSignedIn:
    return NotSignedIn(
        "passkey_refused",
        "This passkey does not sign anybody in here.",
        advice="Try another one, or sign in with a link.",
    )


async def _person_behind(tx: Transaction, assertion: Assertion, only: UUID | None = None) -> Row[Any] | None:
    """Whose passkey answered, if everything about the answer holds. The person is locked against being blocked
    meanwhile, then their key against a second answer at the same time."""
    owner = await tx.scalar(select(Passkey.person_id).where(Passkey.credential_id == assertion.credential_id))
    if owner is None or only not in (None, owner) or not assertion.is_of(owner):
        return None
    person = await standing_person(tx, owner)
    found = (
        await tx.execute(
            select(Passkey.id, Passkey.public_key, Passkey.sign_count)
            .where(Passkey.credential_id == assertion.credential_id, Passkey.person_id == owner)
            .with_for_update()
        )
    ).one_or_none()
    verified = assertion.verified(found.public_key) if person is not None and found is not None else None
    if found is None or verified is None:
        return None
    if count_went_back(found.sign_count, verified.new_sign_count):
        await audit(tx, owner, "passkey.refused", str(owner), passkey=str(found.id))
        return None
    await tx.execute(
        update(Passkey)
        .where(Passkey.id == found.id)
        .values(
            sign_count=verified.new_sign_count,
            is_backed_up=verified.credential_backed_up,
            last_used_at=NOW,
        )
    )
    return person


def count_went_back(known: int, told: int) -> bool:
    """Whether an authenticator that counts did not count on: then there are two of it, and one is a copy.

    Which of the two this is nobody can tell, so neither signs in any more until the passkey is removed and
    added again. Passkeys that are kept in step over devices do not count (both are 0).
    """
    return max(known, told) > 0 and told <= known


def _check_flow(flow: Flow, purpose: Purpose, actor: Actor | None) -> None:
    if flow.purpose is not purpose or flow.person_id != (actor.person_id if actor else None):
        raise flow_over()


def _check_room(count: int) -> None:
    if count >= MOST_PASSKEYS:
        raise Invalid(
            "passkeys_too_many",
            f"You have {MOST_PASSKEYS} passkeys, which is as many as fit.",
            advice="Remove one that you no longer use.",
        )


async def _known(tx: Reader, person_id: UUID) -> list[PublicKeyCredentialDescriptor]:
    rows = await tx.execute(
        select(Passkey.credential_id, Passkey.transports).where(Passkey.person_id == person_id)
    )
    return [
        PublicKeyCredentialDescriptor(
            id=row.credential_id, transports=[*map(AuthenticatorTransport, row.transports)]
        )
        for row in rows.all()
    ]
