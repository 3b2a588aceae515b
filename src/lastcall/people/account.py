"""What a person does to their own account by mail: ask to sign in, confirm that it is them, change the address."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select, update
from sqlalchemy.exc import IntegrityError

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.limits import source_of, take
from lastcall.db.transaction import Transaction
from lastcall.mail.addresses import valid_address
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Mail
from lastcall.names import valid_name
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.flows import standing_person
from lastcall.people.holding import hold_actor
from lastcall.people.limits import CODE_ATTEMPTS, SIGN_IN_REQUESTS
from lastcall.people.links import Purpose, end_links, find_by_code, make_link, use_up
from lastcall.people.mails import EMAIL_CHANGED, email_mail, notify, sign_in_mail, step_up_mail
from lastcall.people.scopes import Scope
from lastcall.people.sessions import Browser, Way, confirm_session
from lastcall.people.sign_in import wrong_code
from lastcall.people.tables import Person


async def request_sign_in(
    db: Database, mailer: Mailer, email: str, browser: Browser, *, may_join: bool = False
) -> None:
    """Mail a link to this address, if it may sign in. Known, unknown and blocked addresses are answered alike:
    what differs happens later, in the mailer's background.

    ``may_join``: whoever has no account yet gets a link too, and an account when they use it. Raises
    ``Invalid`` for what is no address and ``TooFast`` for a source that asks too often, whoever it asks for.
    """
    email = valid_address(email)
    await take(db, SIGN_IN_REQUESTS, source_of(browser.source))

    async def make(tx: Transaction) -> Mail | None:
        person = (await tx.execute(person_to_mail(email))).one_or_none()
        if person is None and may_join:
            token = await make_link(tx, Purpose.SIGN_IN, person_id=None, email=email, browser_key=browser.key)
            return sign_in_mail(email, token, None)
        if person is None or person.blocked_at is not None:
            return None
        token = await make_link(tx, Purpose.SIGN_IN, person_id=person.id, browser_key=browser.key)
        await audit(tx, None, "sign_in_link.mailed", str(person.id))
        return sign_in_mail(person.email, token, person.display_name)

    mailer.prepare(email, browser.source, make)


def person_to_mail(email: str) -> Select[UUID, str, str, datetime | None]:
    """Whoever has this address, held: who moves away from it, or is erased, meanwhile has no link sent there."""
    return (
        select(Person.id, Person.email, Person.display_name, Person.blocked_at)
        .where(func.lower(Person.email) == email.lower())
        .with_for_update(read=True)
    )


async def request_step_up(db: Database, mailer: Mailer, actor: Actor, browser: Browser) -> None:
    """Mail a code to the actor's own address, to confirm with. Raises ``TooFast``."""
    actor.require_scope(Scope.ACCOUNT)
    await take(db, SIGN_IN_REQUESTS, source_of(browser.source))
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        email = await tx.scalar(select(Person.email).where(Person.id == actor.person_id))
        token = await make_link(tx, Purpose.STEP_UP, person_id=actor.person_id, browser_key=browser.key)
        await mailer.post(tx, step_up_mail(email, token, browser.source))


async def confirm_step_up(db: Database, actor: Actor, code: str, browser: Browser) -> None:
    """The actor's session is recent from now on. Raises ``NotSignedIn`` for a wrong code; five end it."""
    actor.require_scope(Scope.ACCOUNT)
    await take(db, CODE_ATTEMPTS, source_of(browser.source))
    async with db.transaction(outermost=True) as tx:
        link = await find_by_code(tx, Purpose.STEP_UP, code, browser.key)
        is_theirs = link is not None and link.person_id == actor.person_id
        if link is not None and is_theirs and await use_up(tx, link.id, browser.key):
            await confirm_session(tx, actor, Way.CODE)
            return
    # Told after the commit, which counted the attempt.
    raise wrong_code()


async def rename(db: Database, actor: Actor, display_name: str) -> None:
    """Change how others see the actor."""
    actor.require_scope(Scope.ACCOUNT)
    name = valid_name(display_name, field="display_name")
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        await tx.execute(update(Person).where(Person.id == actor.person_id).values(display_name=name))
        await audit(tx, actor.person_id, "person.renamed", str(actor.person_id))


async def request_email_change(
    db: Database, mailer: Mailer, actor: Actor, email: str, browser: Browser
) -> None:
    """Mail a code to the new address. One that somebody has already is answered alike, and gets none."""
    actor.require_recent()
    email = valid_address(email)
    await take(db, SIGN_IN_REQUESTS, source_of(browser.source))

    async def make(tx: Transaction) -> Mail | None:
        if await standing_person(tx, actor.person_id) is None:
            return None
        taken = await tx.scalar(select(Person.id).where(func.lower(Person.email) == email.lower()))
        if taken is not None and taken != actor.person_id:
            return None
        token = await make_link(
            tx, Purpose.EMAIL, person_id=actor.person_id, email=email, browser_key=browser.key
        )
        return email_mail(email, token, actor.display_name)

    mailer.prepare(email, browser.source, make)


async def confirm_email_change(
    db: Database, mailer: Mailer, actor: Actor, code: str, browser: Browser
) -> str:
    """The address that the code was sent to is the actor's from now on; answers it.

    Open links to the old address end, and the old address is told. Raises ``NotSignedIn`` for a wrong code, and
    for an address that somebody took meanwhile.
    """
    actor.require_recent()
    await take(db, CODE_ATTEMPTS, source_of(browser.source))
    async with db.transaction(outermost=True) as tx:
        link = await find_by_code(tx, Purpose.EMAIL, code, browser.key)
        if link is not None and link.person_id == actor.person_id and await use_up(tx, link.id, browser.key):
            await hold_actor(tx, actor)
            old = await tx.scalar(select(Person.email).where(Person.id == actor.person_id))
            try:
                async with db.transaction() as inner:
                    await inner.execute(
                        update(Person)
                        .where(Person.id == actor.person_id)
                        .values(email=link.email, email_verified_at=NOW)
                    )
            except IntegrityError:
                raise wrong_code() from None
            await end_links(tx, actor.person_id)
            await audit(tx, actor.person_id, "person.email_changed", str(actor.person_id))
            await notify(tx, mailer, actor.person_id, EMAIL_CHANGED, to=old, email=link.email)
            email: str = link.email
            return email
    raise wrong_code()
