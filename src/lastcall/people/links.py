"""One-time links and their codes, whatever they are for: made, found, counted against, used up.

A row is used up by one guarded update, so that of a link and its code, pressed at once, one wins. A wrong code
counts against every open link of the browser it was typed into; ``MOST_ATTEMPTS`` of them end those links.
"""

from __future__ import annotations

import hmac
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, insert, or_, select, update

from lastcall.db.clock import NOW
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.people.data_retention import data_written
from lastcall.people.tables import Person, SignInLink
from lastcall.people.tokens import browser_hash, code_hash, code_of, new_token, token_hash

LINK_LIFE = timedelta(minutes=15)
MOST_ATTEMPTS = 5  # wrong codes


class Purpose(StrEnum):
    """What a link or its code does."""

    SIGN_IN = "sign_in"
    STEP_UP = "step_up"
    EMAIL = "email"


Link: TypeAlias = Row[Any]
_LINK = (SignInLink.id, SignInLink.person_id, SignInLink.email, SignInLink.browser_hash)


async def make_link(
    tx: Transaction,
    purpose: Purpose,
    *,
    person_id: UUID | None,
    email: str | None = None,
    browser_key: str | None = None,
) -> str:
    """A fresh link's token, shown or mailed once; ``tokens.code_of`` makes its code. Without ``browser_key``
    it belongs to whoever uses it first and has no code."""
    data_written(tx)
    token = new_token()
    bound = (
        {}
        if browser_key is None
        else {
            "browser_hash": browser_hash(browser_key),
            "code_hash": code_hash(code_of(token), browser_key),
        }
    )
    await tx.execute(
        insert(SignInLink).values(
            id=new_id(),
            purpose=purpose,
            person_id=person_id,
            email=email,
            token_hash=token_hash(token),
            expires_at=NOW + LINK_LIFE,
            **bound,
        )
    )
    return token


def usable() -> list[ColumnElement[bool]]:
    """What holds of a link that still does something."""
    return [
        SignInLink.used_at.is_(None),
        SignInLink.expires_at > NOW,
        SignInLink.attempts < MOST_ATTEMPTS,
    ]


def bound_to(browser_key: str) -> ColumnElement[bool]:
    """What holds of a link that this browser may use."""
    return or_(SignInLink.browser_hash.is_(None), SignInLink.browser_hash == browser_hash(browser_key))


async def find_by_token(tx: Transaction, token: str) -> Link | None:
    """The sign-in link with this token, used or not, locked against a second redemption;
    and its person, before it."""
    which = (SignInLink.token_hash == token_hash(token), SignInLink.purpose == Purpose.SIGN_IN)
    await _hold_people(tx, *which)
    return (await tx.execute(select(*_LINK).where(*which).with_for_update(key_share=True))).one_or_none()


async def find_by_code(tx: Transaction, purpose: Purpose, code: str, browser_key: str) -> Link | None:
    """The link that this code belongs to, locked. A wrong code is counted, in the caller's transaction, which
    must therefore be committed before the error is told."""
    which = (SignInLink.browser_hash == browser_hash(browser_key), SignInLink.purpose == purpose, *usable())
    await _hold_people(tx, *which)
    open_links = (
        await tx.execute(
            select(*_LINK, SignInLink.code_hash)
            .where(*which)
            .order_by(SignInLink.id)
            .with_for_update(key_share=True)
        )
    ).all()
    given = code_hash(code, browser_key)
    for link in open_links:
        if hmac.compare_digest(link.code_hash, given):
            return link
    if open_links:
        await tx.execute(
            update(SignInLink)
            .where(SignInLink.id.in_([link.id for link in open_links]))
            .values(attempts=SignInLink.attempts + 1)
        )
    return None


async def _hold_people(tx: Transaction, *which: ColumnElement[bool]) -> None:
    """Hold whoever these links are for before the links: whoever blocks or erases somebody has them first as well,
    and ends their links then.
    """
    found = (await tx.execute(select(SignInLink.person_id, SignInLink.email).where(*which))).all()
    people = {link.person_id for link in found if link.person_id is not None}
    addresses = {link.email.lower() for link in found if link.email is not None}
    await tx.execute(
        select(Person.id)
        .where(or_(Person.id.in_(people), func.lower(Person.email).in_(addresses)))
        .order_by(Person.id)
        .with_for_update(key_share=True)
    )


async def use_up(tx: Transaction, link_id: UUID, browser_key: str) -> bool:
    """Whether the link was still good for this browser; it is not any more."""
    used = await tx.scalar(
        update(SignInLink)
        .where(SignInLink.id == link_id, bound_to(browser_key), *usable())
        .values(used_at=NOW)
        .returning(SignInLink.id)
    )
    return used is not None


async def end_links(tx: Transaction, person_id: UUID) -> None:
    """End every open link and code of the person: what they would have done is no longer wanted."""
    await tx.execute(
        update(SignInLink)
        .where(SignInLink.person_id == person_id, SignInLink.used_at.is_(None))
        .values(used_at=NOW)
    )
