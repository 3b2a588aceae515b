"""What VRChat said, as it is stored and as pages and services read it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from lastcall.db.jsonb import jsonb_text
from lastcall.db.transaction import Reader
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


_BANNED = """
    select distinct b.user_id
      from evidence e
     cross join lateral (
           select lower(value) as user_id from jsonb_array_elements_text(e.body -> 'bannedUserIds')) as b
     where e.club_id = $1 and e.connection_id = $2 and e.kind = 'bans' and e.epoch = $3
       and e.observed_at between $4::timestamptz - evidence_life() and $4
       and b.user_id = any ($5::text[])
"""


async def banned_now(
    tx: Reader, club_id: UUID, connection_id: UUID, epoch: datetime, now: datetime, user_ids: Sequence[str]
) -> set[str]:
    """Those of ``user_ids`` (small letters) that a read of the group's bans named in the last 60 seconds. Who is not
    in here may be banned all the same: nothing is read for this.
    """
    rows = await tx.raw.fetch(_BANNED, club_id, connection_id, epoch, now, user_ids)
    return {row["user_id"] for row in rows}


_PROTECTED = """
    select a.vrchat_user_id, e.body ->> 'ownerId' as owner_id
      from connections c
      join accounts a on a.id = c.account_id
      left join lateral own_member_evidence(c.club_id, c.id, c.epoch) as e on true
     where c.club_id = $1 and c.id = $2
"""


async def protected_people(tx: Reader, club_id: UUID, connection_id: UUID) -> dict[str, str]:
    """Who is no target of what is done to members, by user id in small letters, with what they are: the account that
    acts, and the group's owner as far as the group was read."""
    row = await tx.raw.fetchrow(_PROTECTED, club_id, connection_id)
    if row is None:
        return {}
    owner = {} if row["owner_id"] is None else {row["owner_id"].lower(): "owner of the group"}
    return {**owner, row["vrchat_user_id"].lower(): "the club's account"}
