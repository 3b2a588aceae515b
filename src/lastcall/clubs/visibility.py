"""Who may see what a club measures: categories of data, an audience each, and the filter every response passes.

Nothing is public unless the owner made it so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints
from uuid import UUID

import msgspec
from sqlalchemy import Row, Select, select
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import log
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.policy import require_owner
from lastcall.clubs.roles import require_active_roles
from lastcall.clubs.tables import Visibility
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

Value = TypeVar("Value")


class Audience(StrEnum):
    """Who may see a category. ``ROLES`` are the holders of chosen roles; the owner sees everything anyway."""

    PUBLIC = "public"
    STAFF = "staff"
    ROLES = "roles"
    OWNER = "owner"


class Category(StrEnum):
    """One kind of data about a club. Annotate a field with it: ``members: Annotated[int | UnsetType,
    Category.GROUP_SIZE] = UNSET``."""

    CURRENT_POPULATION = "current_population"
    POPULATION_HISTORY = "population_history"
    GROUP_SIZE = "group_size"
    INSTANCE_HISTORY = "instance_history"
    MEMBERSHIP_MOVEMENT = "membership_movement"
    INDIVIDUAL_MEMBERSHIP_HISTORY = "individual_membership_history"
    EVENT_RECAPS = "event_recaps"

    @property
    def label(self) -> str:
        """What people read."""
        return self.value.replace("_", " ").capitalize()

    @property
    def may_be_public(self) -> bool:
        """Whether the owner may choose ``Audience.PUBLIC``: not for what is about single members."""
        return self is not Category.INDIVIDUAL_MEMBERSHIP_HISTORY

    @property
    def default(self) -> Audience:
        """The audience until the owner chooses."""
        return Audience.STAFF if self.may_be_public else Audience.OWNER


# One statement: the person, what they hold and the club's choices are of the same moment.
_READABLE = """
    select k.category
      from clubs c
     cross join unnest($3::text[], $4::text[]) as k (category, usual)
      left join visibility v on v.club_id = c.id and v.category = k.category
      left join people p on p.id = $2 and p.blocked_at is null
     cross join lateral (
           select coalesce(array_agg(r.id), '{}') as role_ids
             from staff_assignments a
             join staff_roles r on r.club_id = a.club_id and r.id = a.role_id and r.state = 'active'
            where a.club_id = c.id and a.person_id = p.id) as held
     where c.id = $1
       and c.state <> 'deleting'
       and (c.owner_id = p.id
            or case coalesce(v.audience, k.usual)
                   when 'public' then c.state <> 'archived' or cardinality(held.role_ids) > 0
                   when 'staff' then cardinality(held.role_ids) > 0
                   when 'roles' then v.role_ids && held.role_ids
                   else false
               end)
"""
_CATEGORIES = [category.value for category in Category]
_DEFAULTS = [category.default.value for category in Category]


class VisibilityView(msgspec.Struct, frozen=True):
    """One category's audience. ``updated_at`` is None while the owner never chose."""

    category: Category
    audience: Audience
    role_ids: tuple[UUID, ...]
    updated_at: datetime | None


async def visibility_of(tx: Reader, actor: Actor, club_id: UUID) -> list[VisibilityView]:
    """Every category with its audience. Owner only."""
    await require_owner(tx, actor, club_id, scope=Scope.READ)
    chosen = {row.category: row for row in (await tx.execute(_choices(club_id))).all()}
    return [_view(category, chosen.get(category.value)) for category in Category]


