"""How many people are in a group's open instances. Nothing that leaves here names a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from lastcall.vrchat.errors import ProviderScope, SchemaDrift
from lastcall.vrchat.fields import Id, Number, Text, is_same
from lastcall.vrchat.instances import group_of
from lastcall.vrchat.transport import Read, Transport

MOST_INSTANCES = 200
"""Open instances of one group that a sample may hold."""

PERSONAL_TAGS = frozenset({"private", "hidden", "friends", "nonce"})
"""Tags that name who opened an instance, or are its secret; legacy ids of people cannot be told by their
form."""


@dataclass(frozen=True)
class InstancePopulation:
    """An open instance. ``location`` is ``world:name~tag~tag`` without what named a person, its tags sorted,
    so that it is the same in every answer."""

    location: str
    world_id: str
    population: int


class _World(msgspec.Struct):
    id: Id
    name: Text


class GroupInstance(msgspec.Struct, rename="camel"):
    """A row of ``GET /groups/{id}/instances``. Whom ``member_count`` counts VRChat does not say."""

    instance_id: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    member_count: Number
    world: _World


async def read_population(transport: Transport, group_id: str) -> Read[tuple[InstancePopulation, ...]]:
    """The group's open instances that the account may see, with the people in them. One request.

    Raises ``ProviderScope`` for an instance that is not the group's, ``SchemaDrift`` for one that comes twice
    and for more than ``MOST_INSTANCES``, and the faults of any read. The group's size is
    ``GroupLook.member_count``.
    """
    read = await read_instances(transport, group_id)
    if len(read.value) > MOST_INSTANCES:
        raise SchemaDrift(f"The group has more than {MOST_INSTANCES} open instances.")
    seen = [
        InstancePopulation(nameless_location(row.world.id, row.instance_id), row.world.id, row.member_count)
        for row in read.value
    ]
    if len({one.location for one in seen}) != len(seen):
        raise SchemaDrift("VRChat lists an instance twice.")
    return Read(tuple(seen), read.asked_at)


async def read_instances(transport: Transport, group_id: str) -> Read[list[GroupInstance]]:
    """The rows as VRChat gives them, each held to be the group's. One request; VRChat has no pages here."""
    read = await transport.get(f"/groups/{group_id}/instances", list[GroupInstance])
    for row in read.value:
        mark = group_of(row.instance_id)
        if mark is None or not is_same(mark, group_id):
            raise ProviderScope("VRChat answered with another group's instance.")
    return read


def nameless_location(world_id: str, instance_id: str) -> str:
    """The location without tags that name a person or are secret. Raises ``SchemaDrift`` when a person's id
    is left."""
    name, *tags = instance_id.split("~")
    kept = sorted(
        tag for tag in tags if tag.partition("(")[0] not in PERSONAL_TAGS and "usr_" not in tag.casefold()
    )
    location = f"{world_id}:{'~'.join([name, *kept])}"
    if "usr_" in location.casefold():
        raise SchemaDrift("VRChat's name of an instance holds the id of a person.")
    return location
