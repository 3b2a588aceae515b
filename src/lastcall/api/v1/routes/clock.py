"""The server's time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Shape
from lastcall.db.database import Database
from lastcall.operations.server_clock import NONCE_PATTERN, server_clock
from lastcall.people.actor import Actor


class Clock(Shape, frozen=True):
    """The server's time `now`, and your `nonce`, by which you see that the answer is to this question."""

    nonce: str
    now: datetime


@get("/clock", tags=["Operations"], responses=answers())
async def read_clock(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    nonce: Annotated[
        str,
        QueryParameter(
            description="16 to 64 letters, digits, hyphens or underscores, new for each question.",
            schema_extra={"pattern": NONCE_PATTERN},
        ),
    ] = "",
) -> Clock:
    """Compare a time with this before you queue for it. Whether it is in the window is judged when it is queued."""
    async with db.read() as tx:
        reading = await server_clock(tx, actor, nonce)
    return Clock(nonce=reading.nonce, now=reading.now)


HANDLERS = (read_clock,)
