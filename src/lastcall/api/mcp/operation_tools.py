"""Tools on operations: look, explain, forecast, queue, edit, cancel. Each is a call of the HTTP API, by its code."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lastcall.api.mcp.tool import Club, PageCursor, PageSize, Tool
from lastcall.api.v1.routes.clubs import list_clubs
from lastcall.api.v1.routes.operation_story import explain_operation
from lastcall.api.v1.routes.operations import (
    Cancel,
    Edit,
    cancel_operation,
    edit_operation,
    list_past_operations,
    list_upcoming_operations,
)
from lastcall.api.v1.routes.requests import (
    NewRequest,
    cancel_whole_request,
    enqueue_request,
    show_forecast,
)
from lastcall.api.v1.schedules import AtOnce, When
from lastcall.api.v1.shapes import Id, Input, Shape
from lastcall.db.database import Database
from lastcall.operations.kinds import KINDS
from lastcall.operations.machine import State
from lastcall.operations.services.asked import MOST_PAYLOADS
from lastcall.people.actor import Actor

KindName = Annotated[str, Meta(description=f"One of {', '.join(KINDS)}.")]
OperationId = Annotated[Id, Meta(description="The operation's id.")]
SeenRevision = Annotated[int, Meta(ge=1, le=2**31 - 1, description="The operation's revision that was seen.")]
Banned = Annotated[
    list[str],
    Meta(
        max_length=MOST_PAYLOADS,
        description="Ids of banned people whose ban a person wants lifted by this. Ask them first.",
    ),
]


class NoArguments(Input, frozen=True):
    """Nothing is asked."""


class ListOperations(Input, frozen=True):
    """Which operations are wanted."""

    club: Club
    is_over: Annotated[
        bool, Meta(description="What ended, the newest first, instead of what is to come.")
    ] = False
    kind: KindName | None = None
    state: State | None = None
    request_id: Annotated[str, Meta(description="Those of one request.")] | None = None
    event_id: Annotated[str, Meta(description="Those that stop with one event.")] | None = None
    search: (
        Annotated[str, Meta(description="About this person, world or post: its VRChat id in full.")] | None
    ) = None
    limit: PageSize = 20
    cursor: PageCursor | None = None


class OneOperation(Input, frozen=True):
    """Which operation is meant."""

    club: Club
    operation_id: OperationId


class AskForecast(Input, frozen=True):
    """What would be queued."""

    club: Club
    kind: KindName
    count: Annotated[int, Meta(ge=1, le=MOST_PAYLOADS, description="How many targets.")] = 1
    due_at: Annotated[datetime, Meta(description="With its zone; now without it.")] | None = None


class Enqueue(Input, frozen=True):
    """What is queued."""

    club: Club
    request_id: Annotated[
        str,
        Meta(
            pattern="^[A-Za-z0-9_-]{8,100}$",
            description="Yours to choose, once for each thing to queue. Send the same again when an answer was lost.",
        ),
    ]
    payloads: Annotated[
        list[dict[str, Any]],
        Meta(min_length=1, max_length=MOST_PAYLOADS, description="One for each target, all of one kind."),
    ]
    schedule: When = AtOnce()
    confirm_banned: Banned = msgspec.field(default_factory=list)


class EditOperation(Input, frozen=True):
    """All that the operation is to say."""

    club: Club
    operation_id: OperationId
    revision: SeenRevision
    payload: Annotated[dict[str, Any], Meta(description="Of the kind that the operation has.")]
    schedule: When
    confirm_banned: Banned = msgspec.field(default_factory=list)


class CancelOperation(Input, frozen=True):
    """Which operation, as it was seen."""

    club: Club
    operation_id: OperationId
    revision: SeenRevision


class CancelRequest(Input, frozen=True):
    """Which request is meant."""

    club: Club
    request_id: Annotated[Id, Meta(description="The request's id, as enqueue answered it.")]


def _payload_schema() -> dict[str, Any]:
    """The fields of every kind, each with its kind's name."""
    roots, parts = msgspec.json.schema_components(
        [kind.payload for kind in KINDS.values()], ref_template="#/$defs/{name}"
    )
    found = []
    for kind, root in zip(KINDS.values(), roots, strict=True):
        schema = dict(parts[root["$ref"].rpartition("/")[2]])
        schema["title"] = kind.words.label
        schema.pop("description", None)
        schema["properties"] = {"kind": {"const": kind.name}, **schema["properties"]}
        schema["required"] = ["kind", *schema.get("required", ())]
        found.append(schema)
    return {"anyOf": found}


