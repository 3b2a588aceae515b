"""What the pages' routes are given: the database, the templates, the live hub and the scheduler's own
account.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import select

from lastcall.access.slack.installing import Slack
from lastcall.connections.work import Presence
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.deadlines.lane import OwnerStatus
from lastcall.mail.mailer import Mailer
from lastcall.people.offer import Offer
from lastcall.web.access import Visitor
from lastcall.web.live import LiveHub
from lastcall.web.pages import PageRequest, Pages


@dataclass(frozen=True)
class Web:
    database: Database
    pages: Pages
    live: LiveHub
    deadlines: Callable[[], Sequence[OwnerStatus]]
    presence: Callable[[], Sequence[Presence]]
    mailer: Mailer
    public_url: str

    def address(self, path: str) -> str:
        """The whole address of one of our pages, for somebody to pass on; no request has a say in it."""
        return self.public_url.rstrip("/") + path

    offer: Offer
    slack: Slack | None = None


def provide_web(request: PageRequest) -> Web:
    return cast("Web", request.app.state.web)


def provide_visitor(request: PageRequest) -> Visitor:
    return cast("Visitor", request.state.visitor)


async def database_now(tx: Reader) -> datetime:
    """The moment a page is made, by the one clock that counts."""
    return cast("datetime", await tx.scalar(select(NOW)))
