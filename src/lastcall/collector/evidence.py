"""What was read of the account's standing, as the server wants to hear it."""

from __future__ import annotations

import math

from lastcall.protocol.membership import GroupSeen
from lastcall.protocol.messages import OwnMemberEvidence, RoleSeen
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.groups import GroupLook


def age_ms(asked_at: float, now: float) -> int:
    """The age of a read at ``now``, rounded up: nothing is made younger on its way. Both are boot times."""
    return math.ceil((now - asked_at) * 1000)


def own_evidence(seen: OwnMember, now: float) -> OwnMemberEvidence:
    """The evidence behind a write or a read, with its age at ``now`` (boot time)."""
    return OwnMemberEvidence(
        age_ms=age_ms(seen.asked_at, now),
        group_id=seen.group_id,
        owner_id=seen.owner_id,
        user_id=seen.user_id,
        member_status="member",
        permissions=tuple(sorted(seen.permissions)),
        role_ids=seen.role_ids,
        roles=tuple(RoleSeen(id=role.role_id, name=role.name) for role in seen.roles),
        privacy=seen.privacy,
    )


def group_seen(look: GroupLook) -> GroupSeen:
    """The group, and what the account is to it."""
    return GroupSeen(
        group_id=look.group_id,
        name=look.name,
        privacy=look.privacy,
        join_state=look.join_state,
        membership=look.membership,
    )
