"""Worlds, instances, friends and invites to instances, with the refusals and the quirks of VRChat."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import unquote

from lastcall.vrchat.simulator import place_shapes
from lastcall.vrchat.simulator.messages import FULL_STOP, Reply, Request, json_reply, refusal
from lastcall.vrchat.simulator.model import Group, Instance, User
from lastcall.vrchat.simulator.reads import no_group, not_a_member
from lastcall.vrchat.simulator.site import Site

_CREATE_GRANTS = {
    "members": "group-instance-open-create",
    "plus": "group-instance-plus-create",
    "public": "group-instance-public-create",
}
_REGIONS = ("us", "use", "eu", "jp")


def get_place(site: Site, _request: Request, _actor: User, world_id: str) -> Reply:
    """``GET /worlds/{world}``."""
    place = site.world.places.get(world_id)
    if place is None:
        return refusal(404, f"Can't find the world{FULL_STOP}")
    return json_reply(place_shapes.place(site.world, place))


def get_instance(site: Site, _request: Request, _actor: User, location: str) -> Reply:
    """``GET /instances/{world}:{instance}``. One that VRChat does not know is ``null``, with status 200."""
    instance = site.world.instances.get(unquote(location))
    return json_reply(None if instance is None else place_shapes.instance(site.world, instance))


def create_instance(site: Site, request: Request, actor: User) -> Reply:
    """``POST /instances``, for group instances only."""
    asked = request.json()
    group_id, access = asked.get("ownerId"), asked.get("groupAccessType")
    group = site.world.groups.get(group_id) if isinstance(group_id, str) else None
    if asked.get("type") != "group" or access not in _CREATE_GRANTS or asked.get("region") not in _REGIONS:
        return refusal(400, "The simulator opens group instances only, with an access and a region")
    if group is None:
        return no_group()
    if asked.get("worldId") not in site.world.places:
        return refusal(404, f"Can't find the world{FULL_STOP}")
    denied = _creation_refusal(group, actor, asked)
    if denied is not None:
        return denied
    instance = _opened(site, group, asked)
    site.world.instances[instance.location] = instance
    _record(site, request, actor, group, "group.instance.create", instance)
    return json_reply(place_shapes.instance(site.world, instance))


def _creation_refusal(group: Group, actor: User, asked: dict[str, Any]) -> Reply | None:
    if actor.id not in group.members:
        return not_a_member()
    needed = [_CREATE_GRANTS[asked["groupAccessType"]]]
    if asked.get("ageGate"):
        needed.append("group-instance-age-gated-create")
    if asked.get("roleIds"):
        needed.append("group-instance-restricted-create")
    if asked.get("calendarEntryId"):
        needed.append("group-instance-calendar-link")
    if not group.lets(actor.id, *needed):
        return refusal(403, f"You're not allowed to create that kind of instance{FULL_STOP}")
    if asked["groupAccessType"] == "public" and group.privacy != "default":
        return refusal(403, f"This group can't have public instances{FULL_STOP}")
    role_ids = asked.get("roleIds") or []
    if role_ids and (asked["groupAccessType"] != "members" or not set(role_ids) <= set(group.roles)):
        return refusal(400, f"Those roles can't be used here{FULL_STOP}")
    return None


def _opened(site: Site, group: Group, asked: dict[str, Any]) -> Instance:
    number = len(site.world.instances)
    tags = [
        f"group({group.id})",
        f"groupAccessType({asked['groupAccessType']})",
        f"region({asked['region']})",
    ]
    if asked.get("ageGate"):
        tags.append("ageGate")
    # VRChat puts them in varying order.
    turn = number % len(tags)
    tags = tags[turn:] + tags[:turn]
    return Instance(
        world_id=asked["worldId"],
        id="~".join([f"{10_000 + number:05d}", *tags]),
        group_id=group.id,
        access=asked["groupAccessType"],
        region=asked["region"],
        role_ids=tuple(asked.get("roleIds") or ()),
        is_age_gated=bool(asked.get("ageGate")),
        has_queue=bool(asked.get("queueEnabled")),
        calendar_entry_id=asked.get("calendarEntryId"),
    )


def close_instance(site: Site, request: Request, actor: User, location: str) -> Reply:
    """``DELETE /instances/{world}:{instance}``: nobody may join any more. Its 403 has two meanings, told apart by the
    message alone."""
    instance = site.world.instances.get(unquote(location))
    if instance is None:
        return refusal(404, f"Can't find that instance{FULL_STOP}")
    group = site.world.groups[instance.group_id]
    if not group.lets(actor.id, "group-instance-manage"):
        return refusal(403, f"You're not allowed to close this instance{FULL_STOP}")
    if instance.is_closed_at(site.now()):
        return refusal(403, f"You're not allowed to close an already closed instance{FULL_STOP}")
    instance.closed_at = _closing_time(site, request)
    _record(site, request, actor, group, "group.instance.close", instance)
    return json_reply(place_shapes.instance(site.world, instance))


def _closing_time(site: Site, request: Request) -> datetime:
    text = request.parameter("closedAt")
    return datetime.fromisoformat(text) if text else site.now()


def get_friend_status(site: Site, _request: Request, actor: User, user_id: str) -> Reply:
    """``GET /user/{user}/friendStatus``."""
    if user_id not in site.world.users:
        return refusal(404, f"Can't find that user{FULL_STOP}")
    is_friend = site.world.are_friends(actor.id, user_id)
    return json_reply({"isFriend": is_friend, "outgoingRequest": False, "incomingRequest": False})


def invite_to_instance(site: Site, request: Request, actor: User, user_id: str) -> Reply:
    """``POST /invite/{user}``: only friends, and only to an instance that VRChat knows."""
    asked = request.json()
    location = asked.get("instanceId")
    instance = site.world.instances.get(location) if isinstance(location, str) else None
    if user_id not in site.world.users:
        return refusal(404, f"Can't find that user{FULL_STOP}")
    if not site.world.are_friends(actor.id, user_id):
        return refusal(403, '"You need to be friends with that user first."')
    if instance is None:
        return refusal(404, f"Can't find that instance{FULL_STOP}")
    group = site.world.groups[instance.group_id]
    _record(site, request, actor, group, "instance.invite", instance, target=user_id)
    number = len(site.ledger.entries)
    return json_reply(
        place_shapes.sent_invite(
            site.world, instance, actor.id, user_id, number, asked.get("messageSlot"), site.now()
        )
    )


def _record(
    site: Site,
    request: Request,
    actor: User,
    group: Group,
    event: str,
    instance: Instance,
    target: str | None = None,
) -> None:
    site.ledger.record(
        site.now(),
        request.method,
        request.path,
        action=event,
        actor=actor.id,
        group=group.id,
        target=target or instance.location,
        changed=True,
        request_id=request.headers.get("x-request-id"),
    )
    if target is None:
        group.note(site.now(), event, actor.id, instance.location, f"{actor.display_name}: {event}")
