"""What waits: over one club and over all, for people; and for agents, without a person or an address. People put it
out of their own sight and back."""

from __future__ import annotations

from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter
from msgspec import Meta
from sqlalchemy import select

from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.requests import FOR_AGENTS
from lastcall.api.v1.retention_shapes import RetentionState, state_shape
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, utc
from lastcall.db.clock import NOW
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.decisions.inbox.acts import Outcome, Said, Ticked, act_in_club
from lastcall.decisions.inbox.away import Until
from lastcall.decisions.inbox.item import Act, Item, Shelf
from lastcall.decisions.inbox.queries import LISTING, PAGE_MOST, InboxPage, Wanted, inbox_counts, inbox_page
from lastcall.decisions.inbox.reach import Reach, reach_everywhere, reach_in, reach_of_agent
from lastcall.decisions.inbox.source import Severity, Source, source_named
from lastcall.errors import Invalid, NotFound
from lastcall.people.actor import Actor, AgentActor

TAGS = ["Inbox"]
OnShelf = Annotated[
    Shelf, QueryParameter(name="shelf", description="Which shelf; a day begins at midnight UTC.")
]


class Sight(StrEnum):
    """What a reader does to their own sight of an item."""

    SNOOZE = "snooze"
    DISMISS = "dismiss"
    SHOW = "show"


PathSight = Annotated[str, PathParameter(schema_extra={"enum": list(Sight)})]
"""Text that is none of them is unknown (404), so it is described and not checked."""


class InboxItem(Shape, frozen=True):
    """One thing that waits. `why` says why it is there; `archivesAt` is when it is archived by itself (null: not, as
    things stand, or never), in words in `outlook`. `retention` is null for what is never archived. `actions` are what
    you may do to it; `seen` and `retention.version` are what a change is compared with.
    """

    kind: str
    id: Id
    club_id: Id
    title: str
    detail: str
    why: str
    severity: Severity
    activity_at: datetime
    expires_at: datetime | None
    archives_at: datetime | None
    outlook: str | None
    retention: RetentionState | None
    put_away_until: datetime | None
    is_put_away: bool
    seen: int
    actions: list[Act]


class InboxItems(Shape, frozen=True):
    """The newest activity first. `count` is how many the shelf has, exact below 100 and 100 from there on. `next` is
    the cursor of the next page, which holds though an item is gone by then; null at the end.
    """

    items: list[InboxItem]
    count: int
    next: str | None


class PutItem(Input, frozen=True):
    """An item, by the `kind` and `id` of the list. With the `activityAt` of the list it is put away as it was seen:
    left as it is where something happened to it since; without, whatever happened.
    """

    kind: Annotated[str, Meta(max_length=40)]
    id: Id
    activity_at: datetime | None = None


class PutItems(Input, frozen=True):
    """Which items; and, to snooze them, until when: at most five years ahead."""

    items: Annotated[list[PutItem], Meta(min_length=1, max_length=PAGE_MOST)]
    until: datetime | None = None


class PutRefusal(Shape, frozen=True):
    """Why an item was left as it is."""

    code: str
    title: str
    advice: str | None


class PutOutcome(Shape, frozen=True):
    """What became of one item; `refusal` is null for what was done."""

    kind: str
    id: Id
    refusal: PutRefusal | None


class PutOutcomes(Shape, frozen=True):
    """One outcome an item, in the order in which they were sent."""

    items: list[PutOutcome]


@get("/inbox", tags=TAGS, responses=answers())
async def list_inbox(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    on_shelf: OnShelf = Shelf.WAITING,
    limit: Limit = 50,
    cursor: After = None,
) -> InboxItems:
    """What waits for you in every club that you own or work for."""
    async with db.read() as tx:
        return await _answer(tx, await reach_everywhere(tx, actor), on_shelf, limit, cursor)


@get("/clubs/{club:str}/inbox", tags=TAGS, responses=answers(404))
async def list_club_inbox(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    on_shelf: OnShelf = Shelf.WAITING,
    limit: Limit = 50,
    cursor: After = None,
) -> InboxItems:
    """What waits for you in this club. What your roles do not let you see is not there."""
    async with db.read() as tx:
        return await _answer(tx, await reach_in(tx, actor, known(club)), on_shelf, limit, cursor)


