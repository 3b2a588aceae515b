"""Which reads tell what became of an operation, what they say of it, and how to have one made.

What the account may do in the group is evidence too, but not of what became of a write; and that somebody was invited
to an instance leaves nothing that could be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.operations.kinds.fields import spelled_alike

Fields = Mapping[str, Any]

PAGE = {"n": 100, "offset": 0}
"""The first page of a list: what just happened is on it, or the list is too long to tell at once."""


@dataclass(frozen=True)
class Look:
    """How one kind of stored evidence speaks of an operation.

    ``evidence`` is its name, and that of the read that makes it; ``params`` asks for that read. ``shows`` says whether
    the target is there by it; None when it is about somebody else. ``yes`` and ``no`` put that into words.
    """

    evidence: str
    label: str
    permission: Permission
    params: Callable[[Fields], dict[str, Any]]
    shows: Callable[[Fields, Fields], bool | None]
    yes: str
    no: str

    def words(self, is_shown: bool) -> str:
        """What it says of the target."""
        return self.yes if is_shown else self.no


def content_digest(title: str, text: str) -> str:
    """What tells whether two posts say the same."""
    return hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()


def location(world_id: str, instance_id: str) -> str:
    """The same for all spellings of one instance."""
    return f"{world_id.lower()}:{spelled_alike(instance_id)}"


def _page(_: Fields) -> dict[str, Any]:
    return dict(PAGE)


def _person(payload: Fields) -> dict[str, Any]:
    return {"targetUserId": payload["targetUserId"]}


def _target(payload: Fields) -> str:
    return str(payload["targetUserId"]).lower()


def _named_in(field: str) -> Callable[[Fields, Fields], bool | None]:
    def shows(payload: Fields, body: Fields) -> bool:
        return _target(payload) in {str(user_id).lower() for user_id in body[field]}

    return shows


def _standing(*statuses: str) -> Callable[[Fields, Fields], bool | None]:
    def shows(payload: Fields, body: Fields) -> bool | None:
        return body["status"] in statuses if body["userId"] == _target(payload) else None

    return shows


def _has_role(payload: Fields, body: Fields) -> bool | None:
    if body["userId"] != _target(payload):
        return None
    return str(payload["roleId"]).lower() in body["roleIds"]


def _says(payload: Fields, body: Fields) -> bool:
    """A new post is known by what it says, one that was edited by its id as well."""
    said = content_digest(payload["title"], payload["text"])
    if "postId" in payload:
        return bool(body["posts"].get(str(payload["postId"]).lower()) == said)
    return said in body["posts"].values()


def _is_there(payload: Fields, body: Fields) -> bool:
    return str(payload["postId"]).lower() in body["posts"]


def _is_open(payload: Fields, body: Fields) -> bool:
    return location(payload["worldId"], payload["instanceId"]) in body["locations"]


def _has_world(payload: Fields, body: Fields) -> bool:
    return any(one.partition(":")[0] == str(payload["worldId"]).lower() for one in body["locations"])


def _list(name: str, label: str, permission: Permission, field: str, yes: str, no: str) -> Look:
    return Look(name, label, permission, _page, _named_in(field), yes, no)


def _member(shows: Callable[[Fields, Fields], bool | None], yes: str, no: str) -> Look:
    return Look("member", "The person in the group", Permission.VIEW_MEMBERS, _person, shows, yes, no)


_BANS = _list(
    "bans",
    "The group's bans",
    Permission.MANAGE_BANS,
    "bannedUserIds",
    "the person is named",
    "the person is not named",
)
_REQUESTS = _list(
    "requests",
    "Requests to join the group",
    Permission.APPROVE_JOIN_REQUESTS,
    "requestedUserIds",
    "the person's request still waits",
    "no request of the person's",
)
_INVITES = _list(
    "invites",
    "Invitations to the group",
    Permission.INVITE_GROUP_MEMBERS,
    "invitedUserIds",
    "the person's invitation is open",
    "no invitation of the person's",
)
_BANNED = _member(_standing("banned"), "banned", "not banned")
_MEMBER = _member(_standing("member"), "a member", "not a member")
_INVITED = _member(
    _standing("invited", "member"), "invited, or a member already", "neither invited nor a member"
)
_ROLE = _member(_has_role, "has the role", "does not have the role")


def _posts(shows: Callable[[Fields, Fields], bool | None], yes: str, no: str) -> Look:
    return Look("posts", "The group's posts", Permission.PUBLISH_POSTS, _page, shows, yes, no)


def _instances(shows: Callable[[Fields, Fields], bool | None], yes: str, no: str) -> Look:
    label = "The group's open instances"
    return Look("instances", label, Permission.MANAGE_INSTANCES, _page, shows, yes, no)


TELLING: dict[str, tuple[Look, ...]] = {
    "approve_request": (_REQUESTS, _MEMBER),
    "reject_request": (_REQUESTS, _MEMBER),
    "invite_member": (_INVITES, _INVITED),
    "cancel_member_invite": (_INVITES, _INVITED),
    "remove_member": (_MEMBER,),
    "ban_member": (_BANS, _BANNED),
    "unban_member": (_BANS, _BANNED),
    "assign_role": (_ROLE,),
    "remove_role": (_ROLE,),
    "publish_post": (_posts(_says, "one says exactly this", "none says exactly this"),),
    "edit_post": (_posts(_says, "it says exactly this", "it does not say exactly this"),),
    "delete_post": (_posts(_is_there, "it is there", "it is not there"),),
    "create_instance": (_instances(_has_world, "one is of this world", "none is of this world"),),
    "close_instance": (_instances(_is_open, "it is open", "it is not open"),),
    "invite_to_instance": (),
    "invite_to_created_instance": (),
}
"""What tells of each kind of operation, what needs no further permission first."""


def looks_of(standing: Standing, kind: str) -> dict[str, Look]:
    """What tells this reader of an operation of that kind, by the name of the evidence."""
    return {look.evidence: look for look in TELLING[kind] if standing.holds(look.permission)}


def evidence_for(standing: Standing, kind: str, payload: Fields) -> list[tuple[str, dict[str, Any]]]:
    """The reads, each with its parameters, that this reader can have made to see what became of such an operation."""
    return [(look.evidence, look.params(payload)) for look in looks_of(standing, kind).values()]
