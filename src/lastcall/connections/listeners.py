"""What must happen in the same transaction when this room changes something that higher rooms hang on.

``operations/`` registers here; ``app.py`` lists who does. Registering twice is once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from lastcall.db.transaction import Transaction


@dataclass(frozen=True)
class ReportedSubmission:
    """A submission whose intent is in the collector's journal. Ids are as the journal has them, not
    checked."""

    club_id: UUID
    connection_id: UUID
    operation_id: UUID
    nonce: str
    is_answered: bool


@dataclass(frozen=True)
class HelloFacts:
    """A collector process has started. ``submissions`` are all the open ones its journal knows, and the
    newest reported ones. An intact journal of the same id that does not list a submission proves it was
    never sent."""

    account_id: UUID
    worker_id: UUID
    journal_id: UUID
    is_journal_intact: bool
    submissions: Sequence[ReportedSubmission]


@dataclass(frozen=True)
class HelloFindings:
    """What a listener made of it. ``unknown``: submissions in the journal that the database does not have."""

    claims_returned: int = 0
    not_attempted: tuple[UUID, ...] = ()
    unknown: tuple[ReportedSubmission, ...] = ()


@dataclass(frozen=True)
class EpochEnd:
    """The connection is disconnected or starts a new epoch: unsent work of ``epoch`` must not go out."""

    club_id: UUID
    connection_id: UUID
    epoch: datetime
    reason: str


@dataclass(frozen=True)
class EpochBegin:
    """The club was connected anew."""

    club_id: UUID
    connection_id: UUID
    epoch: datetime


class Coverage(StrEnum):
    """What a club's aggregates are from a failure on, until they are observed again."""

    DEGRADED = "degraded"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TelemetryFailure:
    """Nothing was observed where something should have been, because of ``code``. ``unknown``: nobody can say what was
    missed, as the account is no member or another one takes over."""

    club_id: UUID
    connection_id: UUID
    epoch: datetime
    coverage: Coverage
    code: str


HelloListener: TypeAlias = Callable[[Transaction, HelloFacts], Awaitable[HelloFindings]]
EpochListener: TypeAlias = Callable[[Transaction, EpochEnd], Awaitable[None]]
BeginListener: TypeAlias = Callable[[Transaction, EpochBegin], Awaitable[None]]
TelemetryListener: TypeAlias = Callable[[Transaction, TelemetryFailure], Awaitable[None]]

_hello: list[HelloListener] = []
_epoch: list[EpochListener] = []
_begin: list[BeginListener] = []
_telemetry: list[TelemetryListener] = []


def on_hello(listener: HelloListener) -> None:
    """Call ``listener`` in the transaction of each hello. The gates of every connection that the facts name
    are held by then."""
    if listener not in _hello:
        _hello.append(listener)


def on_epoch_end(listener: EpochListener) -> None:
    """Call ``listener`` in each transaction that ends an epoch, before the connection changes and with its
    gate held."""
    if listener not in _epoch:
        _epoch.append(listener)


def on_epoch_begin(listener: BeginListener) -> None:
    """Call ``listener`` in each transaction that connects a club."""
    if listener not in _begin:
        _begin.append(listener)


def on_telemetry_failure(listener: TelemetryListener) -> None:
    """Call ``listener`` in each transaction that stops a connection's aggregates, after the connection changed and with
    its gate held; whether its analytics are on is for the listener to ask."""
    if listener not in _telemetry:
        _telemetry.append(listener)


async def hello_said(tx: Transaction, facts: HelloFacts) -> HelloFindings:
    """Ask every listener and add up what they found."""
    findings = [await listener(tx, facts) for listener in _hello]
    return HelloFindings(
        claims_returned=sum(found.claims_returned for found in findings),
        not_attempted=tuple(id_ for found in findings for id_ in found.not_attempted),
        unknown=tuple(reported for found in findings for reported in found.unknown),
    )


async def epoch_ends(tx: Transaction, end: EpochEnd) -> None:
    """Tell every listener."""
    for listener in _epoch:
        await listener(tx, end)


async def epoch_begins(tx: Transaction, begin: EpochBegin) -> None:
    """Tell every listener."""
    for listener in _begin:
        await listener(tx, begin)


async def telemetry_failed(tx: Transaction, failure: TelemetryFailure) -> None:
    """Tell every listener."""
    for listener in _telemetry:
        await listener(tx, failure)
