"""The fields that payloads share, and how a payload that came over the wire is read."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from lastcall.vrchat.errors import InvalidInput

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

UserId = Annotated[str, msgspec.Meta(pattern=rf"^usr_{_UUID}\Z")]
"""A person at VRChat. Legacy ids without ``usr_`` are refused."""

RoleId = Annotated[str, msgspec.Meta(pattern=rf"^grol_{_UUID}\Z")]


class Payload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of the kinds' payloads: camelCase on the wire, nothing that a kind does not know."""


T = TypeVar("T", bound=Payload)


def read_payload(payload: Any, shape: type[T]) -> T:
    """``payload`` as ``shape``. Raises ``InvalidInput``, naming the field where msgspec does."""
    try:
        return msgspec.convert(payload, shape)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The payload does not fit its kind: {error}") from error
