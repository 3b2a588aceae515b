"""A read from VRChat as a page stands to it: awaited, not answered, failed, to be shown, or too old for that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from lastcall.clock import SYSTEM_CLOCK
from lastcall.connections.queries import ConnectionCard
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.operations.codes import Reason
from lastcall.reads.queries import Read, read_of
from lastcall.reads.states import NOT_ANSWERED, READ_LIFE
from lastcall.web.access import Visitor
from lastcall.web.club import ClubPage
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest
from lastcall.web.room import Web

NONCE_HEADER = "x-fresh-nonce"
NONCE_MOST = 64
LOOK_LEAST = timedelta(seconds=5)
"""A page that waits looks again no sooner than this by itself; what is told to it comes at once."""


class Phase(StrEnum):
    WAITING = "waiting"
    UNANSWERED = "unanswered"
    FAILED = "failed"
    OVER = "over"
    FRESH = "fresh"


@dataclass(frozen=True)
class Awaited:
    """``read`` is None when it is gone, or not for this reader: then it is over like one that is too old. ``now`` is
    the database's moment of the look; ``is_heard``: whether a collector of the connection was heard of lately.
    """

    read: Read | None
    now: datetime
    is_heard: bool

    @property
    def phase(self) -> Phase:
        if self.read is None:
            return Phase.OVER
        if self.read.is_fresh:
            return Phase.FRESH
        if self.read.code == NOT_ANSWERED:
            return Phase.UNANSWERED
        if self.read.code is not None:
            return Phase.FAILED
        return Phase.OVER if self.read.state.is_over else Phase.WAITING

    @property
    def is_fresh(self) -> bool:
        return self.phase is Phase.FRESH

    @property
    def read_id(self) -> str:
        return "" if self.read is None else encode_id(self.read.id)

    @property
    def why(self) -> Reason | None:
        """Why it failed, in words."""
        return None if self.read is None else self.read.reason

    @property
    def remaining_ms(self) -> int:
        """How long a page may show it, counted from before it asked."""
        return 0 if self.read is None else self.read.remaining_ms

    @property
    def observed_at(self) -> datetime | None:
        return None if self.read is None else self.read.observed_at

    @property
    def good_until(self) -> datetime:
        return self.now if self.read is None else self.now + self.read.remaining

    @property
    def total(self) -> int | None:
        return None if self.read is None else self.read.total

    @property
    def wait_ms(self) -> int:
        """When a page that was told nothing looks again: when nobody waits for the read any more."""
        if self.read is None:
            return 0
        left = self.read.requested_at + READ_LIFE - self.now
        return max(left, LOOK_LEAST) // timedelta(milliseconds=1)


async def look(
    tx: Reader, web: Web, visitor: Visitor, page: ClubPage, card: ConnectionCard | None, read_id: str
) -> Awaited:
    """The read of that id as it stands for the visitor now."""
    read: Read | None
    try:
        read = await read_of(tx, visitor.actor, page.club.id, known_id(read_id))
    except NotFound:
        read = None
    return Awaited(read, page.now, card is not None and _is_heard(web, card))


def _is_heard(web: Web, card: ConnectionCard) -> bool:
    """A worker that waits here, that called lately, or that has the connection in hand."""
    lately = SYSTEM_CLOCK.wall() - HEARD_WITHIN
    return card.lease is not None or any(
        one.account_id == card.account_id and (one.is_waiting or one.last_seen > lately)
        for one in web.presence()
    )


HEARD_WITHIN = timedelta(minutes=2)


def nonce_of(request: PageRequest) -> str:
    """What our script made for this question, to know the answer to it by; empty for a whole page."""
    nonce = request.headers.get(NONCE_HEADER, "")
    return nonce if nonce.isascii() and nonce.isalnum() and len(nonce) <= NONCE_MOST else ""
