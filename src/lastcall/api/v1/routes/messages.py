"""What people were told, and what could not be delivered."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, PAGE_MOST, After, Limit
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import cut, read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.deliveries import dead, notices
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Messages"]


class Message(Shape, frozen=True):
    """Something that you were told. Programs go by its `kind`; `path` is the page of what it is about."""

    id: Id
    told_at: datetime
    kind: str
    subject: str
    text: str
    path: str


class MessagePage(Shape, frozen=True):
    """The newest first. `next` is the cursor of the next page; null at the end."""

    items: list[Message]
    next: str | None


class DismissMessages(Input, frozen=True):
    """The ids of messages that you have read."""

    ids: Annotated[list[Id], Meta(max_length=PAGE_MOST)]


class DeadMessage(Shape, frozen=True):
    """A message that was given up: `attempts` came to nothing, the last for the reason in `error`."""

    id: Id
    club_id: Id
    kind: str
    channel: str
    recipient: str
    attempts: int
    error: str | None
    created_at: datetime
    given_up_at: datetime


class DeadMessagePage(Shape, frozen=True):
    """What was given up last comes first. `next` is the cursor of the next page; null at the end."""

    items: list[DeadMessage]
    next: str | None


@get("/clubs/{club:str}/messages", tags=TAGS, responses=answers(404))
async def list_messages(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
) -> MessagePage:
    """What you were told in this club and have not dismissed."""
    club_id, after = known(club), read_cursor(notices.LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found = await notices.notices_of(tx, actor, {club_id: standing}, after=after, limit=limit)
    return MessagePage(
        items=[
            Message(
                id=encode_id(one.id),
                told_at=one.told_at,
                kind=one.kind,
                subject=one.subject,
                text=one.sentence,
                path=one.path,
            )
            for one in found.items
        ],
        next=None if found.next is None else write_cursor(notices.LISTING, found.next),
    )


@post("/clubs/{club:str}/messages/dismiss", status_code=204, tags=TAGS, responses=answers(404, body=True))
async def dismiss_messages(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    data: JSONBody[DismissMessages],
) -> None:
    """Show these messages to you no more."""
    ids = [known_in(each, f"ids.{number}") for number, each in enumerate(data.ids)]
    await notices.dismiss_notices(db, actor, known(club), ids)


@get("/clubs/{club:str}/messages/undelivered", tags=TAGS, responses=answers(404))
async def list_undelivered(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
) -> DeadMessagePage:
    """What this club could not tell somebody by mail, Slack or an agent's key."""
    after = read_cursor(dead.LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        found = await dead.dead_of_club(tx, actor, known(club), after=after, limit=limit + 1)
    return _page(found, limit)


@get("/operator/messages/undelivered", tags=TAGS, responses=answers())
async def list_all_undelivered(
    db: NamedDependency[Database], actor: NamedDependency[Actor], limit: Limit = 50, cursor: After = None
) -> DeadMessagePage:
    """The same for every club, for operators."""
    after = read_cursor(dead.LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        found = await dead.dead_everywhere(tx, actor, after=after, limit=limit + 1)
    return _page(found, limit)


@post(
    "/clubs/{club:str}/messages/{message_id:str}/retry",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409),
)
async def retry_message(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, message_id: PathId
) -> None:
    """Try a message that was given up again. A mail that may have arrived is never sent again."""
    await dead.try_again(db, actor, known(club), known(message_id))


def _page(found: list[dead.DeadView], limit: int) -> DeadMessagePage:
    shown, behind = cut(found, limit, dead.LISTING, lambda one: one.cursor)
    return DeadMessagePage(
        items=[
            DeadMessage(
                id=encode_id(one.id),
                club_id=encode_id(one.club_id),
                kind=one.kind,
                channel=one.channel,
                recipient=one.recipient,
                attempts=one.attempts,
                error=one.error,
                created_at=one.created_at,
                given_up_at=one.ended_at,
            )
            for one in shown
        ],
        next=behind,
    )


HANDLERS = (
    list_messages,
    dismiss_messages,
    list_undelivered,
    list_all_undelivered,
    retry_message,
)
