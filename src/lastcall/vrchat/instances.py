"""Instances as VRChat names and describes them, and the two reads that stand before an invite to one.

An instance id is a name and tags, ``12345~group(grp_…)~groupAccessType(members)~region(eu)``, in an order that
varies. So it is taken apart before two are compared, and a group's own carries exactly one ``~group(…)``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, cast
from urllib.parse import quote

import msgspec

from lastcall.vrchat.errors import DestinationClosed, DestinationScope, NotVisible
from lastcall.vrchat.fields import Moment
from lastcall.vrchat.transport import Read, Transport

_GROUP_TAG = "group("
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=600)]


def parts_of(instance_id: str) -> tuple[str, tuple[str, ...]]:
    """The name and the tags, sorted and without regard to case: equal for two spellings of one instance."""
    name, *tags = instance_id.casefold().split("~")
    return name, tuple(sorted(tags))


def group_of(instance_id: str) -> str | None:
    """The group of its one ``~group(…)`` tag; ``None`` for none, for several, and for one that is not closed."""
    tags = [tag for tag in instance_id.split("~")[1:] if tag.startswith(_GROUP_TAG)]
    if len(tags) != 1 or not tags[0].endswith(")"):
        return None
    return tags[0].removeprefix(_GROUP_TAG).removesuffix(")") or None


def location_path(world_id: str, instance_id: str) -> str:
    """``/instances/{world}:{instance}``."""
    return f"/instances/{quote(world_id, safe='')}:{quote(instance_id, safe='~()')}"


class Instance(msgspec.Struct, rename="camel"):
    """VRChat's record of an instance, as far as it matters here."""

    world_id: _Text
    instance_id: _Text
    type: _Text
    active: bool
    owner_id: str | None = None
    closed_at: Moment | None = None

    def is_at(self, world_id: str, instance_id: str) -> bool:
        """Whether it is this one, in whatever order its tags come."""
        return self.world_id.casefold() == world_id.casefold() and parts_of(self.instance_id) == parts_of(
            instance_id
        )

    def belongs_to(self, group_id: str) -> bool:
        """Whether it is an instance of this group, by its record and by its id."""
        mark = group_of(self.instance_id)
        return (
            self.type == "group"
            and mark is not None
            and mark.casefold() == group_id.casefold()
            and self.owner_id is not None
            and self.owner_id.casefold() == group_id.casefold()
        )

    def is_open(self, now: datetime) -> bool:
        """Whether people may join: active, and not closed by now."""
        return self.active and (self.closed_at is None or self.closed_at > now)


_INSTANCE_OR_NULL = cast("type[Instance | None]", Instance | None)


async def read_open_instance(
    transport: Transport, world_id: str, instance_id: str, group_id: str
) -> Read[Instance]:
    """The instance, if it is this group's and open.

    Raises ``DestinationScope`` for an id or an answer of another group, ``NotVisible`` for one that VRChat
    does not know (it answers ``null``), ``DestinationClosed``, and the faults of any read.
    """
    need_group(instance_id, group_id)
    read = await transport.get(location_path(world_id, instance_id), _INSTANCE_OR_NULL)
    instance = read.value
    if instance is None:
        raise NotVisible("VRChat does not know this instance.")
    if not instance.is_at(world_id, instance_id) or not instance.belongs_to(group_id):
        raise DestinationScope("VRChat answered about another instance, or one of another group.")
    if not instance.is_open(transport.clock.wall()):
        raise DestinationClosed("The instance is closed.")
    return Read(instance, read.asked_at)


def need_group(instance_id: str, group_id: str) -> None:
    """Raise ``DestinationScope`` unless the id carries this group's mark, and no other."""
    mark = group_of(instance_id)
    if mark is None or mark.casefold() != group_id.casefold():
        raise DestinationScope("The instance does not belong to the group.")


class _FriendStatus(msgspec.Struct, rename="camel"):
    is_friend: bool
    incoming_request: bool
    outgoing_request: bool


async def read_friendship(transport: Transport, user_id: str) -> Read[bool]:
    """Whether that person is a friend of the account. The answer names nobody: it is about whom was asked for."""
    read = await transport.get(f"/user/{user_id}/friendStatus", _FriendStatus)
    return Read(read.value.is_friend, read.asked_at)
