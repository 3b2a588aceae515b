"""The fields that kinds share, with their limits. ``vrchat/writes/payload.py`` has the same ones for the
collector, and a test compares the two.

The lengths of texts are limits of ours against abuse; VRChat's own are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from lastcall.errors import Invalid

_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_NO_CONTROLS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*\Z"
"""Tabs and ends of lines are no control characters here."""

_TEXT = r"[^~\s:/?#\\%()\x00-\x1f\x7f-\x9f]"
_TAG = rf"(?:~(?!group\(){_TEXT}+(?:\({_TEXT}*\))?)"

MOST_ROLES: Final = 100
INSTANCE_ID_MOST: Final = 500
"""Characters."""

UserId = Annotated[str, Meta(pattern=rf"^usr_{_UUID}\Z", description="a VRChat user id: usr_ and a UUID")]
RoleId = Annotated[str, Meta(pattern=rf"^grol_{_UUID}\Z", description="a VRChat role id: grol_ and a UUID")]
WorldId = Annotated[str, Meta(pattern=rf"^wrld_{_UUID}\Z", description="a VRChat world id: wrld_ and a UUID")]
PostId = Annotated[str, Meta(pattern=rf"^not_{_UUID}\Z", description="a VRChat post id: not_ and a UUID")]
OperationId = Annotated[
    str, Meta(pattern=r"^[0-7][0-9a-hjkmnp-tv-z]{25}\Z", description="the id of another action of the club")
]
Revision = Annotated[int, Meta(ge=1, le=2**31 - 1, description="the revision of an action, counted from 1")]
CalendarEntryId = Annotated[
    str, Meta(pattern=rf"^cal_{_UUID}\Z", description="a VRChat calendar entry id: cal_ and a UUID")
]
FileId = Annotated[str, Meta(pattern=rf"^file_{_UUID}\Z", description="a VRChat file id: file_ and a UUID")]
RoleIds = Annotated[tuple[RoleId, ...], Meta(max_length=MOST_ROLES)]
InstanceId = Annotated[
    str,
    Meta(
        max_length=INSTANCE_ID_MOST,
        pattern=rf"^{_TEXT}+{_TAG}*~group\({_TEXT}+\){_TAG}*\Z",
        description="the name of a group's instance with its tags, such as 12345~group(grp_…)~region(eu)",
    ),
]
MessageSlot = Annotated[int, Meta(ge=0, le=11, description="one of the account's saved invite messages")]
Title = Annotated[str, Meta(min_length=1, max_length=200, pattern=_NO_CONTROLS)]
Text = Annotated[str, Meta(min_length=1, max_length=10_000, pattern=_NO_CONTROLS)]
Visibility = Literal["public", "group"]

SHAPES: Final = {
    "targetUserId": "a VRChat user id, such as usr_00000000-…",
    "roleId": "a VRChat role id, such as grol_00000000-…",
    "roleIds": f"at most {MOST_ROLES} VRChat role ids, such as grol_00000000-…",
    "worldId": "a VRChat world id, such as wrld_00000000-…",
    "postId": "the id of a VRChat post, such as not_00000000-…",
    "instanceId": "the id of one of the group's instances, such as 12345~group(grp_00000000-…)~region(eu)",
    "calendarEntryId": "the id of a VRChat calendar entry, such as cal_00000000-…",
    "messageSlot": "a number from 0 to 11: one of the account's saved invite messages",
    "access": "members, plus or public",
    "region": "us, use, eu or jp",
    "ageGated": "true or false",
    "queueEnabled": "true or false",
    "creationOperationId": "the id of an action that creates an instance",
    "creationRevision": "the revision of that action as it was reviewed, a number from 1",
    "imageId": "the id of an image at VRChat, such as file_00000000-…",
    "title": "1 to 200 characters without control characters",
    "text": "1 to 10 000 characters without control characters",
    "visibility": "public or group",
    "sendNotification": "true or false",
}
"""What a person is told a field must be, by its name in a request."""


def spelled_alike(instance_id: str) -> str:
    """The same for all spellings of one instance: its tags come in any order and any case."""
    name, *tags = instance_id.lower().split("~")
    return "~".join((name, *sorted(tags)))


FOLDED: Final[Mapping[str, Callable[[str], str]]] = {
    "targetUserId": str.lower,
    "roleId": str.lower,
    "worldId": str.lower,
    "instanceId": spelled_alike,
}
"""Fields that several spellings mean the same in, and how two are compared (ENQ-13): nobody is invited to one instance
twice because it is written differently."""


def group_of(instance_id: str) -> str:
    """The group, in lower case, of an instance id's one mark."""
    return instance_id.partition("~group(")[2].partition(")")[0].lower()


def refuse_repeated(role_ids: Sequence[str]) -> None:
    """Raise ``Invalid`` when a role is named twice, letter case aside."""
    if len({role_id.lower() for role_id in role_ids}) != len(role_ids):
        raise Invalid("roles_repeated", "roleIds names a role twice.", field="roleIds")
