"""What choosing an option of a decision can do. A part that has such decisions offers its action here.

An action that refuses, by raising one of the house's errors, leaves the decision open with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid
from lastcall.people.actor import Actor


class Action(Protocol):
    """One kind of thing that decisions do. ``body`` is JSON that the action alone understands."""

    @property
    def name(self) -> str:
        """What a decision calls it."""
        ...

    async def lock(self, tx: Transaction, club_id: UUID, body: Mapping[str, Any], option: str) -> None:
        """Take what must be held before the decision's own row, in the house's order of locks."""
        ...

    async def apply(
        self,
        db: Database,
        decider: Actor,
        club_id: UUID,
        decision_id: UUID,
        body: Mapping[str, Any],
        option: str,
    ) -> dict[str, Any]:
        """Do what ``option`` means under the decider's authority, in the transaction that the caller has open; answers
        what to keep with the decision. Called once a decision: a repeated answer is given without it."""
        ...


_actions: dict[str, Action] = {}


def offer_action(action: Action) -> None:
    """Let decisions do ``action``. Offering it twice is once."""
    _actions[action.name] = action


def action_named(name: str) -> Action:
    """The action of that name. Raises ``Invalid`` for one that nobody offers."""
    action = _actions.get(name)
    if action is None:
        raise Invalid("action_unknown", "A decision cannot do that.", field="action")
    return action
