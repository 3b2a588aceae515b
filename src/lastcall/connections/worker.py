"""Who calls: a collector process that proved its account's key, and the lease it says it holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True)
class Worker:
    """A worker whose key and VRChat user were verified. ``generation`` is its key's, checked again inside
    each transaction."""

    account_id: UUID
    generation: int
    worker_id: UUID
    vrchat_user_id: str

    @property
    def arguments(self) -> tuple[UUID, int, UUID]:
        """As the routines take it: ``p_account, p_generation, p_worker``."""
        return self.account_id, self.generation, self.worker_id


@dataclass(frozen=True)
class LeaseHeld:
    """The lease a worker names in a call. Nothing of it is believed before it was compared with the row."""

    club_id: UUID
    connection_id: UUID
    epoch: datetime
    fencing_token: int

    @property
    def arguments(self) -> tuple[UUID, UUID, datetime, int]:
        """As the routines take it: ``p_club, p_connection, p_epoch, p_token``."""
        return self.club_id, self.connection_id, self.epoch, self.fencing_token
