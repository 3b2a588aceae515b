"""A group, a payload of each kind that writes to the group itself, and answers that prove its write."""

from __future__ import annotations

from typing import Any

import msgspec

from lastcall.protocol.outcomes import Outcome
from lastcall.vrchat.evidence import OwnMember, Role
from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes import Seen, Write, write_kind

U = "00000000-0000-4000-8000-00000000000"
GROUP, OWNER, BOT, TARGET = f"grp_{U}1", f"usr_{U}2", f"usr_{U}3", f"usr_{U}4"
ROLE = "grol_00000000-0000-4000-8000-00000000000a"
EVIDENCE = OwnMember(
    group_id=GROUP,
    owner_id=OWNER,
    user_id=BOT,
    member_status="member",
    permissions=frozenset({"*"}),
    role_ids=(),
    roles=(Role(ROLE, "Regular"),),
    privacy="default",
    join_state="request",
    asked_at=0.0,
)
PERSON = {"targetUserId": TARGET}
ROLE_CHANGE = PERSON | {"roleId": ROLE.upper().replace("GROL", "grol")}
POST_ID = f"not_{U}6"
IMAGE = f"file_{U}7"
POST = {
    "title": "Tonight!",
    "text": "Doors at nine.\n\tBring friends.",
    "visibility": "group",
    "sendNotification": True,
    "imageId": IMAGE,
    "roleIds": [ROLE.upper().replace("GROL", "grol")],
}
PAYLOADS: dict[str, dict[str, Any]] = {
    "approve_request": PERSON,
    "reject_request": PERSON,
    "invite_member": PERSON,
    "cancel_member_invite": PERSON,
    "remove_member": PERSON,
    "ban_member": PERSON,
    "unban_member": PERSON,
    "assign_role": ROLE_CHANGE,
    "remove_role": ROLE_CHANGE,
    "publish_post": POST,
    "edit_post": POST | {"postId": POST_ID},
    "delete_post": {"postId": POST_ID},
}
SUCCESS = b'{"success":{"message":"Done","status_code":200}}'
STANDING = msgspec.json.encode({"id": f"gmem_{U}5", "groupId": GROUP, "userId": TARGET})
POSTED = msgspec.json.encode({"id": POST_ID, "groupId": GROUP, "title": "Tonight\u01c3", "text": "Doors"})
GOOD_BODIES = {
    "approve_request": SUCCESS,
    "reject_request": SUCCESS,
    "invite_member": SUCCESS,
    "cancel_member_invite": SUCCESS,
    "remove_member": SUCCESS,
    "ban_member": STANDING,
    "unban_member": STANDING,
    "assign_role": msgspec.json.encode([ROLE]),
    "remove_role": b"[]",
    "publish_post": POSTED,
    "edit_post": POSTED,
    "delete_post": SUCCESS,
}
MAY_BE_EMPTY = ("approve_request", "reject_request", "invite_member")


def plan(kind: str, payload: object, own: OwnMember = EVIDENCE) -> Write:
    chosen = write_kind(kind)
    return chosen.plan(chosen.read(payload), Seen(own))


def planned(kind: str) -> Write:
    return plan(kind, PAYLOADS[kind])


def judged(kind: str, sent: SendResult) -> tuple[Outcome, str | None]:
    judgement = write_kind(kind).judge(planned(kind), sent)
    return judgement.outcome, judgement.code


def nested(status: int, message: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "status_code": status}})


def flat(status: int, message: str) -> bytes:
    return msgspec.json.encode({"message": message, "statusCode": status})
