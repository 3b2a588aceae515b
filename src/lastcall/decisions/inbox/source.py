"""What the inbox knows of a kind of thing that waits: everything else about it stays with its own room.

A source is one file in ``sources/`` and one line in ``registration.py``; a later room adds its own with
``register_source``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.db.database import Database
from lastcall.decisions.retention.kind import Kind
from lastcall.errors import Conflict, NotFound
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


class Severity(StrEnum):
    """How much an item presses. A filter, never a colour alone."""

    HIGH = "high"
    MEDIUM = "medium"


class Verdict(StrEnum):
    """What an item can be decided to be from the list. What needs a choice is decided on the item's own page."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True)
class Shown:
    """What an item says: a title, and a line under it. ``expires_at`` is when nobody can decide it any more."""

    title: str
    detail: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Chosen:
    """One item to be decided, as the person saw it, and what they say to whoever asked."""

    club_id: UUID
    id: UUID
    seen: int
    note: str | None
    mailer: Mailer | None


Decide: TypeAlias = Callable[[Database, Actor, Verdict, Chosen], Awaitable[None]]
Words: TypeAlias = Callable[[dict[str, Any]], Shown]


@dataclass(frozen=True)
class Source:
    """One kind of thing that waits.

    ``waits`` is the SQL predicate over ``s``, a row of ``table``, of what waits, in the words of the partial index
    that serves it in the order of (``club_id``, ``is_archived`` where there is a ``kind``, ``activity``, ``id``).
    ``facts`` is SQL over ``s`` for a JSON object, read only for the rows of a page, and ``words`` turns it into what
    people read. ``agents_read`` does the same for agents, without a person or an address; a source without it is
    not theirs to see.

    ``permission`` is what a person needs to see any of it (RET-19); None: every one of the staff. ``kind`` is its kind
    of retention; None: it is never archived. ``version`` is SQL over ``s`` for the version that a decision is compared
    with. ``decide`` does what the list offers at once; None: it is decided on its own page alone. ``verdicts`` is SQL
    over ``s`` and ``:person`` for a JSON array of what this reader can say to one item from the list.
    ``page`` is the address of an item within its club's pages, ``why`` the sentence that says why it is here.
    ``topics`` are those of the hints that tell of a change.
    """

    name: str
    label: str
    icon: str
    table: str
    activity: str
    waits: str
    facts: str
    words: Words
    why: str
    page: Callable[[UUID], str]
    permission: Permission | None
    severity: Severity
    scope: Scope
    topics: tuple[str, ...]
    unknown: Callable[[], NotFound]
    agents_read: Words | None = None
    kind: Kind | None = None
    version: str = "0"
    decide: Decide | None = None
    verdicts: str = "jsonb_build_array('approve', 'reject')"


_sources: dict[str, Source] = {}


def register_source(source: Source) -> None:
    """Add a source to every inbox. Registering twice is once."""
    _sources[source.name] = source


def sources() -> tuple[Source, ...]:
    """Every source, in the order of registration."""
    return tuple(_sources.values())


def source_named(name: str) -> Source:
    """The source of that name. Raises ``NotFound``."""
    found = _sources.get(name)
    if found is None:
        raise NotFound("item_unknown", "There is no such item.", advice="Load the inbox again.")
    return found


def on_its_page() -> Conflict:
    """What cannot be decided from the list."""
    return Conflict(
        "decided_on_its_page", "This is decided on its own page.", advice="Open it and decide there."
    )
