"""Accounts at providers: signing in with one, linking one, confirming with one, removing one.

Only ``(issuer, subject)`` says who somebody is. A mail address or a name that a provider tells is never matched
with anybody: who can set one there must not become somebody here. An identity is linked by a person who is
signed in and confirmed just now; any other account signs nobody in.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from sqlalchemy import ColumnElement, Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, Invalid, NotFound, NotSignedIn, Unavailable
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.flows import Flow, Purpose, begin_flow, derived, flow_over, standing_person, take_flow
from lastcall.people.holding import hold_actor
from lastcall.people.mails import Notice, notify
from lastcall.people.providers.provider import Answer, Begin, Profile, ProviderWay
from lastcall.people.providers.providers import Providers
from lastcall.people.providers.transport import ProviderFault
from lastcall.people.scopes import Scope
from lastcall.people.sessions import Browser, Way, confirm_session, open_session
from lastcall.people.sign_in_tables import Identity

MOST_IDENTITIES = 20
CODE_LENGTH = 4096  # characters; codes have a few dozen, those that are tokens some hundreds

IDENTITY_LINKED = Notice(
    "identity_linked",
    "A new way to sign in",
    "The {provider} account “{label}” now signs in to your account.",
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class IdentityView:
    """A linked account as its person sees it."""

    id: UUID
    provider: str
    label: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True)
class Callback:
    """What came back with the browser, all of it untrusted. Without ``code`` the person said no."""

    state: str
    code: str | None = None
    issuer: str | None = None


@dataclass(frozen=True)
class Finished:
    """What an answer led to. ``session`` is the new session's token after a sign-in."""

    purpose: Purpose
    next: str
    session: str | None = None


async def identities_of(tx: Reader, actor: Actor) -> list[IdentityView]:
    """The actor's own linked accounts, the oldest first."""
    actor.require_scope(Scope.READ)
    rows = await tx.execute(
        select(Identity.id, Identity.provider, Identity.label, Identity.created_at, Identity.last_used_at)
        .where(Identity.person_id == actor.person_id)
        .order_by(Identity.id)
    )
    return [IdentityView(**row._asdict()) for row in rows.all()]


async def begin_at_provider(
    db: Database,
    providers: Providers,
    name: str,
    purpose: Purpose,
    browser: Browser,
    actor: Actor | None,
    next: str = "/",  # noqa: A002 - the word that pages use
) -> str:
    """The address at the provider to send the browser to. ``next`` is a path of our own, checked by the caller.

    Raises ``NotFound`` for an unknown provider, ``NotAllowed`` for a link that nobody confirmed just now,
    ``Unavailable`` when the provider cannot be asked.
    """
    way = providers.way(name)
    if purpose is not Purpose.SIGN_IN:
        if actor is None:
            raise flow_over()
        actor.require_scope(Scope.ACCOUNT)
        if purpose is Purpose.ADD:
            actor.require_recent()
    asker = None if purpose is Purpose.SIGN_IN else actor
    state = await begin_flow(db, purpose, browser, actor=asker, provider=name, next=next)
    try:
        return await way.begin(_begin(providers, name, browser, state, purpose))
    except ProviderFault as fault:
        raise _unavailable(way, fault) from fault


async def finish_at_provider(
    db: Database,
    mailer: Mailer,
    providers: Providers,
    name: str,
    browser: Browser,
    actor: Actor | None,
    callback: Callback,
) -> Finished:
    """Make of the provider's answer what the flow was begun for.

    Raises ``NotSignedIn`` for an answer to nothing that this browser began and for an account that signs nobody
    in; ``Invalid`` when the person said no there; ``Conflict`` for an account that is linked to somebody else;
    ``Unavailable`` when the provider's word cannot be had or does not hold.
    """
    way = providers.way(name)
    flow = await take_flow(db, callback.state, browser, provider=name)
    if flow.purpose is not Purpose.SIGN_IN and (actor is None or actor.person_id != flow.person_id):
        raise flow_over()
    if actor is not None and flow.purpose is not Purpose.SIGN_IN:
        actor.require_scope(Scope.ACCOUNT)
    profile = await _profile(providers, way, browser, callback, flow)
    if flow.purpose is Purpose.SIGN_IN:
        return Finished(flow.purpose, flow.next, await _sign_in(db, way, profile, browser))
    if actor is not None and flow.purpose is Purpose.ADD:
        await _link(db, mailer, way, profile, actor)
    elif actor is not None:
        await _confirm(db, way, profile, actor)
    return Finished(flow.purpose, flow.next)


async def remove_identity(db: Database, actor: Actor, identity_id: UUID) -> None:
    """Forget the link; that account signs nobody in any more. A mail link always remains. Raises ``NotFound``
    for anybody else's and ``NotAllowed`` unless the actor confirmed just now.
    """
    actor.require_recent()
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        provider = await tx.scalar(
            delete(Identity)
            .where(Identity.id == identity_id, Identity.person_id == actor.person_id)
            .returning(Identity.provider)
        )
        if provider is None:
            raise NotFound("identity_unknown", "You have no such linked account.", advice="Reload the page.")
        await audit(tx, actor.person_id, "identity.removed", str(actor.person_id), provider=provider)


