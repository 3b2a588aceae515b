"""Staff: who works for the club and with which roles."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clubs.queries import roster, staff_roles
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.errors import NotFound
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web


@get("/c/{slug:str}/staff", opt=access(Access.STAFF))
async def staff_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        staff = await roster(tx, visitor.actor, page.club.id)
        roles = await staff_roles(tx, visitor.actor, page.club.id)
    by_id = {role.id: role for role in roles}
    may_hand_on = [role for role in roles if page.standing.may_hand_on(role.id)]
    return web.pages.show(
        request,
        "staff.html",
        page.place("staff"),
        page.now,
        staff=staff,
        roles=by_id,
        may_hand_on=may_hand_on,
        can_change={role.id for role in may_hand_on},
        me=visitor.actor.person_id,
    )


@post("/c/{slug:str}/staff/{person_id:str}/roles", opt=access(Access.STAFF))
async def give(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    person_id: FromPath[str],
) -> Redirect:
    """Only somebody who is on the staff already gets a role here: others are invited."""
    wanted = known_id(person_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        staff = await roster(tx, visitor.actor, page.club.id)
    if all(member.person_id != wanted for member in staff.members):
        raise NotFound("person_unknown", "There is no such person on the staff.", advice="Invite them.")
    role_id = known_id((await form_fields(request)).get("role_id", ""))
    await assign_role(web.database, visitor.actor, page.club.id, role_id, wanted)
    return go_to(page.path("staff"))


@get("/c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}", opt=access(Access.STAFF))
async def ask_take(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    person_id: FromPath[str],
    role_id: FromPath[str],
) -> Response[str]:
    """The question before a role is taken from somebody."""
    wanted, held = known_id(person_id), known_id(role_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        staff = await roster(tx, visitor.actor, page.club.id)
        roles = await staff_roles(tx, visitor.actor, page.club.id)
    member = next((one for one in staff.members if one.person_id == wanted and held in one.role_ids), None)
    role = next((role for role in roles if role.id == held), None)
    if member is None or role is None:
        raise NotFound("assignment_unknown", "They do not hold this role.", advice="Load the list again.")
    return web.pages.show(
        request,
        "staff_take.html",
        page.place("staff"),
        page.now,
        member=member,
        role=role,
    )


@post("/c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}", opt=access(Access.STAFF))
async def take(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    person_id: FromPath[str],
    role_id: FromPath[str],
) -> Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await revoke_role(web.database, visitor.actor, page.club.id, known_id(role_id), known_id(person_id))
    return go_to(page.path("staff"))


HANDLERS = (staff_page, give, ask_take, take)
