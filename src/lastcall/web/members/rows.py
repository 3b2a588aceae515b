"""The rows of a list of people: names first, ids second, roles by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lastcall.connections.queries import ConnectionCard
from lastcall.web.awaited import Awaited
from lastcall.web.members.recent import Recent
from lastcall.web.members.tabs import Tab
from lastcall.web.scheduled import Entry

NO_NAME = "Without a name"
"""For a person whose own record VRChat left out."""


@dataclass(frozen=True)
class RoleTag:
    id: str
    name: str


@dataclass(frozen=True)
class Row:
    """``since`` is what the list says of when; ``protected`` what makes somebody no target, empty for all others."""

    user_id: str
    name: str
    since: datetime | None
    roles: Sequence[RoleTag]
    protected: str
    lately: Entry | None
    """What was queued about the person and was not over when the list was read."""

    @property
    def line(self) -> str:
        """The person as a form of an action names them."""
        return f"{self.user_id} {self.name}"


def rows_of(
    found: Awaited, tab: Tab, card: ConnectionCard | None, recent: Recent, protected: Mapping[str, str]
) -> list[Row]:
    """The people of a fresh read; nobody of any other."""
    if found.read is None:
        return []
    names = {} if card is None else {role.id.lower(): role.name or "" for role in card.roles}
    since = found.read.observed_at or found.now
    of_person = {user_id: one for user_id, one in recent.of_person.items() if one.time >= since}
    return [_row(item, tab, names, protected, of_person) for item in found.read.items]


def _row(
    item: Any,
    tab: Tab,
    names: Mapping[str, str],
    protected: Mapping[str, str],
    of_person: Mapping[str, Entry],
) -> Row:
    return Row(
        item.user_id,
        item.display_name or NO_NAME,
        getattr(item, tab.moment),
        [RoleTag(role_id, names.get(role_id.lower(), "")) for role_id in getattr(item, "role_ids", ())],
        protected.get(item.user_id.lower(), ""),
        of_person.get(item.user_id.lower()),
    )
