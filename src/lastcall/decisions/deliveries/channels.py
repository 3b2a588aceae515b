"""The ways by which people are reached besides their pages and mail. A room that knows one registers it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from lastcall.db.database import Database
from lastcall.db.transaction import Reader


class Channel(Protocol):
    """A way to people that is not always there: whoever it does not reach has no delivery by it."""

    @property
    def name(self) -> str:
        """What the database calls it: ``slack``."""
        ...

    async def reaches(self, tx: Reader, club_id: UUID, person_ids: Collection[UUID]) -> Collection[UUID]:
        """Those of these people whom it reaches in this club now."""
        ...

    async def send(self, db: Database, club_id: UUID, person_id: UUID, text: str, path: str) -> None:
        """Say ``text`` to them, with a link to ``path`` of this server. Returns once it was taken.

        Raises ``NotFound`` for somebody whom it does not reach any more, and anything else when it may be tried again.
        Called outside of a transaction; it is cut off after ``SEND_TIMEOUT``, and tried again then too.
        """
        ...


_channels: dict[str, Channel] = {}


def register_channel(channel: Channel) -> None:
    """Reach people by ``channel`` too. Registering one anew replaces it."""
    _channels[channel.name] = channel


def channels() -> tuple[Channel, ...]:
    """Every registered channel."""
    return tuple(_channels.values())


def channel_of(name: str) -> Channel | None:
    """The registered channel of that name."""
    return _channels.get(name)
