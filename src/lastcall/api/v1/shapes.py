"""What every part of the API is written in: the bases of bodies, and ids as the API spells them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar.params import PathParameter
from msgspec import Meta, Struct

from lastcall.db.ids import ALPHABET, LENGTH, decode_id, encode_id
from lastcall.errors import Invalid, NotFound

ID_PATTERN = f"^[0-7][{ALPHABET}]{{{LENGTH - 1}}}$"
Id = Annotated[str, Meta(pattern=ID_PATTERN, examples=["01j9zq8v3n5x7c2m4k6h8d0f1g"])]

PathId = Annotated[str, PathParameter(schema_extra={"pattern": ID_PATTERN})]
"""An id in an address. Text that is none is unknown (404), so it is described and not checked."""


class Shape(Struct, frozen=True, rename="camel", kw_only=True):
    """Base of what the API answers."""


class Input(Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Base of what the API is sent. A field that nobody knows is refused: it would otherwise look like one
    that does not work.
    """


class Problem(Shape, frozen=True):
    """What went wrong (RFC 9457): a sentence, what to do about it, and a code for programs."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    code: str
    advice: str | None = None
    field: str | None = None
    errors: list[FieldProblem] = []
    fresh: dict[str, Any] | None = None


class FieldProblem(Shape, frozen=True):
    """One field that is not right."""

    field: str
    detail: str


def known(text: str) -> UUID:
    """An id from the address; one that is none is as unknown as one that nobody has."""
    try:
        return decode_id(text)
    except Invalid as error:
        raise NotFound("not_found", "There is nothing at this address.") from error


def known_in(text: str, field: str) -> UUID:
    """An id from a body. Raises ``Invalid`` that names the field."""
    try:
        return decode_id(text)
    except Invalid as error:
        error.field = field
        raise


def utc(moment: datetime, field: str) -> datetime:
    """The moment in UTC. Raises ``Invalid`` without a zone and beyond the years that have it."""
    if moment.tzinfo is None:
        raise Invalid("time_without_zone", "The time has no zone.", advice="End it with Z.", field=field)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise Invalid("time_unknown", "There is no such time.", field=field) from error


def spelled(value: UUID | None) -> str | None:
    return None if value is None else encode_id(value)
