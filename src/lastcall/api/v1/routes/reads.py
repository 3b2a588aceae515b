"""Reads of what VRChat says now: ask for a page, and look whether it is there."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor
from lastcall.reads.asking import request_read
from lastcall.reads.queries import Read, read_of
from lastcall.reads.states import ReadState

TAGS = ["Reads"]


class ProviderRead(Shape, frozen=True):
    """One page of one kind as VRChat had it at `observedAt`. Ask again for it while it is `pending` or `running`.

    `items` are there for sixty seconds from `observedAt`, `remainingMs` more of them at the moment of this answer;
    then `isFresh` is false and they are gone. `nextOffset` is where the next page begins; null at the end. `code` says
    why it failed, `reason` and `advice` in words.
    """

    id: Id
    kind: str
    params: dict[str, Any]
    state: ReadState
    requested_at: datetime
    observed_at: datetime | None
    is_fresh: bool
    remaining_ms: int
    items: list[dict[str, Any]]
    next_offset: int | None
    total: int | None
    code: str | None
    reason: str | None
    advice: str | None


class NewRead(Input, frozen=True):
    """The kind of page and its parameters."""

    kind: str
    params: dict[str, Any] = msgspec.field(default_factory=dict)


def read_shape(read: Read) -> ProviderRead:
    reason = read.reason
    return ProviderRead(
        id=encode_id(read.id),
        kind=read.kind.name,
        params=msgspec.to_builtins(read.params),
        state=read.state,
        requested_at=read.requested_at,
        observed_at=read.observed_at,
        is_fresh=read.is_fresh,
        remaining_ms=read.remaining_ms,
        items=[msgspec.to_builtins(item) for item in read.items],
        next_offset=read.next_offset,
        total=read.total,
        code=read.code,
        reason=reason.label if reason else None,
        advice=reason.advice if reason else None,
    )


@post("/clubs/{club:str}/reads", status_code=202, tags=TAGS, responses=answers(404, 409, body=True))
async def ask_for_a_read(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[NewRead]
) -> ProviderRead:
    """Have a page read from VRChat. What somebody else asked for in the last minute is shared with you."""
    return read_shape(await request_read(db, actor, known(club), data.kind, data.params))


@get("/clubs/{club:str}/reads/{read_id:str}", tags=TAGS, responses=answers(404))
async def show_read(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, read_id: PathId
) -> ProviderRead:
    """A read as it stands now, for everybody who may see its kind. It goes fifteen minutes after it was asked."""
    async with db.read() as tx:
        return read_shape(await read_of(tx, actor, known(club), known(read_id)))


HANDLERS = (ask_for_a_read, show_read)
