"""The writes that Lastcall makes at VRChat, one file a kind. A new kind is its file and a line here."""

from __future__ import annotations

from lastcall.vrchat.errors import UnsupportedOperation
from lastcall.vrchat.writes.assign_role import ASSIGN_ROLE
from lastcall.vrchat.writes.ban_member import BAN_MEMBER
from lastcall.vrchat.writes.invite_member import INVITE_MEMBER
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Write
from lastcall.vrchat.writes.kind import PreflightRead, Seen, WriteKind

__all__ = ["WRITES", "AnswerCode", "Judgement", "PreflightRead", "Seen", "Write", "WriteKind", "write_kind"]

WRITES = {kind.name: kind for kind in (ASSIGN_ROLE, INVITE_MEMBER, BAN_MEMBER)}
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
