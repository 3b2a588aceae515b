"""``assign_role``: give a member of the group one of the group's roles."""

from __future__ import annotations

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.transport import Answer, SendResult
from lastcall.vrchat.writes import checks
from lastcall.vrchat.writes.judging import Judgement, Proof, Write, judge, read_role_ids
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import PersonPayload, RoleId

_KIND = "assign_role"


class AssignRole(PersonPayload, frozen=True):
    role_id: RoleId


def _plan(payload: AssignRole, seen: Seen) -> Write:
    """The write for this payload in this group, its role id as VRChat writes it."""
    role = checks.need_role(seen.own, payload.role_id)
    path = f"/groups/{seen.own.group_id}/members/{payload.target_user_id}/roles/{role.role_id}"
    return Write(_KIND, "PUT", path, seen.own, payload)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the list of the member's roles, which then holds the role."""
    return judge(write, sent, _check_body, ())


def _check_body(write: Write, answer: Answer) -> Proof | Code:
    role_ids = read_role_ids(answer)
    if role_ids is None:
        return Code.SCHEMA_DRIFT
    return Proof() if write.payload.role_id.casefold() in role_ids else Code.PROVIDER_SCOPE


ASSIGN_ROLE = WriteKind(
    name=_KIND,
    feature="membership_management",
    payload=AssignRole,
    grants=("group-roles-assign", "group-members-manage"),
    is_protective=True,
    plan_seen=_plan,
    judge=_judge,
)
