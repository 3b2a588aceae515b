"""What an agent may do, judged inside the transaction that does it."""

from __future__ import annotations

from sqlalchemy import Row, select

from lastcall.access.agents.tables import Agent, AgentKey
from lastcall.clubs.gates import hold_gate
from lastcall.clubs.policy import Standing
from lastcall.clubs.tables import Club
from lastcall.db.clock import NOW
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, NotAllowed, NotFound, NotSignedIn
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant

AS_READER = Standing(is_owner=False, is_staff=True, permissions=frozenset(), provider_role_ids=frozenset())
"""How an agent stands where staff read: like one of them without any permission."""
LIVE_KEY = (AgentKey.revoked_at.is_(None), AgentKey.expires_at.is_(None) | (AgentKey.expires_at > NOW))
"""What makes a key one that is good: neither revoked nor replaced for longer than its overlap."""


async def require_agent(tx: Reader, agent: AgentActor, grant: AgentGrant | None = None) -> None:
    """Let the agent go on or raise. In a transaction this holds the club's gate ``FOR SHARE`` until it ends and
    looks in a new statement: who revokes, blocks, pauses or takes a grant away passes the gate too, so they come
    before this, and are seen, or after it has ended.

    Raises ``NotSignedIn`` for a key that is good no more and for a blocked agent, ``Conflict`` (``club_paused``,
    ``agent_paused``) while the club or the agent is paused, and ``NotAllowed`` without the ``grant``.
    """
    if isinstance(tx, Transaction):
        await hold_gate(tx, agent.club_id)
    found = await _found(tx, agent)
    if found.club_state == "paused":
        raise Conflict(
            "club_paused",
            "This club is paused, and its agents with it.",
            advice="Wait until its owner resumes it.",
        )
    if found.status == "paused":
        raise _paused(found.pause_reason)
    if grant is not None:
        _require_grant(found.grants, grant)


async def require_known_agent(tx: Reader, agent: AgentActor, grant: AgentGrant) -> None:
    """The same for what a paused agent may still do, and one whose club is paused: say what has happened. The caller
    holds the gate, or moved it.
    """
    _require_grant((await _found(tx, agent)).grants, grant)


def _require_grant(grants: list[str], grant: AgentGrant) -> None:
    if grant not in grants:
        raise NotAllowed(
            "grant_missing",
            f"This agent was not given “{grant}” ({grant.label}).",
            advice="Whoever manages the club's agents can give it.",
        )


async def _found(tx: Reader, agent: AgentActor) -> Row[tuple[str, str | None, list[str], str]]:
    found = await _look(tx, agent)
    if found is None:
        raise key_refused()
    return found


async def _look(tx: Reader, agent: AgentActor) -> Row[tuple[str, str | None, list[str], str]] | None:
    return (
        await tx.execute(
            select(Agent.status, Agent.pause_reason, Agent.grants, Club.state.label("club_state"))
            .join(AgentKey, (AgentKey.club_id == Agent.club_id) & (AgentKey.agent_id == Agent.id))
            .join(Club, Club.id == Agent.club_id)
            .where(
                Agent.club_id == agent.club_id,
                Agent.id == agent.agent_id,
                Agent.status != "blocked",
                AgentKey.id == agent.key_id,
                *LIVE_KEY,
                Club.state.in_(("active", "paused")),
            )
        )
    ).one_or_none()


def _paused(reason: str) -> Conflict:
    if reason == "budget":
        return Conflict(
            "agent_paused",
            "This agent has used up its budget.",
            advice="Wait until staff raise the budget or its next window begins.",
        )
    return Conflict("agent_paused", "Staff paused this agent.", advice="Wait until they resume it.")


def key_refused() -> NotSignedIn:
    """The one answer to a key that is unknown, revoked or replaced, whose agent is blocked or whose club goes on no
    more."""
    return NotSignedIn(
        "agent_key_refused",
        "This agent key is unknown, replaced or revoked.",
        advice="Whoever manages the club's agents can make a new one.",
    )


def agent_unknown() -> NotFound:
    """The one answer for an agent that is not there and for one of another club."""
    return NotFound("agent_unknown", "There is no such agent in this club.", advice="Load the list again.")
