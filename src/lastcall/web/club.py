"""What every page of a club needs first: the club in the address, and what the visitor is there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lastcall.clubs.policy import Standing
from lastcall.clubs.queries import ClubView, club_by_slug
from lastcall.db.transaction import Reader
from lastcall.decisions.inbox.item import Count, Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_counts
from lastcall.decisions.inbox.reach import reach_of
from lastcall.web.access import Visitor
from lastcall.web.pages import Place
from lastcall.web.room import database_now


@dataclass(frozen=True)
class ClubPage:
    club: ClubView
    standing: Standing
    now: datetime
    waiting: Count

    def place(self, section: str) -> Place:
        return Place(section, self.club.name, self.club.slug, self.club.zone, self.standing, self.waiting)

    def path(self, rest: str) -> str:
        return f"/c/{self.club.slug}/{rest}"


async def club_page(tx: Reader, visitor: Visitor, slug: str) -> ClubPage:
    """Raises ``NotFound`` for a club that is not there and for one on whose staff the visitor is not."""
    club, standing = await club_by_slug(tx, visitor.actor, slug)
    now = await database_now(tx)
    reach = reach_of(visitor.actor, club.id, standing)
    counts = await inbox_counts(tx, reach, Wanted(now, now), (Shelf.WAITING,))
    return ClubPage(club, standing, now, counts.of(Shelf.WAITING))
