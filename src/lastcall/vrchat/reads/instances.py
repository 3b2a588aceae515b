"""``instances``: the group's open instances, to manage them. How many people are in them is not said here."""

from __future__ import annotations

from lastcall.vrchat.aggregates import read_instances
from lastcall.vrchat.errors import SchemaDrift
from lastcall.vrchat.reads.kind import Asking, Item, Page, PageParams, ReadKind, one_request, slice_of

MOST = 1000
"""Rows that VRChat's answer may have; it gives them all at once."""


class InstanceItem(Item, frozen=True):
    world_id: str
    world_name: str
    instance_id: str


async def _ask(asking: Asking, params: PageParams) -> Page:
    asking.charge()
    read = await read_instances(asking.transport, asking.own.group_id)
    if len(read.value) > MOST:
        raise SchemaDrift(f"The group has more than {MOST} open instances.")
    items = [InstanceItem(row.world.id, row.world.name, row.instance_id) for row in read.value]
    return slice_of(items, params, read.asked_at)


INSTANCES = ReadKind(
    name="instances",
    feature="instances",
    params=PageParams,
    item=InstanceItem,
    requests=one_request,
    ask=_ask,
)
