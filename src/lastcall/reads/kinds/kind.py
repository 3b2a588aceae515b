"""What a kind of read is. One file a kind beside this one; the registry is the package itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.errors import Invalid
from lastcall.operations.kinds.fields import SHAPES as OPERATION_SHAPES
from lastcall.reads.kinds.fields import SHAPES, Item, PageParams, Params

ParamsType = TypeVar("ParamsType", bound=Params)
ItemType = TypeVar("ItemType", bound=Item)


@dataclass(frozen=True)
class Telling(Generic[ParamsType, ItemType]):
    """What a read leaves behind as evidence: under which subject, and the body of it. A newer read under the same
    subject takes its place.
    """

    subject: Callable[[ParamsType], str]
    body: Callable[[ParamsType, Sequence[ItemType]], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ReadKind(Generic[ParamsType, ItemType]):
    """One kind of provider read.

    ``permission`` is what whoever asks and whoever looks must hold in the club, ``grants`` what VRChat must allow the
    account. ``most`` is how many items an answer has at most. ``check`` raises ``Invalid`` for parameters that do not
    go together, with the name of the one to change.
    """

    name: str
    label: str
    params: type[ParamsType]
    item: type[ItemType]
    permission: Permission
    feature: Feature
    grants: tuple[str, ...] = ()
    most: Callable[[ParamsType], int]
    check: Callable[[ParamsType], None] | None = None
    telling: Telling[ParamsType, ItemType] | None = None

    def parse(self, fields: Mapping[str, Any], where: str = "params") -> ParamsType:
        """The parameters that ``fields`` spell. Raises ``Invalid`` that names the field under ``where``."""
        try:
            params = msgspec.convert(fields, self.params, strict=True)
        except msgspec.ValidationError as error:
            raise _invalid(str(error), where) from None
        if self.check is not None:
            try:
                self.check(params)
            except Invalid as error:
                error.field = f"{where}.{error.field}"
                raise
        return params

    def key(self, params: ParamsType) -> bytes:
        """The same for what asks the same, however ids and names are spelled."""
        text = msgspec.json.encode([self.name, params]).decode().lower()
        return hashlib.sha256(text.encode()).digest()

    def subject(self, params: ParamsType) -> str | None:
        """Under what the answer is kept as evidence; None when it is none."""
        return None if self.telling is None else self.telling.subject(params)

    def evidence(self, params: ParamsType, items: Sequence[ItemType]) -> dict[str, Any] | None:
        """What is kept of the answer as evidence; None when it is none."""
        return None if self.telling is None else self.telling.body(params, items)


def most_of_page(params: PageParams) -> int:
    """A page has as many items as were asked for, at most."""
    return params.n


def one(_: Params) -> int:
    """At most one."""
    return 1


def page_subject(params: PageParams) -> str:
    """Which page of a list it is."""
    return f"{params.offset}+{params.n}"


def _invalid(text: str, where: str) -> Invalid:
    _, _, path = text.partition(" - at `$")
    field = path.rstrip("`").lstrip(".").partition("[")[0]
    shape = SHAPES.get(field) or OPERATION_SHAPES.get(field)
    if shape is not None:
        return Invalid("field_invalid", f"{field} must be {shape}.", field=f"{where}.{field}")
    parts = text.split("`")
    name = parts[1] if len(parts) > 1 else ""
    if text.startswith("Object missing"):
        return Invalid("field_missing", f"{name} is missing.", field=f"{where}.{name}")
    if text.startswith("Object contains unknown field"):
        return Invalid("field_unknown", f"{name} is no parameter of this kind.", field=f"{where}.{name}")
    return Invalid("params_invalid", "This must be an object with the parameters of its kind.", field=where)
