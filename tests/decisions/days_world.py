"""The real thing beside the model: a database, its scheduler, and one clock for both that leaps on."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from tests.decisions.conftest import Desk, Door
from tests.decisions.days_model import Item, Model

from lastcall.access.invites import InviteKind, create_invite
from lastcall.clubs.life import pause_club, resume_club
from lastcall.clubs.queries import read_settings
from lastcall.clubs.service import ClubFields, edit_club
from lastcall.db.connect import Connection, connect
from lastcall.db.database import Database
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention.controls import archive, keep, revive, unkeep
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.retention.refreshes import retention_refresh_owner
from lastcall.decisions.retention.sweep import retention_owner

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
USES = 100
ROUNDING = timedelta(microseconds=5)
"""A wake may be late by as much: a process reads its boot-time clock as a float."""
TURNS = 12
"""Of the event loop, after which a scheduler that was woken has begun what it will do."""

_SET = "update lastcall_testing.test_clock set anchor = $1, real_anchor = clock_timestamp(), rate = 0, \"offset\" = '0'"
_STORED = """
    select s.id, s.status in ('pending', 'pending_approval') as is_open, s.archive_due_at, s.is_archived,
           coalesce(r.keep, false) as keep, r.archived_at, coalesce(r.version, 0) as version,
           coalesce(r.archive_version, 0) as archives
      from {table} s left join retention r on r.club_id = s.club_id and r.id = s.id
