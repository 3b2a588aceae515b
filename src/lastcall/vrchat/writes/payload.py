"""The fields that payloads share, and how a payload that came over the wire is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from lastcall.vrchat.errors import InvalidInput

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_NO_CONTROLS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*\Z"
"""Tabs and ends of lines are no control characters here."""

_TEXT = r"[^~\s:/?#\\%()\x00-\x1f\x7f-\x9f]"
_TAG = rf"(?:~(?!group\(){_TEXT}+(?:\({_TEXT}*\))?)"

MOST_ROLE_IDS: Final = 100
INSTANCE_ID_MOST: Final = 500
"""Characters."""

UserId = Annotated[str, msgspec.Meta(pattern=rf"^usr_{_UUID}\Z")]
"""A person at VRChat. Legacy ids without ``usr_`` are refused."""

RoleId = Annotated[str, msgspec.Meta(pattern=rf"^grol_{_UUID}\Z")]
WorldId = Annotated[str, msgspec.Meta(pattern=rf"^wrld_{_UUID}\Z")]
PostId = Annotated[str, msgspec.Meta(pattern=rf"^not_{_UUID}\Z")]
CalendarEntryId = Annotated[str, msgspec.Meta(pattern=rf"^cal_{_UUID}\Z")]
FileId = Annotated[str, msgspec.Meta(pattern=rf"^file_{_UUID}\Z")]
RoleIds = Annotated[tuple[RoleId, ...], msgspec.Meta(max_length=MOST_ROLE_IDS)]
InstanceId = Annotated[
    str, msgspec.Meta(max_length=INSTANCE_ID_MOST, pattern=rf"^{_TEXT}+{_TAG}*~group\({_TEXT}+\){_TAG}*\Z")
]
"""The name of an instance with its tags, exactly one of them the mark of a group."""

MessageSlot = Annotated[int, msgspec.Meta(ge=0, le=11)]
"""One of the account's saved invite messages."""

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=_NO_CONTROLS)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000, pattern=_NO_CONTROLS)]
Visibility = Literal["public", "group"]


class Payload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Base of the kinds' payloads: camelCase on the wire, nothing that a kind does not know."""


class PersonPayload(Payload, frozen=True):
    """A payload about one person."""

    target_user_id: UserId


T = TypeVar("T", bound=Payload)


def read_payload(payload: Any, shape: type[T]) -> T:
    """``payload`` as ``shape``. Raises ``InvalidInput``, naming the field where msgspec does."""
    try:
        return msgspec.convert(payload, shape)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The payload does not fit its kind: {error}") from error


def refuse_repeated(role_ids: Sequence[str]) -> None:
    """Raise ``InvalidInput`` when a role is named twice, letter case aside."""
    if len({role_id.casefold() for role_id in role_ids}) != len(role_ids):
        raise InvalidInput("The payload names a role twice.")
