"""One-time sign-in links: made by the command line or mailed, opened any number of times, used up by one
POST.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, insert, select, update

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import NotFound, NotSignedIn
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.sessions import open_session
from lastcall.people.tables import Person, SignInLink
from lastcall.people.tokens import new_token, token_hash

LINK_LIFE = timedelta(minutes=15)


async def make_sign_in_link(db: Database, email: str) -> str:
    """A fresh token for the person with this address (any case); it is shown once and lives ``LINK_LIFE``.

    Raises ``NotFound`` for an address nobody has and for a blocked person, in words for the host's command
    line; a public form must not repeat them.
    """
    token = new_token()
    async with db.transaction() as tx:
        person_id = await tx.scalar(
            select(Person.id).where(
                func.lower(Person.email) == email.strip().lower(), Person.blocked_at.is_(None)
            )
        )
        if person_id is None:
            raise NotFound(
                "person_unknown",
                f"Nobody who may sign in has the address {email.strip()}.",
                advice="Add them first with `lastcall person add`, or unblock them.",
                field="email",
            )
        await tx.execute(
            insert(SignInLink).values(
                id=new_id(), person_id=person_id, token_hash=token_hash(token), expires_at=NOW + LINK_LIFE
            )
        )
        await audit(tx, None, "sign_in_link.made", str(person_id))
    return token


async def peek_sign_in_link(db: Database, token: str) -> bool:
    """Whether the link would still sign somebody in. Opening it never uses it up: mail scanners open
    links.
    """
    async with db.read() as tx:
        usable = await tx.scalar(
            select(SignInLink.id)
            .join(Person, Person.id == SignInLink.person_id)
            .where(
                SignInLink.token_hash == token_hash(token),
                SignInLink.used_at.is_(None),
                SignInLink.expires_at > NOW,
                Person.blocked_at.is_(None),
            )
        )
    return usable is not None


async def redeem_sign_in_link(db: Database, token: str) -> tuple[str, Actor]:
    """Use the link up and open a session; answers the session's token and who signed in.

    Of two redemptions at once exactly one wins. Unknown, used, expired and blocked all raise the same
    ``NotSignedIn``, so that a guesser learns nothing.
    """
    async with db.transaction() as tx:
        # The locks first: the link against a second redemption, the person against being blocked meanwhile.
        person_id = await tx.scalar(
            select(SignInLink.person_id)
            .where(SignInLink.token_hash == token_hash(token))
            .with_for_update(key_share=True)
        )
        person = (
            await tx.execute(
                select(Person.id, Person.display_name, Person.is_operator)
                .where(Person.id == person_id, Person.blocked_at.is_(None))
                .with_for_update(read=True)
            )
        ).one_or_none()
        used = await tx.scalar(
            update(SignInLink)
            .where(
                SignInLink.token_hash == token_hash(token),
                SignInLink.used_at.is_(None),
                SignInLink.expires_at > NOW,
            )
            .values(used_at=NOW)
            .returning(SignInLink.id)
        )
        if person is None or used is None:
            raise NotSignedIn(
                "link_not_usable",
                "This sign-in link is used up, expired or unknown.",
                advice="Ask for a new one; a link works once and for 15 minutes.",
            )
        session_token = await open_session(tx, person.id)
        await audit(tx, person.id, "person.signed_in", str(person.id))
    return session_token, Actor(person.id, person.display_name, person.is_operator)
