"""Who is banned from the group."""

from __future__ import annotations

from datetime import datetime

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.protocol.messages import ProviderId
from lastcall.protocol.messages import Text as Name
from lastcall.reads.kinds.fields import Item, PageParams
from lastcall.reads.kinds.kind import ReadKind, Telling, most_of_page, page_subject


class BanItem(Item, frozen=True):
    user_id: ProviderId
    display_name: Name
    banned_at: datetime | None


KIND = ReadKind(
    name="bans",
    label="Bans",
    params=PageParams,
    item=BanItem,
    permission=Permission.MANAGE_BANS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-bans-manage", "group-members-manage"),
    most=most_of_page,
    telling=Telling(
        subject=page_subject,
        body=lambda _, items: {"bannedUserIds": [item.user_id.lower() for item in items]},
    ),
)