def _begin(providers: Providers, name: str, browser: Browser, state: str, purpose: Purpose) -> Begin:
    return Begin(
        redirect_uri=providers.redirect_uri(name),
        state=state,
        nonce=derived(browser, b"nonce", state),
        verifier=derived(browser, b"verifier", state),
        asks_again=purpose is Purpose.STEP_UP,
    )


async def _profile(
    providers: Providers, way: ProviderWay, browser: Browser, callback: Callback, flow: Flow
) -> Profile:
    if callback.code is None or len(callback.code) > CODE_LENGTH:
        log.info("provider answered without a code", provider=way.provider.name)
        raise Invalid(
            "provider_said_no",
            f"{way.provider.label} did not confirm it, so nothing was done.",
            advice="Begin again, and allow it there.",
        )
    begin = _begin(providers, way.provider.name, browser, callback.state, flow.purpose)
    try:
        return await way.finish(begin, Answer(callback.code, callback.issuer), flow.now)
    except ProviderFault as fault:
        raise _unavailable(way, fault) from fault


async def _sign_in(db: Database, way: ProviderWay, profile: Profile, browser: Browser) -> str:
    async with db.transaction() as tx:
        # The person first, as everywhere; then the identity, which may have been removed meanwhile.
        person = await standing_person(tx, await tx.scalar(_owner(profile)))
        if person is None or await _use(tx, profile) != person.id:
            raise _not_linked(way)
        token, _ = await open_session(tx, person.id, Way.PROVIDER, browser)
    return token


async def _link(db: Database, mailer: Mailer, way: ProviderWay, profile: Profile, actor: Actor) -> None:
    async with db.transaction() as tx:
        # The person's row first, so that of two at once the second counts the first.
        await hold_actor(tx, actor)
        owner = await _use(tx, profile)
        if owner == actor.person_id:
            return
        if owner is not None:
            raise Conflict(
                "identity_taken",
                f"This {way.provider.label} account is linked to somebody else here.",
                advice="Remove it there first, or use another account.",
            )
        mine = select(func.count()).where(Identity.person_id == actor.person_id)
        if (await tx.scalar(mine)) >= MOST_IDENTITIES:
            raise Invalid(
                "identities_too_many",
                f"You have linked {MOST_IDENTITIES} accounts, which is as many as fit.",
                advice="Remove one that you no longer use.",
            )
        added = await tx.scalar(
            insert(Identity)
            .values(
                id=new_id(),
                person_id=actor.person_id,
                provider=way.provider.name,
                issuer=profile.issuer,
                subject=profile.subject,
                label=profile.label,
            )
            .on_conflict_do_nothing()
            .returning(Identity.id)
        )
        if added is None:
            raise Conflict("identity_taken", "This account was linked just now.", advice="Reload the page.")
        await audit(tx, actor.person_id, "identity.linked", str(actor.person_id), provider=way.provider.name)
        values = {"provider": way.provider.label, "label": profile.label}
        await notify(tx, mailer, actor.person_id, IDENTITY_LINKED, **values)


async def _confirm(db: Database, way: ProviderWay, profile: Profile, actor: Actor) -> None:
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        if await _use(tx, profile) != actor.person_id:
            raise _not_linked(way)
        await confirm_session(tx, actor, Way.PROVIDER)


def _owner(profile: Profile) -> Select[UUID]:
    """Whose identity this is. Nothing but issuer and subject is compared."""
    return select(Identity.person_id).where(*same_account(profile))


def same_account(profile: Profile) -> list[ColumnElement[bool]]:
    """What holds of the identity that signed in at the provider."""
    return [Identity.issuer == profile.issuer, Identity.subject == profile.subject]


async def _use(tx: Transaction, profile: Profile) -> UUID | None:
    """Whose identity this is; it was used just now."""
    person_id: UUID | None = await tx.scalar(
        update(Identity)
        .where(*same_account(profile))
        .values(last_used_at=NOW, label=profile.label)
        .returning(Identity.person_id)
    )
    return person_id


def _not_linked(way: ProviderWay) -> NotSignedIn:
    """The one answer for an unknown account and for one of somebody who is blocked."""
    return NotSignedIn(
        "identity_not_linked",
        f"This {way.provider.label} account does not sign anybody in here.",
        advice="Sign in another way first, then link it on your account's page.",
    )


def _unavailable(way: ProviderWay, fault: ProviderFault) -> Unavailable:
    log.warning("provider refused", provider=way.provider.name, reason=fault.reason)
    return Unavailable(
        "provider_unavailable",
        f"{way.provider.label} did not answer as it must, so nothing was done.",
        advice="Try again in a moment, or sign in another way.",
    )
