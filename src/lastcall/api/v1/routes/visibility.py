"""Who may see what a club measures."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import get, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, utc
from lastcall.clubs.roles import ROLES_MOST
from lastcall.clubs.visibility import Audience, Category, VisibilityView, set_visibility, visibility_of
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.errors import NotFound
from lastcall.people.actor import Actor

TAGS = ["Visibility"]


class Visibility(Shape, frozen=True):
    """Who may see one category of data. `updatedAt` is null while the owner never chose."""

    category: Category
    audience: Audience
    role_ids: list[Id]
    updated_at: datetime | None


class Visibilities(Shape, frozen=True):
    """Every category. There is no further page."""

    items: list[Visibility]


class VisibilityEdit(Input, frozen=True):
    """`roleIds` are for the audience `roles`. `seen` is the `updatedAt` that was read, null while there was none."""

    audience: Audience
    seen: datetime | None
    role_ids: Annotated[list[Id], Meta(max_length=ROLES_MOST)] = msgspec.field(default_factory=list)


@get("/clubs/{club:str}/visibility", tags=TAGS, responses=answers(404))
async def list_visibility(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> Visibilities:
    """Every category of data with who may see it. Owner only."""
    async with db.read() as tx:
        found = await visibility_of(tx, actor, known(club))
    return Visibilities(items=[visibility_shape(view) for view in found])


@put("/clubs/{club:str}/visibility/{category:str}", tags=TAGS, responses=answers(404, 409, body=True))
async def edit_visibility(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    category: FromPath[str],
    data: JSONBody[VisibilityEdit],
) -> Visibility:
    """Choose who may see a category. Owner only."""
    seen = None if data.seen is None else utc(data.seen, "seen")
    role_ids = [known_in(each, "role_ids") for each in data.role_ids]
    chosen = _category(category)
    return visibility_shape(
        await set_visibility(db, actor, known(club), chosen, data.audience, role_ids, seen)
    )


def _category(name: str) -> Category:
    try:
        return Category(name)
    except ValueError as error:
        raise NotFound("category_unknown", "There is no such category of data.") from error


def visibility_shape(view: VisibilityView) -> Visibility:
    return Visibility(
        category=view.category,
        audience=view.audience,
        role_ids=[encode_id(each) for each in view.role_ids],
        updated_at=view.updated_at,
    )


HANDLERS = (list_visibility, edit_visibility)
