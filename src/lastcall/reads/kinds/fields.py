"""The parameters and the items that kinds share. ``vrchat/reads/`` has the same for the collector, and a test
compares the two.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct

from lastcall.protocol.messages import ProviderId
from lastcall.protocol.messages import Text as Name

PAGE_MOST: Final = 100
"""Items of one page."""
OFFSET_MOST: Final = 10_000_000
TARGETS_MOST: Final = 100

PageSize = Annotated[int, Meta(ge=1, le=PAGE_MOST, description="how many at most")]
Offset = Annotated[int, Meta(ge=0, le=OFFSET_MOST, description="how many to pass over")]
Query = Annotated[
    str,
    Meta(min_length=3, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z", description="part of a name"),
]
RoleIds = Annotated[tuple[ProviderId, ...], Meta(max_length=100)]


class Params(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of what is asked for."""


class PageParams(Params, frozen=True):
    """A stretch of a list."""

    n: PageSize = 25
    offset: Offset = 0


class Item(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of what is answered: exactly these fields of VRChat's record and nothing else of it."""


class MemberItem(Item, frozen=True):
    """A member as the directory shows them."""

    user_id: ProviderId
    display_name: Name
    role_ids: RoleIds
    joined_at: datetime | None


class RoleItem(Item, frozen=True):
    """A role of the group."""

    role_id: ProviderId
    name: Name


SHAPES: Final = {
    "n": f"a number from 1 to {PAGE_MOST}",
    "offset": f"a number from 0 to {OFFSET_MOST}",
    "query": "3 to 100 characters of a name",
    "targetUserIds": f"1 to {TARGETS_MOST} VRChat user ids",
}
"""What a person is told a parameter must be, beside what ``operations/`` says of the fields that both have."""
