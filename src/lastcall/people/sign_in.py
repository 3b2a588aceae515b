"""Signing in by a one-time link, opened any number of times and used up by one POST, or by its code.

A link that was mailed signs in the browser that asked for it and no other. Opened elsewhere (on the phone that
has the mail) it shows its code, to be typed into the browser that asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert

from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.limits import source_of, take
from lastcall.db.transaction import Transaction
from lastcall.errors import NotFound, NotSignedIn
from lastcall.names import NAME_LENGTH
from lastcall.people.actor import Actor
from lastcall.people.audit import audit
from lastcall.people.limits import CODE_ATTEMPTS
from lastcall.people.links import (
    Link,
    Purpose,
    bound_to,
    find_by_code,
    find_by_token,
    make_link,
    usable,
    use_up,
)
from lastcall.people.sessions import Browser, Way, open_session
from lastcall.people.tables import Person, SignInLink
from lastcall.people.tokens import code_of, token_hash

_NOBODYS = Browser()


@dataclass(frozen=True)
class LinkView:
    """A link that still works, as whoever opened it sees it. ``is_here``: this browser may use it; any other
    shows ``code``, to be typed where the link was asked for."""

    name: str
    is_here: bool
    code: str


async def make_sign_in_link(db: Database, email: str) -> str:
    """A fresh token for the person with this address (any case), for the host's command line: the first browser
    that presses its button is signed in.

    Raises ``NotFound`` for an address nobody has and for a blocked person, in words for a terminal; a public
    form must not repeat them.
    """
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
        token = await make_link(tx, Purpose.SIGN_IN, person_id=person_id)
        await audit(tx, None, "sign_in_link.made", str(person_id))
    return token


async def peek_sign_in_link(db: Database, token: str, browser_key: str = "") -> LinkView | None:
    """What the link would do, if it still does anything. Opening it never uses it up: mail scanners open
    links.
    """
    async with db.read() as tx:
        row = (
            await tx.execute(
                select(
                    func.coalesce(Person.display_name, SignInLink.email).label("name"),
                    bound_to(browser_key).label("is_here"),
                )
                .outerjoin(Person, Person.id == SignInLink.person_id)
                .where(
                    SignInLink.token_hash == token_hash(token),
                    SignInLink.purpose == Purpose.SIGN_IN,
                    Person.blocked_at.is_(None),
                    *usable(),
                )
            )
        ).one_or_none()
    return None if row is None else LinkView(row.name, row.is_here, code_of(token))


async def redeem_sign_in_link(db: Database, token: str, browser: Browser = _NOBODYS) -> tuple[str, Actor]:
    """Use the link up and open a session; answers the session's token and who signed in.

    Of two redemptions at once exactly one wins. Unknown, used, expired, blocked and bound to another browser
    all raise the same ``NotSignedIn``, so that a guesser learns nothing.
    """
    refusal = NotSignedIn(
        "link_not_usable",
        "This sign-in link is used up, expired or unknown.",
        advice="Ask for a new one; a link works once and for 15 minutes.",
    )
    async with db.transaction() as tx:
        link = await find_by_token(tx, token)
        if link is None:
            raise refusal
        way = Way.COMMAND_LINE if link.browser_hash is None else Way.LINK
        return await _sign_in(tx, link, way, browser, refusal)


async def redeem_sign_in_code(db: Database, code: str, browser: Browser) -> tuple[str, Actor]:
    """As ``redeem_sign_in_link``, by the code of a link that this browser asked for. Five wrong ones end it.

    Raises ``TooFast`` for a source that types too many.
    """
    await take(db, CODE_ATTEMPTS, source_of(browser.source))
    async with db.transaction(outermost=True) as tx:
        link = await find_by_code(tx, Purpose.SIGN_IN, code, browser.key)
        if link is not None:
            return await _sign_in(tx, link, Way.CODE, browser, wrong_code())
    # Told after the commit, which counted the attempt.
    raise wrong_code()


def wrong_code() -> NotSignedIn:
    """The one answer to a wrong code, a late one, one too many, and one that nobody was ever sent."""
    return NotSignedIn(
        "code_not_usable",
        "This code is wrong or no longer works.",
        advice="Check it, or ask for a new one: after five wrong ones a code is worth nothing.",
        field="code",
    )


async def _sign_in(
    tx: Transaction, link: Link, way: Way, browser: Browser, refusal: NotSignedIn
) -> tuple[str, Actor]:
    if not await use_up(tx, link.id, browser.key):
        raise refusal
    # Its person is locked against being blocked meanwhile; one who is made now is locked here.
    person_id = link.person_id or await _person_of_address(tx, link.email)
    person = (
        await tx.execute(
            select(Person.id, Person.display_name, Person.is_operator, Person.email_verified_at)
            .where(Person.id == person_id, Person.blocked_at.is_(None))
            .with_for_update(read=True)
        )
    ).one_or_none()
    if person is None:
        raise refusal
    if way is not Way.COMMAND_LINE and person.email_verified_at is None:
        await tx.execute(update(Person).where(Person.id == person.id).values(email_verified_at=NOW))
    token, session_id = await open_session(tx, person.id, way, browser)
    return token, Actor(
        person.id, person.display_name, person.is_operator, session_id=session_id, is_recent=True
    )


async def _person_of_address(tx: Transaction, email: str) -> UUID:
    """Whoever has this address, which the link's reader showed to be theirs; made now if nobody has."""
    made: UUID | None = await tx.scalar(
        insert(Person)
        .values(id=new_id(), email=email, display_name=email.partition("@")[0][:NAME_LENGTH])
        .on_conflict_do_nothing()
        .returning(Person.id)
    )
    if made is not None:
        await audit(tx, made, "person.joined", str(made))
        return made
    found: UUID = await tx.scalar(select(Person.id).where(func.lower(Person.email) == email.lower()))
    return found
