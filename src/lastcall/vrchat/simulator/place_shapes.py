"""How VRChat writes down worlds, instances and sent invites. The official SDK reads these shapes unchanged."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lastcall.vrchat.simulator.model import Instance, Place, World, made_id
from lastcall.vrchat.simulator.shapes import moment

_IMAGE = "https://assets.vrchat.com/default/image.png"


def place(world: World, one: Place) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "description": "",
        "authorId": one.author_id,
        "authorName": world.users[one.author_id].display_name if one.author_id in world.users else "",
        "capacity": one.capacity,
        "recommendedCapacity": one.capacity,
        "created_at": moment(one.created_at),
        "updated_at": moment(one.created_at),
        "featured": False,
        "heat": 0,
        "imageUrl": _IMAGE,
        "thumbnailImageUrl": _IMAGE,
        "labsPublicationDate": "none",
        "publicationDate": moment(one.created_at),
        "organization": "vrchat",
        "popularity": 0,
        "releaseStatus": "public",
        "tags": [],
        "version": 1,
        "visits": 0,
    }


def instance(world: World, one: Instance) -> dict[str, Any]:
    at = world.places[one.world_id]
    return {
        "id": one.location,
        "location": one.location,
        "instanceId": one.id,
        "name": one.id.partition("~")[0],
        "worldId": one.world_id,
        "world": place(world, at),
        "type": "group",
        "ownerId": one.group_id,
        "groupAccessType": one.access,
        "region": one.region,
        "photonRegion": "us" if one.region == "use" else one.region,
        "ageGate": one.is_age_gated,
        "roleRestricted": bool(one.role_ids),
        "queueEnabled": one.has_queue,
        "queueSize": 0,
        "calendarEntryId": one.calendar_entry_id,
        "active": one.is_active,
        "closedAt": None if one.closed_at is None else moment(one.closed_at),
        "hardClose": None,
        "capacity": at.capacity,
        "recommendedCapacity": at.capacity,
        "full": len(one.people) >= at.capacity,
        "hasCapacityForYou": True,
        "n_users": len(one.people),
        "userCount": len(one.people),
        "users": [],
        "platforms": {"android": 0, "ios": 0, "standalonewindows": 0},
        "permanent": False,
        "strict": False,
        "canRequestInvite": False,
        "secureName": made_id("secure", one.location)[-12:],
        "shortName": None,
        "clientNumber": "unknown",
        "tags": [],
        "displayName": None,
    }


def group_instance(world: World, one: Instance) -> dict[str, Any]:
    """A row of the group's list."""
    return {
        "instanceId": one.id,
        "location": one.location,
        "memberCount": len(one.people),
        "world": place(world, world.places[one.world_id]),
    }


def sent_invite(
    world: World,
    one: Instance,
    sender_id: str,
    receiver_id: str,
    number: int,
    slot: int | None,
    at: datetime,
) -> dict[str, Any]:
    details: dict[str, Any] = {"worldId": one.location, "worldName": world.places[one.world_id].name}
    if slot is not None:
        details["inviteMessage"] = f"Message {slot}"
    return {
        "id": made_id("not", "invite", number),
        "type": "invite",
        "senderUserId": sender_id,
        "receiverUserId": receiver_id,
        "message": "This is a generated invite to an instance",
        "details": details,
        "created_at": moment(at),
    }
