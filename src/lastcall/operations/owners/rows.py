"""Rows that an account holds: how the owners of expired claims and open submissions find them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import asyncpg

from lastcall.deadlines.due_rows import DueRows, Order
from lastcall.deadlines.owner import Position
from lastcall.deadlines.poison import Candidate


@dataclass(frozen=True, slots=True)
class ClaimCandidate(Candidate):
    """A row whose claim or submission ran out. ``position.time`` is the exact expiry that was seen."""

    nonce: UUID


class ClaimRows(DueRows):
    """Each is found with the claim that was seen."""

    def candidate(self, row: asyncpg.Record) -> ClaimCandidate:
        return ClaimCandidate(row["club_id"], row["id"], Position(row["time"], row["id"]), row["claim_nonce"])


def claim_order(state: str) -> Order:
    """Claimed or submitted rows by their expiry."""
    return Order("operations", "claim_expires_at", f"state = '{state}'", more=("claim_nonce",))