"""


class LeapClock:
    """Stands still, and leaps: whoever should have woken on the way wakes at its end."""

    def __init__(self, start: datetime) -> None:
        self._start = self._now = start
        self._sleepers: list[tuple[datetime, asyncio.Future[None]]] = []

    def boot(self) -> float:
        return (self._now - self._start).total_seconds() + 1000

    def wall(self) -> datetime:
        return self._now

    async def sleep(self, delay: timedelta) -> None:
        if delay <= timedelta(0):
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + delay, future))
        await future

    def leap_to(self, moment: datetime) -> None:
        self._now = moment
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= moment]
        self._sleepers = [one for one in self._sleepers if one[0] > moment and not one[1].done()]
        for _, future in due:
            if not future.done():
                future.set_result(None)


class Days:
    """One club at which things happen, drawn from a seed, and the model of it."""

    def __init__(self, door: Door, raw: Connection, start: datetime, seed: int) -> None:
        self.db: Database = door.db
        self.doors = {"join_request": door, "approval": Desk(door.db, door.owner, door.club_id)}
        self.club_id, self.owner = door.club_id, door.owner
        self.model = Model(start)
        self.clock = LeapClock(start)
        self.random = Random(seed)
        self.did: Counter[str] = Counter()
        self._raw = raw
        self._scheduler: Scheduler | None = None
        self._invite: UUID | None = None
        self._uses = USES

    # Time.

    async def start(self) -> None:
        """A server process begins: all it knows comes from the rows."""
        owners = [retention_owner(self.db, kind, self.clock) for kind in KINDS.values()]
        self._scheduler = Scheduler(
            self.db, [*owners, retention_refresh_owner(self.db, self.clock)], self.clock
        )
        await self._scheduler.start()
        self.model.is_up = True
        await self.rest()

    async def stop(self) -> None:
        """The process ends; what was in hand is finished."""
        if self._scheduler is not None:
            await self._scheduler.stop()
            self.db.bus._handlers.clear()
            self.db.bus._unclear_handlers.clear()
        self._scheduler = None
        self.model.is_up = False

    async def rest(self) -> None:
        """Until the process has nothing to do at this moment."""
        if self._scheduler is None:
            return
        for _ in range(1000):
            for _ in range(TURNS):
                await asyncio.sleep(0)
            tasks = [lane.task for lane in self._scheduler._lanes.values() if lane.task is not None]
            if tasks:
                await asyncio.wait(tasks)
                continue
            wake = self._scheduler.earliest_wake()
            if wake is None or wake.delay > timedelta(0):
                return
        raise AssertionError("the scheduler does not come to rest")

    async def go_to(self, moment: datetime) -> None:
        """Time goes on, from one wake of the process to the next; the model says what that archives."""
        while self.clock.wall() < moment:
            wake = None if self._scheduler is None else self._scheduler.earliest_wake()
            await self._leap_to(moment if wake is None else min(moment, self.clock.wall() + wake.delay))
            await self.rest()
        self.did["archived by itself"] += self.model.go_to(moment)

    async def _leap_to(self, moment: datetime) -> None:
        await self._raw.execute(_SET, moment)
        self.clock.leap_to(moment)

    # What happens.

    async def day(self) -> None:
        """One day with whatever it brings."""
        end = self.clock.wall() + DAY
        count = self.random.choice((0, 0, 1, 1, 1, 2, 3))
        for moment in sorted(end - self.random.random() * DAY for _ in range(count)):
            await self.go_to(max(moment, self.clock.wall()))
            name = self.random.choices(list(ACTIONS), list(ACTIONS.values()))[0]
            await getattr(self, f"do_{name}")()
            await self.rest()
            self.did["archived by itself"] += self.model.go_to(self.clock.wall())
            self.did[name] += 1
        await self.go_to(max(end, self.clock.wall()))

    async def do_arrival(self) -> None:
        kind = self.random.choice(list(self.doors))
        now = self.clock.wall()
        activity_at = now - self.random.choice((0, 0, 0, 1)) * self.random.random() * 100 * DAY
        if kind == "join_request" and self._uses == USES:
            invite = await create_invite(
                self.db, self.owner, self.club_id, (), kind=InviteKind.AGENT, max_uses=USES
            )
            self._invite, self._uses = invite.id, 0
        self._uses += kind == "join_request"
        door = self.doors[kind]
        item_id = await door.waits(activity_at, self._invite if kind == "join_request" else None)
        self.model.items[item_id] = Item(item_id, kind, activity_at)

    async def do_activity(self) -> None:
        if item := self._pick(lambda _: True):
            await self.doors[item.kind].move(item.id)
            item.activity_at = max(item.activity_at, self.clock.wall())

    async def do_decision(self) -> None:
        if item := self._pick(lambda _: True):
            await self.doors[item.kind].decide(item.id)
            item.is_decided = True

    async def do_keep(self) -> None:
        if item := self._pick(lambda one: not one.is_kept):
            await self._control(keep, item)
            item.is_kept = True

    async def do_unkeep(self) -> None:
        if item := self._pick(lambda one: one.is_kept):
            await self._control(unkeep, item)
            item.is_kept = False

    async def do_archive(self) -> None:
        if item := self._pick(lambda one: one.archived_at is None):
            await self._control(archive, item)
            item.archived_at = self.clock.wall()
            item.archives += 1

    async def do_revive(self) -> None:
        if item := self._pick(lambda one: one.archived_at is not None):
            await self._control(revive, item)
            item.archived_at, item.revived_at = None, self.clock.wall()

    async def do_days(self) -> None:
        async with self.db.read() as tx:
            now = await read_settings(tx, self.club_id)
        days = self.random.choice([one for one in (7, 30, 90, 90, None) if one != self.model.days])
        fields = ClubFields(
            **{name: getattr(now, name) for name in ClubFields.__dataclass_fields__}
            | {"retention_days": days}
        )
        await edit_club(self.db, None, self.club_id, fields, now.updated_at)
        self.model.days = days

    async def do_pause(self) -> None:
        step = pause_club if self.model.is_active else resume_club
        await step(self.db, None, self.club_id)
        self.model.is_active = not self.model.is_active

    async def do_restart(self) -> None:
        """The process is stopped, at times in the middle of its work, and is away for up to two weeks."""
        assert self._scheduler is not None
        wake = self._scheduler.earliest_wake()
        if wake is not None and wake.delay < DAY and self.random.random() < 0.5:
            moment = self.clock.wall() + wake.delay
            await self._leap_to(moment)
            for _ in range(self.random.randrange(8)):
                await asyncio.sleep(0)
            await self.stop()
            await self.start()
            self.did["archived by itself"] += self.model.go_to(moment)
            return
        await self.stop()
        await self.go_to(self.clock.wall() + self.random.choice((0, 1, 14)) * self.random.random() * DAY)
        await self.start()

    async def do_failure(self) -> None:
        """The archive of some items fails for a while; an hour after that is over they are archived."""
        items = [one for one in self.model.items.values() if self.model.due_at(one) is not None]
        broken = self.random.sample(items, min(len(items), 3))
        if not broken:
            return
        await self.doors["approval"].break_row(*(one.id for one in broken))
        for one in broken:
            one.is_broken = True
        await self.go_to(self.clock.wall() + self.random.random() * 3 * DAY)
        await self.doors["approval"].repair_rows()
        repaired = self.clock.wall()
        waiting = [one for one in broken if (due := self.model.due_at(one)) is not None and due <= repaired]
        for one in set_right(broken, waiting):
            one.is_broken = False
        await self.go_to(repaired + HOUR)
        for one in waiting:
            stored = await self._raw.fetchval("select archived_at from retention where id = $1", one.id)
            assert stored is not None, "it was forgotten after it failed"
            assert repaired <= stored <= repaired + HOUR
            one.archived_at, one.is_broken = stored, False
            one.version += 1
            one.archives += 1
            self.did["archived after failing"] += 1

    async def _control(self, act: Any, item: Item) -> None:
        kind = KINDS[item.kind]
        view = await act(self.db, self.owner, self.club_id, kind, item.id, seen_version=item.version)
        item.version += 1
        assert view.version == item.version

    def _pick(self, suits: Any) -> Item | None:
        found = [one for one in list(self.model.items.values())[-80:] if not one.is_decided and suits(one)]
        return self.random.choice(found) if found else None

    # Whether both are one story.

    async def check(self) -> None:
        """Every row is where the model says. Its own deadline too, while a process is there to follow."""
        for kind in KINDS.values():
            rows = await self._raw.fetch(_STORED.format(table=kind.table.name))
            mine = {one.id: one for one in self.model.items.values() if one.kind == kind.name}
            assert {row["id"] for row in rows} == mine.keys()
            for row in rows:
                item = mine[row["id"]]
                self._agree(item, row["archived_at"])
                said = (
                    not item.is_decided,
                    item.is_kept,
                    item.archived_at,
                    item.version,
                    item.archives,
                    self.model.due_at(item),
                    item.archived_at is not None,
                )
                stored = (
                    row["is_open"],
                    row["keep"],
                    row["archived_at"],
                    row["version"],
                    row["archives"],
                    row["archive_due_at"],
                    row["is_archived"],
                )
                assert stored == said, f"{item} is stored as {dict(row)}"

    def _agree(self, item: Item, archived_at: datetime | None) -> None:
        """Take an archive's moment as it is stored, where it is no earlier than the model's and within the rounding."""
        if item.archived_at and archived_at and timedelta(0) <= archived_at - item.archived_at <= ROUNDING:
            item.archived_at = archived_at

    async def forget_the_past(self) -> None:
        """What is decided is checked and taken out, so that ten thousand days take no longer each than ten."""
        await self.check()
        past = [one for one in self.model.items.values() if one.is_decided or one.archived_at is not None]
        for one in past[:-40]:
            del self.model.items[one.id]
        gone = [one.id for one in past[:-40]]
        for kind in KINDS.values():
            await self._raw.execute(f"delete from {kind.table.name} where id = any ($1)", gone)
        await self._raw.execute("vacuum analyze")


def set_right(broken: list[Item], waiting: list[Item]) -> list[Item]:
    """Those that are archived at their own time again; the others when they are tried again."""
    return [one for one in broken if one not in waiting]


ACTIONS = {
    "arrival": 45,
    "activity": 8,
    "decision": 6,
    "keep": 6,
    "unkeep": 4,
    "archive": 4,
    "revive": 10,
    "days": 2,
    "pause": 3,
    "restart": 4,
    "failure": 3,
}


async def open_days(door: Door, seed: int) -> Days:
    """A world whose clock stands still at the present."""
    raw = await connect(door.db.url)
    now: datetime = await raw.fetchval("select date_trunc('milliseconds', lastcall_now())")
    await raw.execute(_SET, now)
    days = Days(door, raw, now, seed)
    await days.start()
    return days
