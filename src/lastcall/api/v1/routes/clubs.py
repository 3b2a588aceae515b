"""Clubs: those of a person, and one of them."""

from __future__ import annotations

from litestar import get
from litestar.di import NamedDependency

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, Shape
from lastcall.clubs.queries import ClubView, clubs_of
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor

TAGS = ["Clubs"]


class Club(Shape, frozen=True):
    """A club as its staff see it. `zone` is an IANA name."""

    id: Id
    slug: str
    name: str
    zone: str
    state: str


class Clubs(Shape, frozen=True):
    """By name. There is no further page."""

    items: list[Club]


@get("/clubs", tags=TAGS, responses=answers())
async def list_clubs(db: NamedDependency[Database], actor: NamedDependency[Actor]) -> Clubs:
    """The clubs that you own or work for."""
    async with db.read() as tx:
        return Clubs(items=[club_shape(view) for view in await clubs_of(tx, actor)])


def club_shape(view: ClubView) -> Club:
    return Club(id=encode_id(view.id), slug=view.slug, name=view.name, zone=view.zone, state=view.state)


HANDLERS = (list_clubs,)
