"""``assign_role``: give a member of the group one of the group's roles."""

from __future__ import annotations

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import SchemaDrift, Transient
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.transport import Answer, SendResult, decode
from lastcall.vrchat.writes import checks
from lastcall.vrchat.writes.judging import Judgement, Write, judge
from lastcall.vrchat.writes.kind import WriteKind
from lastcall.vrchat.writes.payload import Payload, RoleId, UserId

_KIND = "assign_role"
_COST = 2
"""Requests: the group read and the write; the identity read is the account's."""
_GRANTS = ("group-roles-assign", "group-members-manage")


class AssignRole(Payload, frozen=True):
    target_user_id: UserId
    role_id: RoleId


def _plan(payload: AssignRole, evidence: OwnMember) -> Write:
    """The write for this payload in this group, its role id as VRChat writes it."""
    checks.need_grants(evidence, _GRANTS)
    checks.need_unprotected(evidence, payload.target_user_id)
    role = checks.need_role(evidence, payload.role_id)
    path = f"/groups/{evidence.group_id}/members/{payload.target_user_id}/roles/{role.role_id}"
    return Write(_KIND, "PUT", path, evidence.group_id, payload.target_user_id, role.role_id)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the list of the member's roles, which then holds the role."""
    return judge(write, sent, _check_body, ())


def _check_body(write: Write, answer: Answer) -> Code | None:
    try:
        role_ids = decode(answer.body, list[str])
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    return None if write.role_id in role_ids else Code.PROVIDER_SCOPE


ASSIGN_ROLE = WriteKind(
    name=_KIND, payload=AssignRole, cost=_COST, grants=_GRANTS, plan_read=_plan, judge=_judge
)