@get("/agent/inbox", tags=["For agents"], opt=FOR_AGENTS, responses=answers(409))
async def list_agent_inbox(
    db: NamedDependency[Database],
    agent: NamedDependency[AgentActor],
    on_shelf: OnShelf = Shelf.WAITING,
    limit: Limit = 50,
    cursor: After = None,
) -> InboxItems:
    """What waits in the agent's club, without people's names and addresses. Needs the grant `read_inbox`."""
    async with db.read() as tx:
        return await _answer(tx, await reach_of_agent(tx, agent), on_shelf, limit, cursor)


@post(
    "/clubs/{club:str}/inbox/{sight:str}",
    status_code=200,
    tags=TAGS,
    responses=answers(404, body=True),
)
async def put_inbox_items(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    sight: PathSight,
    data: JSONBody[PutItems],
) -> PutOutcomes:
    """Snooze items until a time, dismiss them until something happens to them, or show them again: for yourself alone,
    and each by itself. The same again changes nothing.
    """
    if sight not in set(Sight):
        raise NotFound("not_found", "There is nothing at this address.")
    act = Act(sight)
    if (act is Act.SNOOZE) is not (data.until is not None):
        raise Invalid(
            "until_misplaced",
            "Items are snoozed until a time, and dismissed or shown without one.",
            advice="Say until when to snooze them." if act is Act.SNOOZE else "Leave it out.",
            field="until",
        )
    until = Until(None if data.until is None else utc(data.until, "until"))
    club_id = known(club)
    items = [
        Ticked(
            _source_in(one.kind, index),
            club_id,
            known_in(one.id, f"items[{index}].id"),
            activity_at=None
            if one.activity_at is None
            else utc(one.activity_at, f"items[{index}].activityAt"),
        )
        for index, one in enumerate(data.items)
    ]
    outcomes = await act_in_club(db, actor, club_id, act, items, Said(until=until))
    return PutOutcomes(items=[_outcome(one) for one in outcomes])


async def _answer(tx: Reader, reach: Reach, shelf: Shelf, limit: int, cursor: str | None) -> InboxItems:
    after = read_cursor(LISTING, cursor, field=CURSOR)
    now: datetime = await tx.scalar(select(NOW))
    wanted = Wanted(now, datetime.combine(now.astimezone(UTC).date(), time(), UTC), shelf)
    page = await inbox_page(tx, reach, wanted, after=after, limit=limit)
    counts = await inbox_counts(tx, reach, wanted, (shelf,))
    return _shape(page, counts.of(shelf).number)


def _shape(page: InboxPage, count: int) -> InboxItems:
    following = None if page.next is None else write_cursor(LISTING, page.next)
    return InboxItems(items=[_item(one) for one in page.items], count=count, next=following)


def _item(one: Item) -> InboxItem:
    return InboxItem(
        kind=one.source.name,
        id=encode_id(one.id),
        club_id=encode_id(one.club.id),
        title=one.shown.title,
        detail=one.shown.detail,
        why=one.source.why,
        severity=one.source.severity,
        activity_at=one.activity_at,
        expires_at=one.shown.expires_at,
        archives_at=one.due_at,
        outlook=None if one.outlook is None else one.outlook.words,
        retention=None if one.retention is None else state_shape(one.retention),
        put_away_until=None if one.away is None else one.away.until,
        is_put_away=one.away is not None,
        seen=one.seen,
        actions=[act for act in Act if act in one.actions],
    )


def _source_in(name: str, index: int) -> Source:
    try:
        return source_named(name)
    except NotFound as error:
        raise Invalid(
            "kind_unknown",
            "There is no such kind of item.",
            advice="Send it as the list tells it.",
            field=f"items[{index}].kind",
        ) from error


def _outcome(one: Outcome) -> PutOutcome:
    problem = one.problem
    refusal = (
        None
        if problem is None
        else PutRefusal(code=problem.code, title=problem.sentence, advice=problem.advice)
    )
    return PutOutcome(kind=one.item.source.name, id=encode_id(one.item.id), refusal=refusal)


HANDLERS = (list_inbox, list_club_inbox, list_agent_inbox, put_inbox_items)
