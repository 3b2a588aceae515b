"""What a kind of operation is. One file a kind beside this one; the registry is the package itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.errors import Invalid

_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

UserId = Annotated[str, Meta(pattern=rf"^usr_{_UUID}\Z", description="a VRChat user id: usr_ and a UUID")]
RoleId = Annotated[str, Meta(pattern=rf"^grol_{_UUID}\Z", description="a VRChat role id: grol_ and a UUID")]

_SHAPES = {
    "targetUserId": "a VRChat user id, such as usr_00000000-…",
    "roleId": "a VRChat role id, such as grol_00000000-…",
}


class Payload(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all payloads: exactly the reviewed fields, nothing else."""

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


@dataclass(frozen=True)
class Kind(Generic[PayloadType]):
    """One kind of provider write.

    ``grants`` is what VRChat must allow the account; ``cost`` is in provider requests, the group read and the
    write (BUD-01). ``is_protective``: the account itself and the group's owner are refused as targets.
    ``is_urgent``: a single one goes before everything else of its connection.
    """

    name: str
    payload: type[PayloadType]
    permission: Permission
    feature: Feature
    grants: tuple[str, ...]
    cost: int
    is_bulk: bool
    is_protective: bool
    is_urgent: bool
    words: Words

    def parse(self, fields: object, where: str) -> PayloadType:
        """The payload that ``fields`` spell. Raises ``Invalid`` that names the field under ``where``."""
        try:
            return msgspec.convert(fields, self.payload, strict=True)
        except msgspec.ValidationError as error:
            raise _invalid(error, where) from None

    def target(self, payload: PayloadType) -> str:
        """What makes two payloads of one request the same, without regard to case (ENQ-13)."""
        return "|".join(str(value).lower() for value in msgspec.to_builtins(payload).values())

    def role_id(self, payload: PayloadType) -> str | None:
        """The VRChat role that this hands out, where there is one."""
        return getattr(payload, "role_id", None)

    def lane(self, size: int) -> int:
        """The lane of one of ``size`` operations of a request: 1 urgent single, 2 single, 3 batch."""
        if size > 1:
            return 3
        return 1 if self.is_urgent else 2


def fields_of(payload: Payload) -> dict[str, Any]:
    """The payload as it is stored and sent."""
    fields: dict[str, Any] = msgspec.to_builtins(payload)
    return fields


def _invalid(error: msgspec.ValidationError, where: str) -> Invalid:
    text = str(error)
    _, _, path = text.partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    shape = _SHAPES.get(field)
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
