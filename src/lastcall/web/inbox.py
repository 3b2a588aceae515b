"""What the pages of the inbox share: which list is meant, when the reader's day began, and what a form ticked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from lastcall.db.ids import decode_id, encode_id
from lastcall.deadlines.times import to_datetime, to_microseconds
from lastcall.decisions.inbox.acts import Said, Ticked
from lastcall.decisions.inbox.away import Until
from lastcall.decisions.inbox.item import Act, Item, Shelf
from lastcall.decisions.inbox.queries import Wanted
from lastcall.decisions.inbox.source import source_named, sources
from lastcall.errors import Invalid, NotFound
from lastcall.mail.mailer import Mailer

TOPIC = "inbox"
"""The one topic under which pages hear of whatever may change an inbox."""

SNOOZES = {"1": "until tomorrow", "3": "for three days", "7": "for a week", "30": "for a month"}
"""Days that an item can be put away for."""

DONE = {
    Act.APPROVE: "approved",
    Act.REJECT: "turned down",
    Act.KEEP: "kept",
    Act.UNKEEP: "not kept any more",
    Act.ARCHIVE: "archived",
    Act.REVIVE: "brought back",
    Act.SNOOZE: "put away",
    Act.DISMISS: "put away until something happens",
    Act.SHOW: "shown again",
}
ASKED = {
    Act.APPROVE: "Approve",
    Act.REJECT: "Turn down",
    Act.KEEP: "Keep",
    Act.UNKEEP: "Do not keep",
    Act.ARCHIVE: "Archive",
    Act.REVIVE: "Bring back",
    Act.SNOOZE: "Snooze",
    Act.DISMISS: "Dismiss",
    Act.SHOW: "Show again",
}
"""What the buttons say."""


@dataclass(frozen=True)
class Listing:
    """Which list the reader looks at; ``path`` is its page."""

    path: str
    shelf: Shelf
    kind: str

    def address(self, *, shelf: Shelf | None = None, kind: str | None = None, **more: str) -> str:
        """The address of this list, or of the one beside it."""
        query = {
            "shelf": (shelf or self.shelf).value,
            "kind": self.kind if kind is None else kind,
            **more,
        }
        if query["shelf"] == Shelf.WAITING:
            del query["shelf"]
        kept = {name: value for name, value in query.items() if value}
        return f"{self.path}?{urlencode(kept)}" if kept else self.path

    def wanted(self, now: datetime, zone: ZoneInfo) -> Wanted:
        """The same as the queries ask for it."""
        day = datetime.combine(now.astimezone(zone).date(), time(), zone)
        return Wanted(now, day, self.shelf, frozenset({self.kind} if self.kind else ()))


def read_listing(path: str, shelf: str, kind: str) -> Listing:
    """The list that an address names. Raises ``NotFound`` for one that is not there."""
    if (shelf and shelf not in set(Shelf)) or (kind and kind not in {source.name for source in sources()}):
        raise NotFound("not_found", "There is no such page.")
    return Listing(path, Shelf(shelf) if shelf else Shelf.WAITING, kind)


def item_key(item: Item) -> str:
    """What a form carries of an item: which it is, and the versions and the last activity that the person saw."""
    version = item.retention.version if item.retention else 0
    place = f"{item.source.name}/{encode_id(item.club.id)}/{encode_id(item.id)}"
    return f"{place}/{item.seen}/{version}/{to_microseconds(item.activity_at)}"


def read_act(fields: Mapping[str, str]) -> tuple[Act, list[Ticked]]:
    """What a form asks for: one button of one row, or one for all that are ticked."""
    name, _, key = fields.get("do", "").partition(" ")
    if name not in set(Act):
        raise Invalid("act_unknown", "Nothing was done.", advice="Press one of the buttons.")
    keys = [key] if key else fields.get("item", "").split()
    return Act(name), [_ticked(one) for one in keys]


def _ticked(key: str) -> Ticked:
    parts = key.split("/")
    seen = parts[3:]
    if len(parts) != 6 or not all(one.isascii() and one.isdigit() and len(one) < 18 for one in seen):
        raise Invalid("form_incomplete", "This form is not complete.", advice="Reload the page.")
    revision, version, activity = (int(one) for one in seen)
    club_id, item_id = decode_id(parts[1]), decode_id(parts[2])
    return Ticked(source_named(parts[0]), club_id, item_id, revision, version, to_datetime(activity))


def read_said(fields: Mapping[str, str], now: datetime, mailer: Mailer) -> Said:
    """The note and the time that go with it."""
    days = fields.get("days", "1")
    if days not in SNOOZES:
        raise Invalid("snooze_unknown", "Nothing was put away.", advice="Choose how long.", field="days")
    return Said(fields.get("note") or None, Until(now + timedelta(days=int(days))), mailer)


def offered(items: Sequence[Item]) -> list[Act]:
    """What can be done to at least one of these, in the order of the buttons."""
    found = {act for item in items for act in item.actions}
    return [act for act in Act if act in found]
