"""What an approval can do once it is approved. Lower rooms offer effects; approvals carry their names and bodies.

An effect that refuses, by raising one of the house's errors, refuses the approval: all that was done for it in that
transaction is undone, and the question stays open with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid
from lastcall.people.actor import Actor


class Effect(Protocol):
    """One kind of thing that approvals do. ``body`` is JSON that the effect alone understands."""

    @property
    def name(self) -> str:
        """What an approval calls it."""
        ...

    def validate(self, body: Mapping[str, Any]) -> None:
        """Raise ``Invalid`` for a body that could never be approved. Asked when the approval is made, and says nothing
        about who may approve it, nor about what may have changed by then."""
        ...

    async def lock(self, tx: Transaction, club_id: UUID, body: Mapping[str, Any]) -> None:
        """Take what must be held before the approval's own row, in the house's order of locks."""
        ...

    async def apply(
        self,
        db: Database,
        approver: Actor,
        club_id: UUID,
        approval_id: UUID,
        body: Mapping[str, Any],
        reviewed: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Do it under the approver's authority, in the transaction that the caller has open; answers what to keep with
        the decision.

        ``reviewed`` is what the approver confirmed beyond the body. It is called again when an approver repeats after
        an unclear answer, and must then do nothing new for the same ``approval_id``.
        """
        ...


_effects: dict[str, Effect] = {}


def offer_effect(effect: Effect) -> None:
    """Let approvals carry ``effect``. Offering it twice is once."""
    _effects[effect.name] = effect


def effect_named(name: str) -> Effect:
    """The effect of that name. Raises ``Invalid`` for one that nobody offers."""
    effect = _effects.get(name)
    if effect is None:
        raise Invalid(
            "effect_unknown",
            "An approval cannot do that.",
            advice=f"It can do one of these: {', '.join(sorted(_effects)) or 'nothing yet'}.",
            field="effect",
        )
    return effect
