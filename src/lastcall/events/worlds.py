"""The worlds of an event, and when one of them may fill in a form (EVT-08)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

UNAMBIGUOUS_MOST = 20
"""With more links than this nothing is filled in (EVT-08)."""

_WORLD = re.compile(r"wrld_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Confirmation(StrEnum):
    """Whether somebody said that the event is in this world, or something only suggests it."""

    SUGGESTED = "suggested"
    CONFIRMED = "confirmed"


@dataclass(frozen=True)
class WorldView:
    """A link from an event to a world. ``world_id`` may be no world's id."""

    id: UUID
    world_id: str
    name: str
    confirmation: Confirmation


def is_world_id(text: str) -> bool:
    """Whether this has the form of a VRChat world's id."""
    return _WORLD.fullmatch(text) is not None


def prefilled(links: Sequence[WorldView]) -> str | None:
    """The world that a form begins with: of at most ``UNAMBIGUOUS_MOST`` links the one that is confirmed, where it is
    the only such and its id is valid."""
    if len(links) > UNAMBIGUOUS_MOST:
        return None
    confirmed = [link.world_id for link in links if link.confirmation is Confirmation.CONFIRMED]
    return confirmed[0] if len(confirmed) == 1 and is_world_id(confirmed[0]) else None
