"""What happens around operations: events, roles, features, switches, connections, collectors that begin anew, and what
ends or is gone through by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID, uuid4

import machine_ends as ends
import machine_pages as pages
from machine_collectors import Collectors
from machine_staff import Staff
from machine_stage import FEATURES, Collector, Handle
from machine_things import LEASE_LIFE, Club, Connection, Event, Lease, Op
from operations_world import ROLE

import lastcall.connections.connect as connecting
import lastcall.connections.switches as switches
import lastcall.events.services.write as writing
from lastcall.clubs.permissions import Permission
from lastcall.connections.hello import Journal, say_hello
from lastcall.connections.leases import release_lease, renew_lease, take_lease
from lastcall.connections.listeners import ReportedSubmission
from lastcall.connections.states import Feature
from lastcall.db.ids import encode_id
from lastcall.deadlines.poison import Candidate
from lastcall.events.fields import EventFields
from lastcall.events.queries import Publication
from lastcall.events.times import DateOnly, EventTime, Timed, TimeTba
from lastcall.operations.owners.claims import ExpiredClaims
from lastcall.operations.owners.epochs import EndedEpochs
from lastcall.operations.owners.fanout import Fanouts
from lastcall.operations.owners.lateness import Late
from lastcall.operations.owners.submissions import OpenSubmissions
from lastcall.operations.services.recover import recover
from lastcall.testing.staff import change_role

TIMELESS: tuple[EventTime, ...] = (TimeTba(), DateOnly(date(2030, 1, 3)))
OWNERS = ("claimed", "submitted", "late_pending", "late_claimed")
PAGE = 100


@dataclass(frozen=True)
class Found:
    """What an owner saw that was due, and has not come to yet. ``claims``: nonce and expiry of each, as they were."""

    owner: str
    rows: tuple[Candidate, ...]
    ops: tuple[tuple[Op, UUID | None, datetime | None], ...]


class Play(Staff, Collectors):
    """One example."""

    # Events.

    def _fields(self, time: EventTime) -> EventFields:
        return EventFields("Evening", time, "Europe/Berlin")

    async def new_event(self, club: Club, starts_at: datetime | None) -> Event:
        time = Timed(starts_at) if starts_at else TimeTba()
        made = await writing.create_event(
            self.db, self.stage.owner, club.id, self._fields(time), publication=Publication.PUBLISHED
        )
        event = Event(made.id, club, starts_at)
        self.model.events.append(event)
        self._did(club, "event.created")
        return event

    def _did(self, club: Club, action: str) -> None:
        self.model.did(club, action, self.model.owner_id)

    async def retime(self, event: Event, time: EventTime) -> None:
        starts_at = time.starts_at if isinstance(time, Timed) else None
        expected = "event_unknown" if event.is_removed else None
        code, _ = await self.refusal(
            writing.edit_event(
                self.db, self.stage.owner, event.club.id, event.id, self._fields(time), event.revision
            )
        )
        assert code == expected
        if code is not None:
            return
        before = event.starts_at
        event.starts_at = starts_at
        if before is not None and starts_at is None:
            event.losses += 1
        self._did(event.club, "event.edited")
        ends.change_event(self.model, event, stops=before is not None and before != starts_at)

    async def cancel_event(self, event: Event) -> None:
        code, _ = await self.refusal(writing.cancel_event(self.db, self.stage.owner, event.club.id, event.id))
        assert code == ("event_unknown" if event.is_removed else None)
        if code is None and not event.is_cancelled:
            event.is_cancelled = True
            event.cancels += 1
            self._did(event.club, "event.cancelled")
            ends.change_event(self.model, event, stops=True)

    async def reinstate_event(self, event: Event) -> None:
        code, _ = await self.refusal(
            writing.reinstate_event(self.db, self.stage.owner, event.club.id, event.id)
        )
        assert code == ("event_unknown" if event.is_removed else None)
        if code is None and event.is_cancelled:
            event.is_cancelled = False
            self._did(event.club, "event.reinstated")
            ends.change_event(self.model, event, stops=False)

    async def remove_event(self, event: Event) -> None:
        code, _ = await self.refusal(writing.remove_event(self.db, self.stage.owner, event.club.id, event.id))
        assert code == ("event_unknown" if event.is_removed else None)
        if code is None:
            event.is_removed = True
            event.cancels += 1
            self._did(event.club, "event.removed")
            ends.change_event(self.model, event, stops=True)

    # Who may.

    async def set_role(self, club: Club, permissions: frozenset[str], *, may_assign: bool) -> None:
        await change_role(
            self.db,
            self.stage.owner,
            club.id,
            club.role_id,
            permissions=[Permission(name) for name in permissions],
            provider_roles=[ROLE] if may_assign else [],
        )
        club.permissions, club.may_assign = permissions, may_assign
        self._did(club, "staff.role_edited")

    async def set_features(self, club: Club, features: frozenset[str]) -> None:
        connection = club.connection
        assert connection is not None
        chosen = [Feature(name) for name in features]
        await connecting.set_features(self.db, self.stage.owner, club.id, connection.id, chosen)
        connection.features = features
        self._did(club, "connection.features")

    async def switch_connection(self, club: Club, *, is_on: bool) -> None:
        connection = club.connection
        assert connection is not None
        await switches.set_connection_switch(self.db, self.stage.owner, club.id, connection.id, is_on=is_on)
        connection.is_switched_off = is_on
        self._did(club, "connection.kill_switch")

    async def switch_account(self, *, is_on: bool) -> None:
        await switches.set_account_switch(self.db, self.stage.owner, self.stage.account_id, is_on=is_on)
        self.model.is_account_off = is_on

    async def switch_fleet(self, *, is_on: bool) -> None:
        await switches.set_fleet_switch(self.db, self.stage.owner, is_on=is_on)
        self.model.is_fleet_off = is_on

    async def thaw(self, club: Club) -> None:
        connection = club.connection
        assert connection is not None
        await switches.thaw_connection(self.db, self.stage.owner, club.id, connection.id)
        connection.is_frozen = False
        self._did(club, "connection.thawed")

    async def disconnect(self, club: Club) -> None:
        connection = club.connection
        assert connection is not None
        await connecting.disconnect_club(self.db, self.stage.owner, club.id, connection.id)
        await connecting.finish_disconnect(self.db, self.stage.owner, club.id, connection.id)
        ends.disconnect(self.model, club, self.model.owner_id)

    async def connect(self, club: Club) -> None:
        connection_id = await connecting.connect_club(
            self.db,
            self.stage.owner,
            club.id,
            group_id=club.group_id,
            group_name="Group",
            account_id=self.stage.account_id,
            features=[Feature(name) for name in FEATURES],
        )
        club.connection = Connection(connection_id, club, self.model.now, FEATURES)
        # The account is a member already; nothing may go out where it cannot look.
        await self.db.pool.execute(
            "update connections set state = 'active', next_look_at = null where id = $1", connection_id
        )
        self._did(club, "connection.connected")

    # Leases, and collectors that begin anew.

    async def take_lease(self, collector: Collector, connection: Connection) -> Lease | None:
        held = connection.lease
        expected = self.model.obstacle(connection)
        if connection.is_over:
            expected = "connection_unknown"
        elif expected is None and held is not None and held.worker_id != collector.id:
            expected = None if held.is_released or held.expires_at <= self.model.now else "held"
        code, given = await self.refusal(
            take_lease(self.db, self.worker(collector), connection.club.id, connection.id)
        )
        assert code == expected
        if given is None:
            return None
        assert given.fencing_token == connection.lease_generation + 1
        return self.leased(collector, connection, given.fencing_token)

    async def renew_lease(self, collector: Collector, lease: Lease) -> None:
        expected = (
            "stale_lease" if not self.model.is_current(lease) else self.model.obstacle(lease.connection)
        )
        code, _ = await self.refusal(renew_lease(self.db, self.worker(collector), self.lease_held(lease)))
        assert code == expected
        if code is None:
            lease.expires_at = self.model.now + LEASE_LIFE

    async def release_lease(self, collector: Collector, lease: Lease) -> None:
        expected = None if self.model.is_current(lease) else "stale_lease"
        code, _ = await self.refusal(release_lease(self.db, self.worker(collector), self.lease_held(lease)))
        assert code == expected
        if code is None:
            lease.is_released = True

    async def hello(
        self, collector: Collector, known: frozenset[UUID], *, is_intact: bool, strange: Op | None = None
    ) -> None:
        """The collector begins anew; its journal knows the submissions of these nonces, and perhaps one that no
        database has authorized."""
        reported = [
            ReportedSubmission(
                handle.lease.connection.club.id,
                handle.lease.connection.id,
                handle.op.id,
                encode_id(handle.claim.nonce),
                is_answered=False,
            )
            for handle in self.handles
            if handle.claim.nonce in known and handle.op.submitted_at and handle.op.claim == handle.claim
        ]
        if strange is not None:
            place = strange.connection
            unknown = ReportedSubmission(
                place.club.id, place.id, strange.id, encode_id(uuid4()), is_answered=False
            )
            reported.append(unknown)
        journal = Journal(collector.journal_id, is_intact, reported)
        code, _ = await self.refusal(say_hello(self.db, self.worker(collector), journal, "1.0"))
        assert code == self.model.account_obstacle()
        if code is not None:
            return
        connections = [op.connection for op in self.model.ops.values()]
        connections += [club.connection for club in self.model.clubs if club.connection is not None]
        ends.hello(self.model, connections, collector.id, collector.journal_id, known if is_intact else None)
        if strange is not None and not strange.connection.is_frozen:
            strange.connection.is_frozen = True
            self.model.did(strange.connection.club, "connection.frozen", None)

    # What ends by itself, and what follows a change.

    def _source(self, owner: str) -> ExpiredClaims | OpenSubmissions | Late:
        match owner:
            case "claimed":
                return ExpiredClaims(self.db)
            case "submitted":
                return OpenSubmissions(self.db)
            case "late_pending":
                return Late(self.db, "pending")
            case _:
                return Late(self.db, "claimed")

    def due(self, owner: str) -> list[Op]:
        """What the model says is due for that owner."""
        state = owner.removeprefix("late_")
        late = owner.startswith("late_")
        return [
            op
            for op in self.model.ops.values()
            if op.state == state
            and (
                self.model.is_late(op.due)
                if late
                else op.expires is not None and op.expires <= self.model.now
            )
        ]

    async def look(self, owner: str) -> Found | None:
        """What the owner finds due: just what the model does."""
        source = self._source(owner)
        upto = await source.boundary()
        rows = () if upto is None else tuple(await source.page(None, upto, PAGE))
        due = self.due(owner)
        assert {row.id for row in rows} == {op.id for op in due}
        if not rows:
            return None
        return Found(owner, rows, tuple((op, op.claim.nonce if op.claim else None, op.expires) for op in due))

    async def settle(self, found: Found) -> None:
        """What was found is settled, whatever became of it since."""
        source = self._source(found.owner)
        if isinstance(source, Late):
            await source.settle(found.rows)
            ends.miss(self.model, [op for op, _, _ in found.ops])
            return
        for row in found.rows:
            await source.settle(row)
        step = ends.expire if found.owner == "claimed" else ends.recover
        for op, nonce, expires in found.ops:
            assert nonce is not None
            assert expires is not None
            step(self.model, op, nonce, expires)

    async def recover_by_hand(self, handle: Handle, expires_at: datetime) -> None:
        """Somebody on the host says that the outcome of this submission is unknown."""
        op, nonce = handle.op, handle.claim.nonce
        expected = None
        if op.state != "submitted":
            expected = "operation_not_submitted"
        elif op.claim != handle.claim or op.expires != expires_at:
            expected = "submission_other"
        elif expires_at > self.model.now:
            expected = "submission_window_open"
        code, _ = await self.refusal(recover(self.db, op.id, nonce, expires_at))
        assert code == expected
        if code is None:
            ends.recover(self.model, op, nonce, expires_at)
            self.model.did(op.connection.club, "operation.recovered", None)

    async def fan_out(self) -> bool:
        """A page of the first note; whether there was one."""
        notes = Fanouts(self.db)
        first = await notes.first(None)
        assert (first is None) == (not self.model.notes)
        if first is None:
            return False
        await notes.step(first)
        pages.fan_out(self.model)
        return True

    async def clean_up(self) -> bool:
        """A page of the epoch that ended first; whether there was one."""
        ended = EndedEpochs(self.db)
        first = await ended.first(None)
        assert (first is None) == (not self.model.ended)
        if first is None:
            return False
        await ended.step(first)
        pages.clean_up(self.model)
        return True
