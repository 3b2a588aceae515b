"""Who acts: the first argument of every command."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from lastcall.errors import NotAllowed
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

STEP_UP_NEEDED = "step_up_needed"
"""The code with which a dangerous act is refused; pages answer it with the way to confirm."""


@dataclass(frozen=True)
class Actor:
    """A person who is signed in and not blocked. What they may do in a club is asked of ``clubs.policy``.

    ``session_id`` is the browser they use; ``is_recent`` says that they signed in or confirmed there at most
    ``sessions.RECENT`` ago. ``scopes`` is ``None`` in a browser, where a person does all they may; an API
    token's actor has a set, and ``token_id``, and is never recent.
    """

    person_id: UUID
    display_name: str
    is_operator: bool
    session_id: UUID | None = None
    is_recent: bool = False
    token_id: UUID | None = None
    scopes: frozenset[Scope] | None = None

    def has_scope(self, scope: Scope) -> bool:
        return self.scopes is None or scope in self.scopes

    def require_scope(self, scope: Scope) -> None:
        """Raise ``NotAllowed`` where an API token was not made for this."""
        if not self.has_scope(scope):
            raise NotAllowed(
                "scope_missing",
                f"This token was not made for this: it lacks the scope “{scope}” ({scope.label}).",
                advice="Make a token with that scope on your account's page.",
            )

    def require_recent(self) -> None:
        """Raise ``NotAllowed`` unless the person themself confirmed just now, in a browser."""
        if self.scopes is not None:
            raise NotAllowed(
                "browser_needed",
                "This is done by a person in a browser and not with an API token.",
                advice="Sign in and do it there.",
            )
        if not self.is_recent:
            raise NotAllowed(
                STEP_UP_NEEDED,
                "This needs you to confirm that it is you.",
                advice="Confirm, then do it within ten minutes.",
            )


@dataclass(frozen=True)
class AgentActor:
    """An agent of one club, known by a key that was good when its call began. ``grants`` are of that moment too:
    what it may do is asked of ``access.agents.policy`` in the transaction that does it.
    """

    agent_id: UUID
    club_id: UUID
    name: str
    key_id: UUID
    grants: frozenset[AgentGrant]


def require_operator(actor: Actor | None) -> None:
    """Raise ``NotAllowed`` unless the actor is an operator; ``None`` is the host's command line, which is one."""
    if actor is None:
        return
    if not actor.is_operator:
        raise NotAllowed("operators_only", "Only an operator may do this.", advice="Ask an operator.")
    actor.require_scope(Scope.OPERATOR)
