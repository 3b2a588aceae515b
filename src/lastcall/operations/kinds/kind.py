"""What a kind of operation is. One file a kind beside this one; the registry is the package itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.errors import Invalid
from lastcall.operations.kinds.fields import FOLDED, SHAPES, UserId

TARGET_MOST = 200
"""Characters of a target that are stored as they are; of a longer one the SHA-256 is."""


class Payload(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Base of all payloads: exactly the reviewed fields, nothing else. What was left open is not stored."""


class PersonPayload(Payload, frozen=True):
    """A payload about one person."""

    target_user_id: UserId


PayloadType = TypeVar("PayloadType", bound=Payload)


@dataclass(frozen=True)
class Words:
    """``label`` names the kind, ``verb`` begins a sentence about one target, ``plural`` names a batch of
    them.
    """

    label: str
    verb: str
    plural: str


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[PayloadType]):
    """One kind of provider write.

    ``grants`` is what VRChat must allow the account whatever the payload says, ``more_grants`` what this
    payload needs beyond; ask ``grants_for``. ``cost`` is in provider requests: the group read, further reads
    and the write (BUD-01). ``is_protective``: the account itself and the group's owner are refused as targets.
    ``is_urgent``: a single one goes before everything else of its connection. ``needs_friend``: the target
    must be a friend of the account. ``lifts_ban``: done to a banned person, it unbans them. ``changes_role``: the
    payload's role must be on the actor's list. ``check`` raises ``Invalid`` for fields that do not go together, with
    the name of the one to change. ``sent_as``: the kind that a collector is handed instead, with what was still open
    filled in.
    """

    name: str
    payload: type[PayloadType]
    permission: Permission
    feature: Feature
    grants: tuple[str, ...]
    more_grants: Callable[[PayloadType], tuple[str, ...]] | None = None
    cost: int
    is_bulk: bool = False
    is_protective: bool = False
    is_urgent: bool = False
    needs_friend: bool = False
    lifts_ban: bool = False
    changes_role: bool = False
    check: Callable[[PayloadType], None] | None = None
    sent_as: str | None = None
    words: Words

    def parse(self, fields: object, where: str) -> PayloadType:
        """The payload that ``fields`` spell. Raises ``Invalid`` that names the field under ``where``."""
        payload = read_fields(fields, self.payload, where)
        if self.check is not None:
            try:
                self.check(payload)
            except Invalid as error:
                error.field = f"{where}.{error.field}"
                raise
        return payload

    def grants_for(self, payload: PayloadType) -> tuple[str, ...]:
        """Everything that VRChat must allow the account for this payload."""
        return self.grants if self.more_grants is None else self.grants + self.more_grants(payload)

    def role_ids(self, payload: PayloadType) -> tuple[str, ...]:
        """The VRChat roles that the actor must be permitted to give and take; roles that only name an audience
        are none of them.
        """
        return (str(fields_of(payload)["roleId"]),) if self.changes_role else ()

    def target(self, payload: PayloadType) -> str:
        """What makes two payloads of one request the same: all fields, however ids are spelled (ENQ-13)."""
        values = (FOLDED.get(name, str)(value) for name, value in fields_of(payload).items())
        text = "|".join(values)
        return text if len(text) <= TARGET_MOST else hashlib.sha256(text.encode()).hexdigest()

    def lane(self, size: int) -> int:
        """The lane of one of ``size`` operations of a request: 1 urgent single, 2 single, 3 batch."""
        if size > 1:
            return 3
        return 1 if self.is_urgent else 2


def read_fields(fields: object, shape: type[PayloadType], where: str) -> PayloadType:
    """The fields in the form ``shape``. Raises ``Invalid`` that names the first wrong one under ``where``."""
    try:
        return msgspec.convert(fields, shape, strict=True)
    except msgspec.ValidationError as error:
        raise _invalid(error, where) from None


def fields_of(payload: Payload) -> dict[str, Any]:
    """The payload as it is stored and sent."""
    fields: dict[str, Any] = msgspec.to_builtins(payload)
    return fields


def target_user_id(fields: Mapping[str, Any]) -> str | None:
    """The person that a stored payload is about, if it is about one."""
    found = fields.get("targetUserId")
    return None if found is None else str(found)


def title(fields: Mapping[str, Any]) -> str | None:
    """What names a stored payload that is about no person: a post's title or id, or a world."""
    return next((str(fields[name]) for name in ("title", "postId", "worldId") if name in fields), None)


def _invalid(error: msgspec.ValidationError, where: str) -> Invalid:
    text = str(error)
    _, _, path = text.partition(" - at `$")
    field = path.rstrip("`").lstrip(".").partition("[")[0]
    shape = SHAPES.get(field)
    if shape is not None:
        return Invalid("field_invalid", f"{field} must be {shape}.", field=f"{where}.{field}")
    name = _named(text)
    if text.startswith("Object missing"):
        return Invalid("field_missing", f"{name} is missing.", field=f"{where}.{name}")
    if text.startswith("Object contains unknown field"):
        return Invalid("field_unknown", f"{name} is no field of this kind.", field=f"{where}.{name}")
    return Invalid("payload_invalid", "This must be an object with the fields of its kind.", field=where)


def _named(text: str) -> str:
    parts = text.split("`")
    return parts[1] if len(parts) > 1 else ""
