"""What can be known of an operation whose outcome is unknown, and what people found out about it.

Only what was read after the write's window was over can tell whether it happened: before that, it may have been still
on its way. What the collector itself reported of that very submission tells whenever it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from lastcall.clubs.policy import Standing
from lastcall.db.transaction import Reader
from lastcall.operations.queries import operation
from lastcall.operations.telling import Look, looks_of
from lastcall.people.actor import Actor


class Verdict(StrEnum):
    """What somebody found: that it happened, or that it was not seen although it would have been."""

    HAPPENED = "happened"
    NOT_SEEN = "not_seen"

    @property
    def label(self) -> str:
        """The word that pages show."""
        return {Verdict.HAPPENED: "Happened", Verdict.NOT_SEEN: "Not seen"}[self]


@dataclass(frozen=True)
class EvidenceItem:
    """One thing that was read or reported. ``ref`` names it when an operation is settled.

    ``is_telling``: it can be relied on; a read from before the end of the write's window cannot. ``names_target``:
    whether the operation's target is there by that read. ``label`` and ``said`` are the two in words. ``outcome`` and
    ``code`` are what a late result says.
    """

    ref: str
    kind: str
    observed_at: datetime
    is_telling: bool
    label: str
    names_target: bool | None = None
    said: str | None = None
    outcome: str | None = None
    code: str | None = None

    def as_kept(self) -> dict[str, Any]:
        """The copy that stays with the finding, because evidence itself is replaced by newer reads."""
        fields = {"kind": self.kind, "observedAt": self.observed_at.isoformat()}
        said = {
            "namesTarget": self.names_target,
            "said": self.said,
            "outcome": self.outcome,
            "code": self.code,
        }
        return {**fields, **{name: value for name, value in said.items() if value is not None}}


@dataclass(frozen=True)
class Finding:
    """One finding. ``evidence`` is what it relied on, as it was then."""

    number: int
    verdict: Verdict
    note: str
    evidence: Sequence[dict[str, Any]]
    settled_by_name: str
    settled_at: datetime


_EVIDENCE = """
    select e.kind || '/' || e.subject as ref, e.kind, e.observed_at, e.observed_at > o.claim_expires_at as is_telling,
           e.body::text as body, null as outcome, null as code
      from operations o
      join evidence e on e.club_id = o.club_id and e.connection_id = o.connection_id and e.epoch = o.epoch
     where o.club_id = $1 and o.id = $2 and e.kind = any ($3::text[]) and e.observed_at <= lastcall_now()
     union all
    select 'late_result', 'late_result', l.reported_at, true, null, l.outcome, l.code
      from late_results l
     where l.club_id = $1 and l.operation_id = $2
     order by 3 desc, 1
"""
_FINDINGS = """
    select s.number, s.verdict, s.note, s.evidence::text as evidence, p.display_name, s.settled_at
      from operation_findings s
      join people p on p.id = s.settled_by
     where s.club_id = $1 and s.operation_id = $2
     order by s.number
"""


async def evidence_of(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, operation_id: UUID
) -> list[EvidenceItem]:
    """What there is, the newest first, telling or not; nothing is read from VRChat for it. ``NotFound`` as for the
    operation itself.
    """
    row = await operation(tx, standing, actor, club_id, operation_id)
    looks = looks_of(standing, row.kind.name)
    rows = await tx.raw.fetch(_EVIDENCE, club_id, operation_id, list(looks))
    items = [_item(looks.get(found["kind"]), row.payload, dict(found)) for found in rows]
    return [item for item in items if item is not None]


def _item(look: Look | None, payload: dict[str, Any], found: dict[str, Any]) -> EvidenceItem | None:
    """None for a read about somebody else."""
    body = found.pop("body")
    if look is None:
        return EvidenceItem(**found, label="What its collector reported later")
    is_shown = look.shows(payload, msgspec.json.decode(body))
    if is_shown is None:
        return None
    return EvidenceItem(**found, label=look.label, names_target=is_shown, said=look.words(is_shown))


async def findings_of(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, operation_id: UUID
) -> list[Finding]:
    """The findings about an operation, the oldest first. ``NotFound`` as for the operation itself."""
    await operation(tx, standing, actor, club_id, operation_id)
    rows = await tx.raw.fetch(_FINDINGS, club_id, operation_id)
    return [
        Finding(
            number=row["number"],
            verdict=Verdict(row["verdict"]),
            note=row["note"],
            evidence=msgspec.json.decode(row["evidence"]),
            settled_by_name=row["display_name"],
            settled_at=row["settled_at"],
        )
        for row in rows
    ]
