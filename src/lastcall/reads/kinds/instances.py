"""The group's open instances. How many people are in them is not told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import INSTANCE_ID_MOST
from lastcall.operations.telling import location
from lastcall.protocol.messages import ProviderId
from lastcall.protocol.messages import Text as Name
from lastcall.reads.kinds.fields import Item, PageParams
from lastcall.reads.kinds.kind import ReadKind, Telling, most_of_page, page_subject


class InstanceItem(Item, frozen=True):
    world_id: ProviderId
    world_name: Name
    instance_id: Annotated[str, Meta(min_length=1, max_length=INSTANCE_ID_MOST)]


def _body(_: PageParams, items: Sequence[InstanceItem]) -> dict[str, Any]:
    return {"locations": [location(item.world_id, item.instance_id) for item in items]}


KIND = ReadKind(
    name="instances",
    label="Instances",
    params=PageParams,
    item=InstanceItem,
    permission=Permission.MANAGE_INSTANCES,
    feature=Feature.INSTANCES,
    most=most_of_page,
    telling=Telling(subject=page_subject, body=_body),
)
