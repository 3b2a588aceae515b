"""Evidence of the account's own membership, as it is stored and as pages read it."""

from __future__ import annotations

from typing import Any

import msgspec

from lastcall.db.jsonb import jsonb_text
from lastcall.protocol.messages import OwnMemberEvidence, RoleSeen


def evidence_body(evidence: OwnMemberEvidence) -> str:
    """The JSON that is kept: the wire's own form, without the age."""
    fields: dict[str, Any] = msgspec.to_builtins(evidence)
    del fields["ageMs"]
    return jsonb_text(fields)


class GrantsSeen(msgspec.Struct, frozen=True, rename="camel"):
    """What pages need of a stored body."""

    member_status: str
    permissions: tuple[str, ...]
    roles: tuple[RoleSeen, ...]
    """The group's roles, with the names that VRChat gave them."""

    def holds(self, grant: str) -> bool:
        """Whether the group lets the account do this; ``*`` stands for everything."""
        return self.member_status == "member" and bool({"*", grant} & set(self.permissions))


def grants_of(body: dict[str, Any]) -> GrantsSeen:
    """The grants in a stored body."""
    return msgspec.convert(body, GrantsSeen)
