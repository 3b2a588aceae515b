"""The fields that kinds share, with their limits. ``vrchat/writes/payload.py`` has the same ones for the
collector, and a test compares the two.

The lengths of texts are limits of ours against abuse; VRChat's own are not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from lastcall.errors import Invalid

_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_NO_CONTROLS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*\Z"
"""Tabs and ends of lines are no control characters here."""

MOST_ROLES: Final = 100

UserId = Annotated[str, Meta(pattern=rf"^usr_{_UUID}\Z", description="a VRChat user id: usr_ and a UUID")]
RoleId = Annotated[str, Meta(pattern=rf"^grol_{_UUID}\Z", description="a VRChat role id: grol_ and a UUID")]
WorldId = Annotated[str, Meta(pattern=rf"^wrld_{_UUID}\Z", description="a VRChat world id: wrld_ and a UUID")]
PostId = Annotated[str, Meta(pattern=rf"^not_{_UUID}\Z", description="a VRChat post id: not_ and a UUID")]
FileId = Annotated[str, Meta(pattern=rf"^file_{_UUID}\Z", description="a VRChat file id: file_ and a UUID")]
RoleIds = Annotated[tuple[RoleId, ...], Meta(max_length=MOST_ROLES)]
Title = Annotated[str, Meta(min_length=1, max_length=200, pattern=_NO_CONTROLS)]
Text = Annotated[str, Meta(min_length=1, max_length=10_000, pattern=_NO_CONTROLS)]
Visibility = Literal["public", "group"]

SHAPES: Final = {
    "targetUserId": "a VRChat user id, such as usr_00000000-…",
    "roleId": "a VRChat role id, such as grol_00000000-…",
    "roleIds": f"at most {MOST_ROLES} VRChat role ids, such as grol_00000000-…",
    "worldId": "a VRChat world id, such as wrld_00000000-…",
    "postId": "the id of a VRChat post, such as not_00000000-…",
    "imageId": "the id of an image at VRChat, such as file_00000000-…",
    "title": "1 to 200 characters without control characters",
    "text": "1 to 10 000 characters without control characters",
    "visibility": "public or group",
    "sendNotification": "true or false",
}
"""What a person is told a field must be, by its name in a request."""

FOLDED: Final = frozenset({"targetUserId", "roleId"})
"""Ids that are compared without regard to case (ENQ-13)."""


def refuse_repeated(role_ids: Sequence[str]) -> None:
    """Raise ``Invalid`` when a role is named twice, letter case aside."""
    if len({role_id.lower() for role_id in role_ids}) != len(role_ids):
        raise Invalid("roles_repeated", "roleIds names a role twice.", field="roleIds")
