"""Freeze 1 to 100 reviewed payloads as one request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clubs.activity import log
from lastcall.clubs.policy import Standing, require_staff
from lastcall.connections.signals import work
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict, Invalid, NotAllowed
from lastcall.operations.digest import request_digest
from lastcall.operations.kinds import kind_named
from lastcall.operations.kinds.kind import Kind, Payload, fields_of
from lastcall.operations.schedules import Schedule, due_time, late_at
from lastcall.operations.signals import LATE_PENDING, changed
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

MOST_PAYLOADS = 100
"""A request holds at most so many (ENQ-02)."""

_REQUEST_KEY = re.compile(r"[A-Za-z0-9_-]{8,100}")

_KNOWN = (
    "select id, created_by, digest, due_at from operation_requests where club_id = $1 and request_key = $2"
)
_IDS = "select id from operations where club_id = $1 and request_id = $2 order by position"
_SHUT_GATES = "select from connection_gates where club_id = $1 order by connection_id for share"
_CONNECTION = """
    select id, account_id, epoch, features, lastcall_now() as now
      from connections
     where club_id = $1 and state in ('active', 'degraded')
"""
_INSERT_REQUEST = """
    insert into operation_requests
           (club_id, id, request_key, kind, size, created_by, digest, schedule, due_at, created_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        on conflict (club_id, request_key) do nothing
"""
_INSERT_ROWS = """
    insert into operations
           (club_id, id, request_id, position, connection_id, epoch, kind, payload, target, schedule_kind,
            due_at, ready_at, lane, actor_id, created_at, grants)
    select $1, r.id, $2, r.position - 1, $3, $4, $5, r.payload, r.target, $6, $7, $7, $8, $9, $10, $14
      from unnest($11::uuid[], $12::jsonb[], $13::text[]) with ordinality as r (id, payload, target, position)
"""


@dataclass(frozen=True)
class Enqueued:
    """The operations of a request, in the order of its payloads. A replay gets the original ids and due
    time.
    """

    request_id: UUID
    operation_ids: tuple[UUID, ...]
    due_at: datetime
    is_replay: bool


@dataclass(frozen=True)
class _Asked:
    """A request whose form is right and whose asker may make it."""

    request_key: str
    kind: Kind[Any]
    payloads: list[Payload]
    schedule: Schedule
    digest: bytes


async def enqueue(
    db: Database,
    actor: Actor,
    club_id: UUID,
    request_key: str,
    payloads: Sequence[Mapping[str, Any]],
    schedule: Schedule,
) -> Enqueued:
    """Store the payloads for the club's connection, all or none, under the actor's authority.

    Each payload names its ``kind`` beside the fields of that kind. The same request again, by the same
    person, is answered with what it made the first time; under any other content its ``request_key`` is
    refused. Raises ``NotFound`` off the staff, ``NotAllowed``, ``Invalid`` with the field, or ``Conflict``.
    """
    _check_form(request_key, payloads)
    async with db.transaction() as tx:
        # ENQ-12: who lost the permission cannot read ids back by a replay.
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        asked = _check_authority(standing, request_key, payloads, schedule)
        known = await _replay(tx, actor, club_id, asked)
        if known is not None:
            return known
        connection = await _usable_connection(tx, club_id, asked)
        due_at = due_time(schedule, connection["now"])
        request_id = new_id()
        if not await _insert_request(tx, actor, club_id, request_id, asked, due_at, connection["now"]):
            # Somebody else was first with this request id, and is committed by now.
            known = await _replay(tx, actor, club_id, asked)
            if known is None:
                raise _already_used()
            return known
        ids = await _insert_rows(tx, actor, club_id, request_id, asked, due_at, connection)
        details = {"kind": asked.kind.name, "size": len(ids), "due_at": due_at.isoformat()}
        await log(tx, club_id, actor, "operations.enqueued", "operation_request", request_id, details)
        tx.publish(Signal(LATE_PENDING, late_at(due_at)))
        tx.publish(work(connection["account_id"], due_at))
        tx.publish(changed(club_id))
    return Enqueued(request_id, ids, due_at, is_replay=False)


def _check_form(request_key: str, payloads: Sequence[Mapping[str, Any]]) -> None:
    if _REQUEST_KEY.fullmatch(request_key) is None:
        raise Invalid(
            "request_id_invalid",
            "A request id has 8 to 100 letters, digits, hyphens or underscores.",
            field="requestId",
        )
    if not 1 <= len(payloads) <= MOST_PAYLOADS:
        raise Invalid(
            "payload_count",
            f"A request holds 1 to {MOST_PAYLOADS} actions; this one holds {len(payloads)}.",
            advice="Split it into several requests." if payloads else "Add at least one target.",
            field="payloads",
        )


def _check_authority(
    standing: Standing, request_key: str, payloads: Sequence[Mapping[str, Any]], schedule: Schedule
) -> _Asked:
    kinds = [kind_named(fields.get("kind"), f"payloads.{n}.kind") for n, fields in enumerate(payloads)]
    for kind in kinds:
        if not standing.holds(kind.permission):
            raise NotAllowed(
                "permission_missing",
                f"This needs the permission “{kind.permission.label}”, which none of your roles has.",
                advice="Ask the owner of the club for a role that has it.",
            )
    kind = kinds[0]
    if any(other is not kind for other in kinds) or (len(kinds) > 1 and not kind.is_bulk):
        raise Invalid(
            "bulk_refused",
            "Several at once must be of one kind, and bans need a confirmation each.",
            advice="Send them one by one.",
            field="payloads",
        )
    parsed = [_parse(kind, fields, f"payloads.{n}") for n, fields in enumerate(payloads)]
    _refuse_roles(standing, kind, parsed)
    _refuse_duplicates(kind, parsed)
    digest = request_digest(kind.name, [fields_of(payload) for payload in parsed], schedule)
    return _Asked(request_key, kind, parsed, schedule, digest)


def _parse(kind: Kind[Any], fields: Mapping[str, Any], where: str) -> Payload:
    payload: Payload = kind.parse({name: value for name, value in fields.items() if name != "kind"}, where)
    return payload


def _refuse_roles(standing: Standing, kind: Kind[Any], payloads: Sequence[Payload]) -> None:
    for n, payload in enumerate(payloads):
        if not all(standing.may_assign(role_id) for role_id in kind.role_ids(payload)):
            error = NotAllowed(
                "role_not_assignable",
                "None of your roles lets you assign this VRChat role.",
                advice="Ask the owner of the club to permit it for a role of yours.",
            )
            error.field = f"payloads.{n}.roleId"
            raise error


def _refuse_duplicates(kind: Kind[Any], payloads: Sequence[Payload]) -> None:
    seen: dict[str, int] = {}
    for n, payload in enumerate(payloads):
        first = seen.setdefault(kind.target(payload), n)
        if first != n:
            raise Invalid(
                "duplicate_recipient",
                "Duplicate recipient.",
                advice=f"Number {n + 1} is the same as number {first + 1}; remove one of them.",
                field=f"payloads.{n}.targetUserId",
            )


async def _replay(tx: Transaction, actor: Actor, club_id: UUID, asked: _Asked) -> Enqueued | None:
    row = await tx.raw.fetchrow(_KNOWN, club_id, asked.request_key)
    if row is None:
        return None
    if row["created_by"] != actor.person_id or row["digest"] != asked.digest:
        raise _already_used()
    ids = await tx.raw.fetch(_IDS, club_id, row["id"])
    return Enqueued(row["id"], tuple(each["id"] for each in ids), row["due_at"], is_replay=True)


def _already_used() -> Conflict:
    return Conflict(
        "request_id_used",
        "Request ID already used.",
        advice="Review the action again; that makes a new request id.",
    )


async def _usable_connection(tx: Transaction, club_id: UUID, asked: _Asked) -> asyncpg.Record:
    # With the gate held, an epoch that ends meanwhile either sees these rows or is seen here.
    await tx.raw.fetch(_SHUT_GATES, club_id)
    row: asyncpg.Record | None = await tx.raw.fetchrow(_CONNECTION, club_id)
    if row is None:
        raise Conflict(
            "connection_inactive",
            "The club has no active connection to its VRChat group.",
            advice="Look at the connection page first.",
        )
    if asked.kind.feature not in row["features"]:
        raise Conflict(
            "feature_disabled",
            f"“{asked.kind.feature.label}” is switched off for this club's connection.",
            advice="Switch it on at the connection page first.",
        )
    return row


async def _insert_request(
    tx: Transaction,
    actor: Actor,
    club_id: UUID,
    request_id: UUID,
    asked: _Asked,
    due_at: datetime,
    now: datetime,
) -> bool:
    tag = await tx.raw.execute(
        _INSERT_REQUEST,
        club_id,
        request_id,
        asked.request_key,
        asked.kind.name,
        len(asked.payloads),
        actor.person_id,
        asked.digest,
        msgspec.json.encode(asked.schedule.as_asked()).decode(),
        due_at,
        now,
    )
    return bool(tag == "INSERT 0 1")


async def _insert_rows(
    tx: Transaction,
    actor: Actor,
    club_id: UUID,
    request_id: UUID,
    asked: _Asked,
    due_at: datetime,
    connection: asyncpg.Record,
) -> tuple[UUID, ...]:
    ids = tuple(new_id() for _ in asked.payloads)
    await tx.raw.execute(
        _INSERT_ROWS,
        club_id,
        request_id,
        connection["id"],
        connection["epoch"],
        asked.kind.name,
        asked.schedule.kind,
        due_at,
        asked.kind.lane(len(ids)),
        actor.person_id,
        connection["now"],
        ids,
        [msgspec.json.encode(payload).decode() for payload in asked.payloads],
        [asked.kind.target(payload) for payload in asked.payloads],
        list(asked.kind.grants),
    )
    return ids
