"""What Scheduled shows, made from the queries' rows: batches rolled up, days as headings, words for
states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from uuid import UUID

from lastcall.connections.queries import ConnectionCard
from lastcall.db.cursor import Cursor, read_cursor, write_cursor
from lastcall.db.ids import decode_id, encode_id
from lastcall.operations.machine import State
from lastcall.operations.notices import NoticeView
from lastcall.operations.queries import RequestRollup
from lastcall.operations.views import OperationView
from lastcall.web.looks import KINDS, Look, Why, state_look, why
from lastcall.web.times import Zoned

PROGRESS_WIDTH = 100
UPCOMING = "upcoming"
"""The agenda's name in its cursors."""

Names = Mapping[str, str]
"""Names of the group's roles by id, as far as they were read."""


def role_names(card: ConnectionCard | None) -> Names:
    return {} if card is None else {role.id.lower(): role.name for role in card.roles if role.name}


@dataclass(frozen=True)
class Bar:
    """One coloured part of a progress bar, in hundredths of its width."""

    name: str
    start: float
    width: float


@dataclass(frozen=True)
class Tally:
    """How many of a request stand where, in the words of pages."""

    total: int
    done: int
    failed: int
    unknown: int
    moving: int
    stopped: int

    @property
    def to_go(self) -> int:
        return self.total - self.done - self.failed - self.unknown - self.moving - self.stopped

    @property
    def bars(self) -> list[Bar]:
        bars: list[Bar] = []
        start = 0.0
        for name, count in (
            ("succeeded", self.done),
            ("failed", self.failed),
            ("unknown", self.unknown),
            ("stopped", self.stopped),
            ("sending", self.moving),
        ):
            width = count * PROGRESS_WIDTH / self.total
            if count:
                bars.append(Bar(name, round(start, 2), round(width, 2)))
            start += width
        return bars

    @property
    def words(self) -> str:
        parts = (
            (self.done, "done"),
            (self.failed, "failed"),
            (self.unknown, "unknown"),
            (self.stopped, "cancelled"),
            (self.moving, "under way"),
            (self.to_go, "to go"),
        )
        return " · ".join(f"{count} {word}" for count, word in parts if count)


def tally_of(counts: Mapping[State, int]) -> Tally:
    return Tally(
        total=sum(counts.values()),
        done=counts.get(State.SUCCEEDED, 0),
        failed=counts.get(State.REJECTED, 0) + counts.get(State.MISSED, 0),
        unknown=counts.get(State.INDETERMINATE, 0),
        moving=counts.get(State.CLAIMED, 0) + counts.get(State.SUBMITTED, 0),
        stopped=counts.get(State.CANCELLED, 0),
    )


@dataclass(frozen=True)
class Entry:
    """One row of an agenda: a single action, or a whole request that is shown as a batch."""

    key: str
    icon: str
    title: str
    target: str | None
    """The id of the person or post that it is about, with what it is called; a batch has none."""
    target_word: str
    role: str | None
    by: str
    time: datetime
    look: Look
    why: Why | None
    operation_id: UUID | None
    request_id: UUID
    revision: int
    is_cancellable: bool
    is_editable: bool
    is_immediate: bool
    is_role_named: bool
    is_over: bool
    batch_size: int
    """How many the single action was queued with; a batch itself stands for all of its own."""
    size: int
    tally: Tally | None
    late_outcome: str | None


@dataclass(frozen=True)
class Day:
    title: str
    entries: Sequence[Entry] = field(default_factory=tuple)


def _role_words(role: str | None, names: Names) -> str:
    """The role's name in quotes where it was read, else that it is one; its id stands beside it then."""
    name = names.get(role.lower()) if role else None
    return f"“{name}”" if name else "a role"


def _post_words(row: OperationView) -> str:
    title = row.payload.get("title")
    return f"“{title}”" if title else "the post"


