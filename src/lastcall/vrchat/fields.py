"""The forms that values in VRChat's answers must have. What has another form is no evidence of anything."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

Text = Annotated[str, msgspec.Meta(max_length=600)]
Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,100}\Z")]
"""An id of whatever kind; those of people may be legacy ones without ``usr_``."""

Word = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]{1,100}\Z")]
Grant = Annotated[str, msgspec.Meta(max_length=100)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
"""As much as the worker protocol carries."""

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A moment that says in which zone it is; another cannot be compared with any."""

MOST_ROLES = 100
"""Roles of a group, or of a member, that are read."""

RoleIds = Annotated[list[Id], msgspec.Meta(max_length=MOST_ROLES)]


def is_same(one: str, other: str) -> bool:
    """Whether two ids are the same, letter case aside."""
    return one.casefold() == other.casefold()
