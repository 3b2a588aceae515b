"""Which mails a person wants. Rooms declare their topics; notices about an account are none, as nobody may
turn them off."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.holding import hold_actor
from lastcall.people.scopes import Scope
from lastcall.people.tables import MailPreference


@dataclass(frozen=True)
class Topic:
    """What mails can be about: ``key`` is stored, ``label`` finishes *Write to me when …*."""

    key: str
    label: str
    is_on: bool = True
    """What counts for whoever never chose."""


@dataclass(frozen=True)
class Preference:
    topic: Topic
    is_on: bool


_topics: dict[str, Topic] = {}


def declare_topic(topic: Topic) -> None:
    """Let people choose about ``topic``. Declaring it twice is once."""
    _topics[topic.key] = topic


async def preferences_of(tx: Reader, actor: Actor) -> list[Preference]:
    """The actor's choice for every topic, in the order of their declaration."""
    actor.require_scope(Scope.READ)
    chosen = await _chosen(tx, actor.person_id)
    return [Preference(topic, chosen.get(topic.key, topic.is_on)) for topic in _topics.values()]


async def set_preferences(db: Database, actor: Actor, wanted: Collection[str]) -> None:
    """Want mail about these topics and about no other."""
    actor.require_scope(Scope.ACCOUNT)
    rows = [{"person_id": actor.person_id, "topic": key, "is_on": key in wanted} for key in sorted(_topics)]
    if not rows:
        return
    statement = insert(MailPreference).values(rows)
    async with db.transaction() as tx:
        await hold_actor(tx, actor)
        await tx.execute(
            statement.on_conflict_do_update(
                index_elements=[MailPreference.person_id, MailPreference.topic],
                set_={"is_on": statement.excluded.is_on},
            )
        )


async def wants_mail(tx: Reader, person_id: UUID, topic: Topic) -> bool:
    """Whether the person is to be written to about ``topic``."""
    return (await _chosen(tx, person_id)).get(topic.key, topic.is_on)


async def _chosen(tx: Reader, person_id: UUID) -> dict[str, bool]:
    rows = await tx.execute(
        select(MailPreference.topic, MailPreference.is_on).where(MailPreference.person_id == person_id)
    )
    return {row.topic: row.is_on for row in rows.all()}
