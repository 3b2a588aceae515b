"""The way back for whoever lost every way in, and the way out for whoever else may have found one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from lastcall.db.database import Database
from lastcall.errors import Conflict
from lastcall.mail.addresses import valid_address
from lastcall.mail.mailer import Mailer
from lastcall.people.api_tokens import revoke_all_tokens
from lastcall.people.audit import audit
from lastcall.people.links import Purpose, end_links, make_link
from lastcall.people.mails import EMAIL_CHANGED, RECOVERED, notify
from lastcall.people.queries import person_by_email
from lastcall.people.service import email_taken
from lastcall.people.sessions import end_all_sessions
from lastcall.people.sign_in_tables import Identity, Passkey, SignInFlow
from lastcall.people.tables import Person


@dataclass(frozen=True)
class Recovered:
    """What ended, and the token of the one link that now signs the person in."""

    sessions: int
    tokens: int
    passkeys: int
    identities: int
    link: str


async def recover_person(db: Database, mailer: Mailer, email: str) -> Recovered:
    """Take away every way in that the person with this address has, and make one sign-in link. For the host's
    command line.

    Sessions, API tokens, open links, passkeys and linked accounts go; roles and clubs stay. The person is told
    by mail. Raises ``NotFound`` for an address nobody has and ``Conflict`` for a blocked person, whom the link would
    not let in.
    """
    async with db.transaction() as tx:
        person_id = await person_by_email(tx, email)
        # Whatever they, or whoever else is in, are adding just now is there by then, and goes, or is refused.
        blocked = await tx.scalar(
            select(Person.blocked_at).where(Person.id == person_id).with_for_update(key_share=True)
        )
        if blocked is not None:
            raise Conflict(
                "person_blocked",
                f"{email.strip()} is blocked, so no link signs them in.",
                advice="Unblock them first with `lastcall person unblock`.",
            )
        sessions = await end_all_sessions(db, person_id)
        tokens = await revoke_all_tokens(tx, person_id)
        await end_links(tx, person_id)
        await tx.execute(delete(SignInFlow).where(SignInFlow.person_id == person_id))
        passkeys = await tx.execute(delete(Passkey).where(Passkey.person_id == person_id))
        identities = await tx.execute(delete(Identity).where(Identity.person_id == person_id))
        link = await make_link(tx, Purpose.SIGN_IN, person_id=person_id)
        recovered = Recovered(sessions, tokens, passkeys.rowcount, identities.rowcount, link)
        await audit(
            tx,
            None,
            "person.recovered",
            str(person_id),
            sessions=sessions,
            tokens=tokens,
            passkeys=recovered.passkeys,
            identities=recovered.identities,
        )
        await notify(tx, mailer, person_id, RECOVERED)
    return recovered


async def move_person(db: Database, mailer: Mailer, old: str, new: str) -> None:
    """Give the person with the address ``old`` another one, as yet unconfirmed. For the host's command line, where
    no mail can be sent or the old mailbox is lost.

    Open links end, and the old address is told. Raises ``NotFound``, ``Invalid`` and ``Conflict``.
    """
    new = valid_address(new)
    async with db.transaction() as tx:
        person_id = await person_by_email(tx, old)
        try:
            async with db.transaction() as inner:
                await inner.execute(
                    update(Person).where(Person.id == person_id).values(email=new, email_verified_at=None)
                )
        except IntegrityError as error:
            raise email_taken(new) from error
        await end_links(tx, person_id)
        await audit(tx, None, "person.email_changed", str(person_id))
        await notify(tx, mailer, person_id, EMAIL_CHANGED, to=old.strip(), email=new)