async def set_visibility(
    db: Database,
    actor: Actor,
    club_id: UUID,
    category: Category,
    audience: Audience,
    role_ids: Collection[UUID],
    seen: datetime | None,
) -> VisibilityView:
    """Choose who may see a category; answers it as it is then. Owner only.

    ``role_ids`` are for ``Audience.ROLES`` and empty otherwise; ``seen`` is the ``updated_at`` that was shown.
    Raises ``Invalid`` for a choice that the category or the audience does not allow, ``NotFound`` for an unknown
    role and ``Conflict`` with the fresh row when somebody chose meanwhile.
    """
    chosen = sorted(set(role_ids))
    _check(category, audience, chosen)
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner(tx, actor, club_id, scope=Scope.CLUBS)
        before = await _read(tx, club_id, category)
        if before.updated_at != seen:
            raise Conflict(
                "visibility_moved",
                "Somebody changed this meanwhile.",
                advice="Look at it as it is now, and choose again.",
                fresh=before,
            )
        await require_active_roles(tx, club_id, chosen)
        await tx.execute(
            upsert(Visibility)
            .values(club_id=club_id, category=category.value, audience=audience.value, role_ids=chosen)
            .on_conflict_do_update(
                index_elements=["club_id", "category"],
                set_={"audience": audience.value, "role_ids": chosen, "updated_at": Visibility.forward()},
            )
        )
        details = {
            "category": category.value,
            "audience": audience.value,
            "roles": [str(role_id) for role_id in chosen],
            "before": before.audience.value,
        }
        await log(tx, club_id, actor, "visibility.changed", "club", club_id, details)
        return await _read(tx, club_id, category)


async def readable(tx: Reader, club_id: UUID, actor: Actor | None) -> frozenset[Category]:
    """The categories that this person (None: anybody) may see of the club now. Nothing of an unknown club, and to
    the public nothing of an archived one."""
    if actor is not None:
        actor.require_scope(Scope.READ)
    person_id = None if actor is None else actor.person_id
    rows = await tx.raw.fetch(_READABLE, club_id, person_id, _CATEGORIES, _DEFAULTS)
    return frozenset(Category(row["category"]) for row in rows)


def visible(value: Value, allowed: Collection[Category]) -> Value:
    """``value`` without the fields that are annotated with a category outside of ``allowed``, at any depth of
    structs, lists, tuples, sets and mappings: they become ``UNSET``, so they are not in the response at all."""
    result: Value = _filtered(value, frozenset(allowed))
    return result


def _filtered(value: Any, allowed: frozenset[Category]) -> Any:
    match value:
        case msgspec.Struct():
            guarded = _guarded(type(value))
            fields = {
                name: msgspec.UNSET
                if name in guarded and not guarded[name] <= allowed
                else _filtered(getattr(value, name), allowed)
                for name in value.__struct_fields__
            }
            return type(value)(**fields)
        case list() | tuple() | set() | frozenset():
            return type(value)(_filtered(entry, allowed) for entry in value)
        case Mapping():
            return {key: _filtered(entry, allowed) for key, entry in value.items()}
        case _:
            return value


@cache
def _guarded(struct: type[msgspec.Struct]) -> dict[str, frozenset[Category]]:
    """The struct's guarded fields. Raises ``TypeError`` for one that could not be left out."""
    found: dict[str, frozenset[Category]] = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        categories = frozenset(
            entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, Category)
        )
        if not categories:
            continue
        if msgspec.UnsetType not in get_args(get_args(hint)[0]):
            raise TypeError(f"{struct.__name__}.{name} is guarded by a category and must allow UnsetType")
        found[name] = categories
    return found


def _check(category: Category, audience: Audience, role_ids: list[UUID]) -> None:
    if audience is Audience.PUBLIC and not category.may_be_public:
        raise Invalid(
            "not_for_the_public",
            f"“{category.label}” is about single members and cannot be public.",
            advice="Choose staff, roles or the owner.",
            field="audience",
        )
    if (audience is Audience.ROLES) != bool(role_ids):
        raise Invalid(
            "roles_needed" if audience is Audience.ROLES else "roles_not_needed",
            "Choose at least one role."
            if audience is Audience.ROLES
            else "Roles go with the audience “roles”.",
            advice="Choose roles, or another audience.",
            field="role_ids",
        )


async def _read(tx: Reader, club_id: UUID, category: Category) -> VisibilityView:
    found = await tx.execute(_choices(club_id).where(Visibility.category == category.value))
    return _view(category, found.one_or_none())


def _choices(club_id: UUID) -> Select[*tuple[Any, ...]]:
    choices: Select[*tuple[Any, ...]] = select(
        Visibility.category, Visibility.audience, Visibility.role_ids, Visibility.updated_at
    ).where(Visibility.club_id == club_id)
    return choices


def _view(category: Category, row: Row[Any] | None) -> VisibilityView:
    if row is None:
        return VisibilityView(category, category.default, (), None)
    return VisibilityView(category, Audience(row.audience), tuple(row.role_ids), row.updated_at)
