"""The work board: which connections have something to do, and collectors that wait to be told.

A collector with nothing to do parks here. While it does no statement is sent, and none when it asks again:
each account's next moment is kept in memory, lowered by signals (``signals.work``) and read again only
after one that does not say when. Two things are read again that no signal announces: an account that may not
work at all, with each new wait, since a command of the host that lets it go on tells this process nothing; and
everything, when the host's clock was set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.connections.signals import WORK_PREFIX
from lastcall.db.database import Database
from lastcall.deadlines.signals import Missed, Signal
from lastcall.deadlines.times import SECOND, DatabaseTime, span, to_microseconds, whole
from lastcall.errors import Unavailable
from lastcall.protocol.constants import DUE_MOST

OFFER_PAUSE_MOST = 60 * SECOND
"""A connection that was offered and is due unchanged is offered again after 1, 2, 4 … seconds, at most
this."""
JUMP = SECOND
"""The wall clock was set when it moved this much against the boot-time clock between two looks."""
UNCLEAR_AGAIN = (30 * SECOND, 60 * SECOND, 120 * SECOND)
"""When to look again after a COMMIT of unknown outcome: its row may appear later."""

_CONNECTIONS = """
    select c.club_id, c.id, n.now,
           greatest(
               c.backoff_until,
               case when l.released_at is null then l.expires_at end,
               case when a.state = 'cooldown' then a.cooldown_until end
           ) as blocked_until
      from (select lastcall_now() as now) n
      join accounts a on a.id = $1
      join fleet_settings f on f.id = 1
      left join connections c
        on c.account_id = a.id and c.state <> 'disconnected' and c.state = any (passable_states())
       and c.frozen_at is null
       and not c.kill_switch and not a.kill_switch and not f.kill_switch and a.state in ('ready', 'cooldown')
      left join leases l on l.club_id = c.club_id and l.connection_id = c.id
"""

Key = tuple[UUID, UUID]


@dataclass(frozen=True)
class Ready:
    """A connection's earliest work: from ``ready_at`` (database time) on a claim would find it."""

    club_id: UUID
    connection_id: UUID
    ready_at: datetime


class WorkSource(Protocol):
    """Something that collectors do. ``app.py`` lists the sources."""

    async def ready(self, account_id: UUID) -> Sequence[Ready]:
        """The earliest work of each of the account's connections, now or later, in one indexed statement.

        Only what a claim could take when its time has come: what is named here and cannot be taken wakes
        collectors for nothing.
        """
        ...


@dataclass(frozen=True)
class Due:
    """A connection that has something to do now and is held by nobody."""

    club_id: UUID
    connection_id: UUID


@dataclass(frozen=True)
class Presence:
    """A worker as this process knows it: whether it waits here now, and when it last called (host's
    clock)."""

    account_id: UUID
    worker_id: UUID
    is_waiting: bool
    last_seen: datetime


@dataclass
class _Entry:
    """``moments``: what each source said; when one of them says another, there is something new to do."""

    ready_at: int
    blocked_until: int | None
    moments: dict[int, int]


@dataclass
class _Offer:
    ready_at: int
    count: int
    again_at: int


@dataclass(eq=False)
class _Waiter:
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_replaced: bool = False


@dataclass
class _Account:
    """What is known of one account. Times are whole microseconds: entries by the database, the rest boot
    time.

    ``hint`` is the earliest time that a signal named since the last read, ``again`` those at which to look
    whether a row of an unclear COMMIT has appeared. ``is_shut``: the last read found nothing that may be
    worked on, whether or not there is work.
    """

    id: UUID
    is_dirty: bool = True
    entries: dict[Key, _Entry] = field(default_factory=dict)
    offers: dict[Key, _Offer] = field(default_factory=dict)
    hint: int | None = None
    again: list[int] = field(default_factory=list)
    is_shut: bool = False
    waiters: dict[UUID, _Waiter] = field(default_factory=dict)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def wake(self) -> None:
        for waiter in self.waiters.values():
            waiter.woken.set()


