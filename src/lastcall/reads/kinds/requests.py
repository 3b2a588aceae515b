"""Who asked to join the group and waits for an answer."""

from __future__ import annotations

from datetime import datetime

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.protocol.messages import ProviderId
from lastcall.protocol.messages import Text as Name
from lastcall.reads.kinds.fields import Item, PageParams
from lastcall.reads.kinds.kind import ReadKind, Telling, most_of_page, page_subject


class RequestItem(Item, frozen=True):
    user_id: ProviderId
    display_name: Name
    asked_at: datetime | None


KIND = ReadKind(
    name="requests",
    label="Requests to join",
    params=PageParams,
    item=RequestItem,
    permission=Permission.APPROVE_JOIN_REQUESTS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-invites-manage",),
    most=most_of_page,
    telling=Telling(
        subject=page_subject,
        body=lambda _, items: {"requestedUserIds": [item.user_id.lower() for item in items]},
    ),
)