async def _list(db: Database, actor: Actor, asked: ListOperations) -> Shape:
    listing = list_past_operations if asked.is_over else list_upcoming_operations
    answer: Shape = await listing.fn(
        db=db,
        actor=actor,
        club=asked.club,
        limit=asked.limit,
        cursor=asked.cursor,
        kind=asked.kind,
        in_state=asked.state,
        request_id=asked.request_id,
        event_id=asked.event_id,
        search=asked.search,
    )
    return answer


async def _enqueue(db: Database, actor: Actor, asked: Enqueue) -> Shape:
    data = NewRequest(
        request_id=asked.request_id,
        payloads=asked.payloads,
        schedule=asked.schedule,
        confirm_banned=asked.confirm_banned,
    )
    answer: Shape = await enqueue_request.fn(db=db, actor=actor, club=asked.club, data=data)
    return answer


async def _edit(db: Database, actor: Actor, asked: EditOperation) -> Shape:
    data = Edit(
        revision=asked.revision,
        payload=asked.payload,
        schedule=asked.schedule,
        confirm_banned=asked.confirm_banned,
    )
    answer: Shape = await edit_operation.fn(
        db=db, actor=actor, club=asked.club, operation_id=asked.operation_id, data=data
    )
    return answer


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="list_clubs",
        words="The clubs that you own or work for, with the ids that every other tool takes.",
        asked=NoArguments,
        run=lambda db, actor, _: list_clubs.fn(db=db, actor=actor),
        reads=True,
    ),
    Tool(
        name="list_operations",
        words="Reviewed writes to VRChat: what is to come by due time, or what is over. Kinds that you have no "
        "permission for do not appear.",
        asked=ListOperations,
        run=_list,
        reads=True,
    ),
    Tool(
        name="explain_operation",
        words="One operation with its state, the reason code, why it stands so, what comes next and when, what a "
        "person can do, and everything that has happened to it.",
        asked=OneOperation,
        run=lambda db, actor, asked: explain_operation.fn(
            db=db, actor=actor, club=asked.club, operation_id=asked.operation_id
        ),
        reads=True,
    ),
    Tool(
        name="forecast",
        words="When each target of a request like this would be sent, and how to have all of them in time. "
        "It reserves nothing.",
        asked=AskForecast,
        run=lambda db, actor, asked: show_forecast.fn(
            db=db, actor=actor, club=asked.club, kind=asked.kind, count=asked.count, due_at=asked.due_at
        ),
        reads=True,
    ),
    Tool(
        name="enqueue",
        words="Queue 1 to 100 reviewed writes of one kind, all or none, under the authority of the person whose token "
        "this is. Each is sent at most once. Let them review kind, targets and time before.",
        asked=Enqueue,
        run=_enqueue,
        destroys=True,
        repeats=True,
        more_schema={
            "payloads": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_PAYLOADS,
                "description": "One for each target, all of one kind.",
                "items": _payload_schema(),
            }
        },
    ),
    Tool(
        name="edit_operation",
        words="Replace what a pending operation says and when it is due. Its kind stays. From then on the authority of "
        "the person whose token this is counts for it.",
        asked=EditOperation,
        run=_edit,
        destroys=True,
    ),
    Tool(
        name="cancel_operation",
        words="Stop one operation before it is sent. Cancelling a cancelled one changes nothing.",
        asked=CancelOperation,
        run=lambda db, actor, asked: cancel_operation.fn(
            db=db,
            actor=actor,
            club=asked.club,
            operation_id=asked.operation_id,
            data=Cancel(revision=asked.revision),
        ),
        destroys=True,
        repeats=True,
    ),
    Tool(
        name="cancel_request",
        words="Stop everything of a request that is not sent yet. What was sent stays.",
        asked=CancelRequest,
        run=lambda db, actor, asked: cancel_whole_request.fn(
            db=db, actor=actor, club=asked.club, request_id=asked.request_id
        ),
        destroys=True,
        repeats=True,
    ),
)