def single(row: OperationView, names: Names, *, time: datetime) -> Entry:
    look = KINDS[row.kind.name]
    role = row.payload.get("roleId")
    return Entry(
        key=encode_id(row.id),
        icon=look.icon,
        title=look.one.format(role=_role_words(role, names), post=_post_words(row)),
        target=row.target_user_id or row.payload.get("postId"),
        target_word="VRChat user id" if row.target_user_id else "post id",
        role=role,
        by=row.actor_name,
        time=time,
        look=state_look(row.state, row.code),
        why=why(row.code),
        operation_id=row.id,
        request_id=row.request_id,
        revision=row.revision,
        is_cancellable=row.is_cancellable,
        is_editable=row.is_editable,
        is_immediate=row.schedule_kind == "immediate",
        is_role_named=bool(role and role.lower() in names),
        is_over=row.state.is_terminal,
        batch_size=row.request_size,
        size=1,
        tally=None,
        late_outcome=row.late_outcome,
    )


@dataclass(frozen=True)
class Attention:
    """A notice: a state and a link, and nothing of what the action says."""

    id: UUID
    label: str
    icon: str
    look: Look
    why: Why | None
    time: datetime


def notice_entry(notice: NoticeView) -> Attention:
    row = notice.operation
    return Attention(
        row.id,
        row.kind.words.label,
        KINDS[row.kind.name].icon,
        state_look(row.state, row.code),
        why(row.code),
        notice.noticed_at,
    )


def batch(first: OperationView, rollup: RequestRollup, names: Names, *, time: datetime) -> Entry:
    look = KINDS[rollup.kind.name]
    tally = tally_of(rollup.counts)
    role = first.payload.get("roleId")
    return Entry(
        key=encode_id(rollup.id),
        icon=look.icon,
        title=(look.many if rollup.size > 1 else look.one).format(
            role=_role_words(role, names), post=_post_words(first), count=rollup.size
        ),
        target=None,
        target_word="",
        role=role,
        by=rollup.created_by_name,
        time=time,
        look=_batch_look(tally),
        why=None,
        operation_id=None,
        request_id=rollup.id,
        revision=0,
        is_cancellable=False,
        is_editable=False,
        is_immediate=first.schedule_kind == "immediate",
        is_role_named=bool(role and role.lower() in names),
        is_over=rollup.settled == rollup.size,
        batch_size=1,
        size=rollup.size,
        tally=tally,
        late_outcome=None,
    )


def _batch_look(tally: Tally) -> Look:
    if tally.moving:
        return Look("live", "turn", "Sending")
    if tally.to_go:
        return Look("wait", "clock", "Pending" if tally.to_go == tally.total else "Under way")
    if tally.unknown:
        return Look("unknown", "question", "Outcome unknown")
    if tally.failed:
        return Look("bad", "cross", f"{tally.failed} failed")
    if tally.stopped == tally.total:
        return Look("", "slash", "Cancelled")
    return Look("ok", "check", "Completed")


def upcoming_entries(
    rows: Sequence[OperationView], rollups: Mapping[UUID, RequestRollup], names: Names
) -> list[Entry]:
    """Rows by due time as an agenda: each batch once, where its first remaining row is."""
    entries: list[Entry] = []
    shown: set[UUID] = set()
    for row in rows:
        rollup = rollups.get(row.request_id)
        if row.request_size == 1 or rollup is None:
            entries.append(single(row, names, time=row.due_at))
        elif row.request_id not in shown:
            shown.add(row.request_id)
            entries.append(batch(row, rollup, names, time=row.due_at))
    return entries


def days(entries: Sequence[Entry], zoned: Zoned) -> list[Day]:
    """Neighbouring entries of one local day under one heading."""
    return [
        Day(title, tuple(group)) for title, group in groupby(entries, key=lambda entry: zoned.day(entry.time))
    ]


def write_place(row: OperationView) -> str:
    """Where the next page of the agenda begins: its cursor, and the batch that this page already shows."""
    return f"{write_cursor(UPCOMING, Cursor(row.due_at, row.id))}.{encode_id(row.request_id)}"


def read_place(text: str) -> tuple[Cursor | None, UUID | None]:
    """A cursor from the address, and the batch that the page before already shows. Raises ``Invalid``."""
    if not text:
        return None, None
    cursor, _, shown = text.partition(".")
    return read_cursor(UPCOMING, cursor), decode_id(shown)
