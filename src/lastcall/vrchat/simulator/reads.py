"""Reads about a group: itself, its members, invitations, bans and audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lastcall.vrchat.simulator import shapes
from lastcall.vrchat.simulator.messages import FULL_STOP, Reply, Request, json_reply, refusal
from lastcall.vrchat.simulator.model import Group, User
from lastcall.vrchat.simulator.site import Site

LONGEST_PAGE = 100


def no_group() -> Reply:
    """404; the exclamation mark is not one."""
    return refusal(404, "Can't find group\u01c3")


def not_a_member() -> Reply:
    return refusal(403, f"You're not a member{FULL_STOP}")


def get_group(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    with_roles = request.parameter("includeRoles") == "true"
    return json_reply(shapes.group(group, actor.id, with_roles=with_roles))


def get_roles(site: Site, _request: Request, actor: User, group_id: str) -> Reply:
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if actor.id not in group.members:
        return not_a_member()
    return json_reply([shapes.role(group, role_id) for role_id in group.roles])


def get_member(site: Site, _request: Request, actor: User, group_id: str, user_id: str) -> Reply:
    """One member. Its 403 has two meanings, told apart by the message alone."""
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if actor.id not in group.members:
        return not_a_member()
    if not group.lets(actor.id, "group-members-viewall") and not group.lets(actor.id, "group-members-manage"):
        return refusal(403, f"You're not allowed to view membership details{FULL_STOP}")
    if user_id not in site.world.users or shapes.membership_status(group, user_id) == "inactive":
        return refusal(404, f"Can't find that member{FULL_STOP}")
    return json_reply(shapes.member(site.world, group, user_id))


def get_members(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    return _page(site, request, actor, group_id, "group-members-viewall", lambda group: group.members)


def get_invitations(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    return _page(site, request, actor, group_id, "group-invites-manage", lambda group: group.invitations)


def get_requests(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    return _page(site, request, actor, group_id, "group-invites-manage", lambda group: group.requests)


def get_bans(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    return _page(site, request, actor, group_id, "group-bans-manage", lambda group: group.bans)


def _page(
    site: Site,
    request: Request,
    actor: User,
    group_id: str,
    grant: str,
    people: Callable[[Group], Iterable[str]],
) -> Reply:
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if actor.id not in group.members:
        return not_a_member()
    if not group.lets(actor.id, grant):
        return refusal(403, f"You're not allowed to see this{FULL_STOP}")
    offset = request.number("offset", 0, 1_000_000)
    size = request.number("n", 60, LONGEST_PAGE)
    page = list(people(group))[offset : offset + size]
    return json_reply([shapes.member(site.world, group, user_id) for user_id in page])


def get_audit_log(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """Newest first."""
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if not group.lets(actor.id, "group-audit-view"):
        return refusal(403, f"You're not allowed to see this{FULL_STOP}")
    offset = request.number("offset", 0, 1_000_000)
    size = request.number("n", 60, LONGEST_PAGE)
    entries = group.audit[::-1]
    page = entries[offset : offset + size]
    return json_reply(
        {
            "results": [shapes.audit_entry(site.world, group, entry) for entry in page],
            "totalCount": len(entries),
            "hasNext": offset + size < len(entries),
        }
    )
