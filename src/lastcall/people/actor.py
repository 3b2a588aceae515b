"""Who acts: the first argument of every command."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Actor:
    """A person who is signed in and not blocked. What they may do in a club is asked of ``clubs.policy``."""

    person_id: UUID
    display_name: str
    is_operator: bool