class WorkBoard:
    """One a process. Subscribes to the bus of its database when it is made."""

    def __init__(self, db: Database, sources: Sequence[WorkSource], clock: Clock = SYSTEM_CLOCK) -> None:
        self._db = db
        self._sources = tuple(sources)
        self._clock = clock
        self._time = DatabaseTime()
        self._accounts: dict[UUID, _Account] = {}
        self._seen: dict[Key, datetime] = {}
        self._is_stopped = False
        self._distance = self._wall_distance()
        db.bus.subscribe(Signal, self._on_signal)
        db.bus.subscribe(Missed, self._on_missed)
        db.bus.subscribe_unclear(self._on_unclear)

    async def wait(
        self, account_id: UUID, worker_id: UUID, life: timedelta, room: int = DUE_MOST
    ) -> list[Due]:
        """Return what is due for the account as soon as anything is, what waits longest first and at most ``room`` of
        it, or nothing after ``life``.

        A newer wait of the same worker ends this one with nothing; so does ``stop()``. Cancelling it is how
        a client that went away leaves. Raises ``Unavailable`` once stopped.
        """
        if self._is_stopped:
            raise Unavailable("stopping", "The server is stopping.", advice="Ask again in a moment.")
        account = self._accounts.setdefault(account_id, _Account(account_id))
        account.is_dirty = account.is_dirty or account.is_shut
        waiter = self._enter(account, worker_id)
        end = self._boot() + span(life)
        try:
            while not self._has_ended(waiter):
                waiter.woken.clear()
                self._notice_jump()
                await self._refresh(account)
                due = self._take_due(account, room)
                if due or self._boot() >= end:
                    return due
                await self._sleep(waiter, self._next_moment(account, end))
            return []
        finally:
            if account.waiters.get(worker_id) is waiter:
                del account.waiters[worker_id]
            self.saw(account_id, worker_id)

    def stop(self) -> None:
        """End every wait at once, and refuse new ones."""
        self._is_stopped = True
        for account in self._accounts.values():
            account.wake()

    def saw(self, account_id: UUID, worker_id: UUID) -> None:
        """A worker called. Presence is a memory of this process, not a record."""
        self._seen[(account_id, worker_id)] = self._clock.wall()

    def presence(self) -> list[Presence]:
        """The workers that called this process in the last day, the latest first."""
        now = self._clock.wall()
        self._seen = {key: at for key, at in self._seen.items() if now - at < timedelta(days=1)}
        found = [
            Presence(account_id, worker_id, self._is_waiting(account_id, worker_id), last_seen)
            for (account_id, worker_id), last_seen in self._seen.items()
        ]
        return sorted(found, key=lambda presence: presence.last_seen, reverse=True)

    def _is_waiting(self, account_id: UUID, worker_id: UUID) -> bool:
        account = self._accounts.get(account_id)
        return account is not None and worker_id in account.waiters

    def _has_ended(self, waiter: _Waiter) -> bool:
        return self._is_stopped or waiter.is_replaced

    def _enter(self, account: _Account, worker_id: UUID) -> _Waiter:
        older = account.waiters.get(worker_id)
        if older is not None:
            older.is_replaced = True
            older.woken.set()
        account.waiters[worker_id] = waiter = _Waiter()
        self.saw(account.id, worker_id)
        return waiter

    def _on_signal(self, signal: Signal) -> None:
        account = self._account_of(signal)
        if account is None:
            return
        boot = None if signal.deadline is None else self._time.boot_at(to_microseconds(signal.deadline))
        if boot is None:
            account.is_dirty = True
        else:
            account.hint = boot if account.hint is None else min(account.hint, boot)
        account.wake()

    def _on_unclear(self, messages: Sequence[object], _xid: int) -> None:
        for message in messages:
            account = self._account_of(message) if isinstance(message, Signal) else None
            if account is not None:
                account.is_dirty = True
                account.again += [self._boot() + later for later in UNCLEAR_AGAIN]
                account.wake()

    def _on_missed(self, _: Missed) -> None:
        self._read_all_anew()

    def _notice_jump(self) -> None:
        """The host's clock was set, and the database's on the same host with it: what is due when must be
        found out anew."""
        distance = self._wall_distance()
        if abs(distance - self._distance) >= JUMP:
            self._read_all_anew()
        self._distance = distance

    def _wall_distance(self) -> int:
        return to_microseconds(self._clock.wall()) - self._boot()

    def _read_all_anew(self) -> None:
        for account in self._accounts.values():
            account.is_dirty = True
            account.wake()

    def _account_of(self, signal: Signal) -> _Account | None:
        if not signal.owner.startswith(WORK_PREFIX):
            return None
        return self._accounts.get(UUID(signal.owner.removeprefix(WORK_PREFIX)))

    async def _refresh(self, account: _Account) -> None:
        """Read the account again when something said so; waiters of one account share the read."""
        if not self._needs_reading(account):
            return
        async with account.reading:
            if not self._needs_reading(account):
                return
            # What was signalled before is committed and will be seen; what comes now must outlive the read.
            boot = self._boot()
            account.is_dirty = False
            account.hint = None
            account.again = [moment for moment in account.again if moment > boot]
            known = account.entries
            try:
                account.entries, account.is_shut = await self._read(account.id)
            except BaseException:
                account.is_dirty = True
                raise
            account.offers = {
                key: offer
                for key, offer in account.offers.items()
                if key in account.entries and account.entries[key].moments == known[key].moments
            }
            account.wake()

    def _needs_reading(self, account: _Account) -> bool:
        boot = self._boot()
        return (
            account.is_dirty
            or any(moment <= boot for moment in _moments(account))
            or any(self._is_over(entry.blocked_until, boot) for entry in account.entries.values())
        )

    def _is_over(self, moment: int | None, boot: int) -> bool:
        """A block is over: it may have been prolonged meanwhile, so only a read says whether it is gone."""
        if moment is None:
            return False
        over_at = self._time.boot_at(moment)
        return over_at is not None and over_at <= boot

    async def _read(self, account_id: UUID) -> tuple[dict[Key, _Entry], bool]:
        """The account's entries, and whether it is shut."""
        before = self._clock.boot()
        rows = await self._db.pool.fetch(_CONNECTIONS, account_id)
        if not rows:
            return {}, True
        self._time.observe(rows[0]["now"], before, self._clock.boot())
        blocks = {(row["club_id"], row["id"]): row["blocked_until"] for row in rows if row["id"] is not None}
        moments: dict[Key, dict[int, int]] = {}
        if blocks:
            for number, source in enumerate(self._sources):
                for ready in await source.ready(account_id):
                    of_all = moments.setdefault((ready.club_id, ready.connection_id), {})
                    of_all[number] = to_microseconds(ready.ready_at)
        now = rows[0]["now"]
        entries = {
            key: _Entry(
                min(moments[key].values()),
                to_microseconds(until) if until and until > now else None,
                moments[key],
            )
            for key, until in blocks.items()
            if key in moments
        }
        return entries, not blocks

    def _take_due(self, account: _Account, room: int) -> list[Due]:
        boot = self._boot()
        due: list[Due] = []
        for key, entry in sorted(account.entries.items(), key=lambda item: item[1].ready_at):
            if len(due) == room:
                break
            if self._due_at(account, key, entry) > boot:
                continue
            offer = account.offers.get(key)
            count = offer.count + 1 if offer is not None and offer.ready_at == entry.ready_at else 0
            pause = min(SECOND << min(count, 10), OFFER_PAUSE_MOST)
            account.offers[key] = _Offer(entry.ready_at, count, boot + pause)
            due.append(Due(*key))
        return due

    def _due_at(self, account: _Account, key: Key, entry: _Entry) -> int:
        """Boot time from which the entry may be offered; for a blocked one, from which it must be read
        again."""
        at = self._time.boot_at(max(entry.ready_at, entry.blocked_until or 0)) or 0
        offer = account.offers.get(key)
        if offer is not None and offer.ready_at == entry.ready_at:
            return max(at, offer.again_at)
        return at

    def _next_moment(self, account: _Account, end: int) -> int:
        moments = [self._due_at(account, key, entry) for key, entry in account.entries.items()]
        return min([end, *moments, *_moments(account)])

    async def _sleep(self, waiter: _Waiter, until: int) -> None:
        delay = timedelta(microseconds=max(0, until - self._boot()))
        timer = asyncio.ensure_future(self._clock.sleep(delay))
        woken = asyncio.ensure_future(waiter.woken.wait())
        try:
            await asyncio.wait((timer, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()

    def _boot(self) -> int:
        return whole(self._clock.boot())


def _moments(account: _Account) -> list[int]:
    return account.again if account.hint is None else [account.hint, *account.again]
