"""Reads about a group: itself, its members, invitations, bans, instances and audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from lastcall.vrchat.simulator import place_shapes, shapes
from lastcall.vrchat.simulator.messages import FULL_STOP, Reply, Request, json_reply, refusal
from lastcall.vrchat.simulator.model import Group, User
from lastcall.vrchat.simulator.site import Site

LONGEST_PAGE = 100
SHORTEST_QUERY = 3

T = TypeVar("T")


def no_group() -> Reply:
    """404; the exclamation mark is not one."""
    return refusal(404, "Can't find group\u01c3")


def not_a_member() -> Reply:
    return refusal(403, f"You're not a member{FULL_STOP}")


def get_group(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    group = site.world.groups.get(group_id)
    if group is None or shapes.hides(group, actor.id):
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
    """Everybody but the account that asks."""
    return _page(
        site, request, actor, group_id, "group-members-viewall",
        lambda group: (user_id for user_id in group.members if user_id != actor.id),
    )  # fmt: skip


def search_members(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """Members by a part of their display name, without the account that asks."""
    group = _seen(site, actor, group_id, "group-members-viewall")
    if isinstance(group, Reply):
        return group
    query = (request.parameter("query") or "").casefold()
    if len(query) < SHORTEST_QUERY:
        return refusal(400, f"The query must have at least {SHORTEST_QUERY} characters")
    found = [
        user_id
        for user_id in group.members
        if user_id != actor.id and query in site.world.users[user_id].display_name.casefold()
    ]
    page = [shapes.member(site.world, group, user_id) for user_id in _window(request, found)]
    return json_reply({"results": page, "total": len(found)})


def get_instances(site: Site, _request: Request, actor: User, group_id: str) -> Reply:
    """The group's open instances, and those that are closed and not empty yet."""
    group = _seen(site, actor, group_id)
    if isinstance(group, Reply):
        return group
    now = site.now()
    listed = [
        instance
        for instance in site.world.instances.values()
        if instance.group_id == group.id
        and instance.is_active
        and (instance.people or not instance.is_closed_at(now))
    ]
    return json_reply([place_shapes.group_instance(site.world, instance) for instance in listed])


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
    group = _seen(site, actor, group_id, grant)
    if isinstance(group, Reply):
        return group
    page = _window(request, list(people(group)))
    return json_reply([shapes.member(site.world, group, user_id) for user_id in page])


def _seen(site: Site, actor: User, group_id: str, *grants: str) -> Group | Reply:
    """The group, if the actor is in it and may see this; else the refusal."""
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if actor.id not in group.members:
        return not_a_member()
    if not group.lets(actor.id, *grants):
        return refusal(403, f"You're not allowed to see this{FULL_STOP}")
    return group


def _window(request: Request, rows: Sequence[T]) -> Sequence[T]:
    offset = request.number("offset", 0, 1_000_000)
    return rows[offset : offset + request.number("n", 60, LONGEST_PAGE)]


def get_audit_log(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """Newest first. Both ends of the range are in it; lists of ids and events are separated by commas."""
    group = _seen(site, actor, group_id, "group-audit-view")
    if isinstance(group, Reply):
        return group
    try:
        starts_at, ends_at = (_moment(request.parameter(name)) for name in ("startDate", "endDate"))
    except ValueError:
        return refusal(400, "Invalid date range")
    wanted = {name: request.parameter(name) for name in ("actorIds", "eventTypes", "targetIds")}
    entries = [
        entry
        for entry in sorted(group.audit, key=lambda entry: entry.at, reverse=True)
        if (starts_at is None or starts_at <= entry.at)
        and (ends_at is None or entry.at <= ends_at)
        and _is_among(wanted["actorIds"], entry.actor_id)
        and _is_among(wanted["eventTypes"], entry.event)
        and _is_among(wanted["targetIds"], entry.target_id)
    ]
    page = _window(request, entries)
    return json_reply(
        {
            "results": [shapes.audit_entry(site.world, group, entry) for entry in page],
            "totalCount": len(entries),
            "hasNext": request.number("offset", 0, 1_000_000) + len(page) < len(entries),
        }
    )


def _moment(text: str | None) -> datetime | None:
    """A date, or a moment in UTC unless it says otherwise. Raises ``ValueError`` for neither."""
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _is_among(wanted: str | None, value: str) -> bool:
    return wanted is None or value in wanted.split(",")
