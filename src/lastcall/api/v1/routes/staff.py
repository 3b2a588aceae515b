"""Staff of a club: roles, and who holds them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.idempotency import Key, called, once
from lastcall.api.v1.requests import ApiRequest
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, utc
from lastcall.clubs import queries
from lastcall.clubs.permissions import Permission
from lastcall.clubs.roles import (
    PROVIDER_ROLES_MOST,
    ROLES_MOST,
    RoleFields,
    create_role,
    delete_role,
    edit_role,
)
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor

TAGS = ["Staff"]


class Role(Shape, frozen=True):
    """What a group of staff may do. `assignableRoleIds`: the roles its holders may hand on with `manage_staff`;
    `providerRoleIds`: the VRChat roles they may assign with `assign_vrchat_roles`.
    """

    id: Id
    name: str
    description: str
    permissions: list[Permission]
    assignable_role_ids: list[Id]
    provider_role_ids: list[str]
    preset_key: str | None
    holders: int
    updated_at: datetime


class Roles(Shape, frozen=True):
    """The oldest first. There is no further page."""

    items: list[Role]


class NewRole(Input, frozen=True):
    """A role that nobody holds yet."""

    name: str
    description: str = ""
    permissions: list[Permission] = msgspec.field(default_factory=list)
    assignable_role_ids: Annotated[list[Id], Meta(max_length=ROLES_MOST)] = msgspec.field(
        default_factory=list
    )
    provider_role_ids: Annotated[list[str], Meta(max_length=PROVIDER_ROLES_MOST)] = msgspec.field(
        default_factory=list
    )


class RoleEdit(Input, frozen=True):
    """All that a role says, at once. `seen` is the `updatedAt` that it was read with."""

    name: str
    description: str
    permissions: list[Permission]
    assignable_role_ids: Annotated[list[Id], Meta(max_length=ROLES_MOST)]
    provider_role_ids: Annotated[list[str], Meta(max_length=PROVIDER_ROLES_MOST)]
    seen: datetime


class RoleDeleted(Shape, frozen=True):
    """What went with a role: how many people held it, and the categories of data that only the owner sees now."""

    people: int
    owner_only: list[str]


class Member(Shape, frozen=True):
    """Somebody on the staff. `isBlocked`: an operator took all they may do."""

    person_id: Id
    name: str
    role_ids: list[Id]
    is_blocked: bool
    since: datetime


class Roster(Shape, frozen=True):
    """The staff by name, without the owner. `isCut`: there are more than are shown."""

    items: list[Member]
    is_cut: bool


@get("/clubs/{club:str}/roles", tags=TAGS, responses=answers(404))
async def list_roles(db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId) -> Roles:
    """The roles of a club; needs `manage_staff`."""
    async with db.read() as tx:
        found = await queries.staff_roles(tx, actor, known(club))
    return Roles(items=[role_shape(view) for view in found])


@get("/clubs/{club:str}/roles/{role_id:str}", tags=TAGS, responses=answers(404))
async def show_role(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, role_id: PathId
) -> Role:
    """One role; needs `manage_staff`."""
    async with db.read() as tx:
        return role_shape(await queries.role(tx, actor, known(club), known(role_id)))


@post("/clubs/{club:str}/roles", tags=TAGS, responses=answers(404, 409, body=True))
async def create_one_role(
    request: ApiRequest,
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    data: JSONBody[NewRole],
    key: Key = None,
) -> Role:
    """Make a role. Only the owner makes, edits and deletes roles."""
    club_id = known(club)

    async def make() -> Role:
        return role_shape(await create_role(db, actor, club_id, _fields(data)))

    return await once(db, actor, called(request), key, data, make, Role)


@put("/clubs/{club:str}/roles/{role_id:str}", tags=TAGS, responses=answers(404, 409, body=True))
async def edit_one_role(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    role_id: PathId,
    data: JSONBody[RoleEdit],
) -> Role:
    """Set all that a role says. It holds at once, also for what was queued before."""
    seen = utc(data.seen, "seen")
    return role_shape(await edit_role(db, actor, known(club), known(role_id), _fields(data), seen))


@delete("/clubs/{club:str}/roles/{role_id:str}", status_code=200, tags=TAGS, responses=answers(404, 409))
async def delete_one_role(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    role_id: PathId,
    seen: Annotated[datetime, QueryParameter(description="The `updatedAt` that the role was read with.")],
) -> RoleDeleted:
    """Delete a role: nobody holds it, hands it on or sees anything by it any more."""
    gone = await delete_role(db, actor, known(club), known(role_id), utc(seen, "seen"))
    return RoleDeleted(people=gone.people, owner_only=list(gone.owner_only))


@get("/clubs/{club:str}/staff", tags=TAGS, responses=answers(404))
async def list_staff(db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId) -> Roster:
    """Who works for a club; needs `manage_staff`."""
    async with db.read() as tx:
        found = await queries.roster(tx, actor, known(club))
    return Roster(
        items=[
            Member(
                person_id=encode_id(member.person_id),
                name=member.name,
                role_ids=[encode_id(each) for each in member.role_ids],
                is_blocked=member.is_blocked,
                since=member.since,
            )
            for member in found.members
        ],
        is_cut=found.is_cut,
    )


@put(
    "/clubs/{club:str}/staff/{person_id:str}/roles/{role_id:str}",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409),
)
async def give_role(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    person_id: PathId,
    role_id: PathId,
) -> None:
    """Give a person a role. One that is held already is nothing to do."""
    await assign_role(db, actor, known(club), known(role_id), known(person_id))


@delete("/clubs/{club:str}/staff/{person_id:str}/roles/{role_id:str}", tags=TAGS, responses=answers(404, 409))
async def take_role(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    person_id: PathId,
    role_id: PathId,
) -> None:
    """Take a role from a person, at once. One that is not held is nothing to do."""
    await revoke_role(db, actor, known(club), known(role_id), known(person_id))


def _fields(data: NewRole | RoleEdit) -> RoleFields:
    return RoleFields(
        name=data.name,
        description=data.description,
        permissions=frozenset(data.permissions),
        assignable_role_ids=frozenset(
            known_in(each, "assignable_role_ids") for each in data.assignable_role_ids
        ),
        provider_role_ids=frozenset(data.provider_role_ids),
    )


def role_shape(view: queries.RoleView) -> Role:
    return Role(
        id=encode_id(view.id),
        name=view.name,
        description=view.description,
        permissions=[each for each in Permission if each in view.permissions],
        assignable_role_ids=sorted(encode_id(each) for each in view.assignable_role_ids),
        provider_role_ids=sorted(view.provider_role_ids),
        preset_key=view.preset_key,
        holders=view.holders,
        updated_at=view.updated_at,
    )


HANDLERS = (
    list_roles,
    show_role,
    create_one_role,
    edit_one_role,
    delete_one_role,
    list_staff,
    give_role,
    take_role,
)
