"""The guide for a new club: what there is to do before the first evening, and what of it is done. For its owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from lastcall.clubs.permissions import PRESETS
from lastcall.clubs.queries import ClubSettings, RoleView, Roster, club_settings, roles_of, roster
from lastcall.clubs.visibility import VisibilityView, visibility_of
from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.operations.queries import history, upcoming
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.pages import PageRequest
from lastcall.web.room import Web

FIRST_MOMENT = timedelta(seconds=1)
"""Both moments of a new club are of its making, each by its own look at the clock."""


@dataclass(frozen=True)
class Step:
    title: str
    sentence: str
    is_done: bool
    button: str | None
    path: str
    """Behind the club's address."""


@get("/c/{slug:str}/start", opt=access(Access.STAFF))
async def guide(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        club_id = page.club.id
        settings = await club_settings(tx, visitor.actor, club_id)
        staff = await roster(tx, visitor.actor, club_id)
        roles = await roles_of(tx, club_id)
        visibility = await visibility_of(tx, visitor.actor, club_id)
        card = await connection_card(tx, club_id)
        reader = (page.standing, visitor.actor, club_id)
        has_acted = bool(await upcoming(tx, *reader, limit=1) or await history(tx, *reader, limit=1))
    steps = _steps(settings, staff, roles, visibility, card, has_acted=has_acted)
    done = sum(step.is_done for step in steps)
    return web.pages.show(request, "start.html", page.place("start"), page.now, steps=steps, done=done)


def _steps(
    settings: ClubSettings,
    staff: Roster,
    roles: Sequence[RoleView],
    visibility: Sequence[VisibilityView],
    card: ConnectionCard | None,
    *,
    has_acted: bool,
) -> list[Step]:
    archived = f"after {settings.retention_days} days" if settings.retention_days else "never"
    return [
        Step(
            "Look over the settings",
            f"{settings.name} lives in {settings.zone}; what nobody decides is archived {archived}.",
            settings.updated_at - settings.created_at > FIRST_MOMENT,
            "Settings",
            "settings",
        ),
        Step(
            "Say what each role allows",
            "Three roles are there to begin with. Change them until they fit how you work.",
            not _are_as_given(roles),
            "Roles",
            "roles",
        ),
        Step(
            "Invite your staff",
            "Everybody gets exactly what their roles allow, and loses it the moment you take a role away.",
            bool(staff.members),
            "Staff",
            "staff",
        ),
        Step(
            "Connect the VRChat group",
            f"Connected to {card.group_name}."
            if card
            else "Read what it means, name the group, and say what Lastcall may do there.",
            card is not None,
            "Connection",
            "connection",
        ),
        Step(
            "Choose who may see what is measured",
            "Staff see it, others do not, until you choose otherwise.",
            any(view.updated_at for view in visibility),
            "Data visibility",
            "visibility",
        ),
        Step(
            "Queue a first action",
            "You review it before anything is sent, and watch it until it is done.",
            has_acted,
            "New action",
            "new",
        ),
    ]


def _are_as_given(roles: Sequence[RoleView]) -> bool:
    """Whether the roles say what they say in every new club."""
    return {(role.preset_key, role.name, role.description, role.permissions) for role in roles} == {
        (preset.key, preset.name, preset.description, preset.permissions) for preset in PRESETS
    } and not any(role.provider_role_ids or role.assignable_role_ids for role in roles)


HANDLERS = (guide,)
