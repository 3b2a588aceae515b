"""The writes that Lastcall makes at VRChat, one file a kind. A new kind is its file and a line here."""

from __future__ import annotations

from lastcall.vrchat.errors import UnsupportedOperation
from lastcall.vrchat.writes.approve_request import APPROVE_REQUEST
from lastcall.vrchat.writes.assign_role import ASSIGN_ROLE
from lastcall.vrchat.writes.ban_member import BAN_MEMBER
from lastcall.vrchat.writes.cancel_member_invite import CANCEL_MEMBER_INVITE
from lastcall.vrchat.writes.close_instance import CLOSE_INSTANCE
from lastcall.vrchat.writes.create_instance import CREATE_INSTANCE
from lastcall.vrchat.writes.delete_post import DELETE_POST
from lastcall.vrchat.writes.edit_post import EDIT_POST
from lastcall.vrchat.writes.invite_member import INVITE_MEMBER
from lastcall.vrchat.writes.invite_to_instance import INVITE_TO_INSTANCE
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Write
from lastcall.vrchat.writes.kind import PreflightRead, Seen, WriteKind
from lastcall.vrchat.writes.publish_post import PUBLISH_POST
from lastcall.vrchat.writes.reject_request import REJECT_REQUEST
from lastcall.vrchat.writes.remove_member import REMOVE_MEMBER
from lastcall.vrchat.writes.remove_role import REMOVE_ROLE
from lastcall.vrchat.writes.unban_member import UNBAN_MEMBER

__all__ = ["WRITES", "AnswerCode", "Judgement", "PreflightRead", "Seen", "Write", "WriteKind", "write_kind"]

WRITES = {
    kind.name: kind
    for kind in (
        APPROVE_REQUEST,
        REJECT_REQUEST,
        INVITE_MEMBER,
        CANCEL_MEMBER_INVITE,
        REMOVE_MEMBER,
        BAN_MEMBER,
        UNBAN_MEMBER,
        ASSIGN_ROLE,
        REMOVE_ROLE,
        PUBLISH_POST,
        EDIT_POST,
        DELETE_POST,
        CREATE_INSTANCE,
        CLOSE_INSTANCE,
        INVITE_TO_INSTANCE,
    )
}
"""Every kind by its name."""


def write_kind(name: str) -> WriteKind:
    """The kind of this name. Raises ``UnsupportedOperation`` for one that this release does not know."""
    try:
        return WRITES[name]
    except KeyError:
        raise UnsupportedOperation(
            f"This collector does not know operations of the kind {name}.",
            advice="Bring the collector to the server's release.",
        ) from None
