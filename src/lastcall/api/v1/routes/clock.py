"""The server's time, and what a zone's clock means by one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Shape
from lastcall.db.database import Database
from lastcall.errors import Invalid
from lastcall.local_time import ClockChange, LocalTime, in_zone
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
    ],
) -> Clock:
    """Compare a time with this before you queue for it. Whether it is in the window is judged when it is queued."""
    async with db.read() as tx:
        reading = await server_clock(tx, actor, nonce)
    return Clock(nonce=reading.nonce, now=reading.now)


class InstantMeant(Shape, frozen=True):
    """The instant `at`, and what the zone's clock shows then. `change` and `words` are there when the clock skips the
    time that was asked for (`gap`) or shows it twice on that day (`fold_first`, `fold_second`).
    """

    at: datetime
    local: datetime
    zone: str
    change: ClockChange | None
    words: str | None


@get("/local-time", tags=["Operations"], responses=answers())
async def read_local_time(
    local: Annotated[
        str,
        QueryParameter(
            max_length=40, description="What the clock shows, like 2026-10-25T02:30, without a zone."
        ),
    ],
    zone: Annotated[str, QueryParameter(max_length=100, description="An IANA name, like Europe/Berlin.")],
    second: Annotated[
        bool, QueryParameter(description="Of a time that comes twice, the second one.")
    ] = False,
) -> InstantMeant:
    """Which instant a time in a zone is, as pages reckon it too. All other calls take instants."""
    found = local_instant(local, zone, second=second)
    return InstantMeant(
        at=found.instant,
        local=found.local,
        zone=zone,
        change=found.change,
        words=None if found.change is None else found.change.words,
    )


def local_instant(local: str, zone: str, *, second: bool) -> LocalTime:
    """The instant that somebody means by a time without a zone. Raises ``Invalid`` with the field."""
    try:
        shown = datetime.fromisoformat(local)
        if shown.tzinfo is not None:
            raise ValueError
        return in_zone(shown, zone, second=second)
    except (ValueError, OverflowError) as error:
        raise Invalid(
            "local_time_malformed",
            "That is no date and time without a zone.",
            advice="Write it like 2026-10-25T02:30.",
            field="local",
        ) from error


HANDLERS = (read_clock, read_local_time)
