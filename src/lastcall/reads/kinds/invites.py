"""Who is invited to the group and has not answered."""

from __future__ import annotations

from datetime import datetime

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.protocol.messages import ProviderId
from lastcall.protocol.messages import Text as Name
from lastcall.reads.kinds.fields import Item, PageParams
from lastcall.reads.kinds.kind import ReadKind, Telling, most_of_page, page_subject


class InviteItem(Item, frozen=True):
    user_id: ProviderId
    display_name: Name
    invited_at: datetime | None


KIND = ReadKind(
    name="invites",
    label="Invitations",
    params=PageParams,
    item=InviteItem,
    permission=Permission.INVITE_GROUP_MEMBERS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-invites-manage",),
    most=most_of_page,
    telling=Telling(
        subject=page_subject,
        body=lambda _, items: {"invitedUserIds": [item.user_id.lower() for item in items]},
    ),
)
