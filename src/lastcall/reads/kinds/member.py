"""What one person is to the group, also when that is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import UserId
from lastcall.protocol.messages import CodeText, ProviderId
from lastcall.protocol.messages import Text as Name
from lastcall.reads.kinds.fields import Item, Params, RoleIds
from lastcall.reads.kinds.kind import ReadKind, Telling, one


class MemberParams(Params, frozen=True):
    target_user_id: UserId


class StandingItem(Item, frozen=True):
    """``status`` is VRChat's word: ``member``, ``requested``, ``invited``, ``banned``, or ``inactive`` for none."""

    user_id: ProviderId
    display_name: Name
    status: CodeText
    role_ids: RoleIds
    joined_at: datetime | None


def _body(params: MemberParams, items: Sequence[StandingItem]) -> dict[str, Any]:
    status, role_ids = (items[0].status, items[0].role_ids) if items else ("inactive", ())
    return {
        "userId": params.target_user_id.lower(),
        "status": status,
        "roleIds": [role_id.lower() for role_id in role_ids],
    }


KIND = ReadKind(
    name="member",
    label="One member",
    params=MemberParams,
    item=StandingItem,
    permission=Permission.VIEW_MEMBERS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-members-viewall", "group-members-manage"),
    most=one,
    telling=Telling(subject=lambda params: params.target_user_id.lower(), body=_body),
)
