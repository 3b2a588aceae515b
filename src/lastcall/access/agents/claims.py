"""The secret by which an agent claims its first key: given to it with its request, good once it is let in.

Nothing here is a fact of the candidate rule of retention, so nothing here signals (ACC-11).
"""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select

from lastcall.access.agents.keys import NewKey, make_key
from lastcall.access.agents.tables import Agent
from lastcall.access.policy import join_request_unknown
from lastcall.access.requests import Claim, write_claim
from lastcall.access.tables import JoinRequest
from lastcall.clubs.activity import log
from lastcall.clubs.gates import hold_gate
from lastcall.clubs.tables import Club
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, NotAllowed
from lastcall.people.actor import AgentActor
from lastcall.people.tokens import new_token, token_hash

PREFIX = "lcc_"  # by which a secret scanner knows one of ours
CLAIM_LIFE = timedelta(days=7)
"""From the approval, or from when staff renewed it: how long the secret is good."""
AGENTS_TOPIC = "agents"  # of the hints for live pages


def new_claim() -> tuple[str, bytes]:
    """A secret, which is shown once, and the hash that is stored of it."""
    secret = PREFIX + new_token()
    return secret, token_hash(secret)


async def claim_key(db: Database, club_id: UUID, request_id: UUID, secret: str) -> NewKey:
    """The first key of the agent that the request let in; the secret is used up. Creates no retention work and sends
    no signal (ACC-11).

    Raises ``NotFound`` for a request that no agent of this club made, ``NotAllowed`` for another secret than its
    last one and for one that ended (of a blocked agent, for one), and ``Conflict`` when it is not approved, was
    claimed already, when the secret is too old, and in a club that goes on no more.
    """
    async with db.transaction() as tx:
        await hold_gate(tx, club_id)
        await _lock(tx, club_id, request_id)
        asked = await _look(tx, club_id, request_id)
        _judge(asked, secret)
        await write_claim(tx, club_id, JoinRequest.id == request_id, {"claimed_at": NOW})
        made = await make_key(tx, club_id, asked.agent_id)
        claimer = AgentActor(made.agent_id, club_id, asked.name, made.key_id, frozenset())
        await log(tx, club_id, claimer, "agent.claimed", "agent", made.agent_id)
        tx.publish(Hint(club_id, AGENTS_TOPIC))
    return made


async def renew_claim_in(tx: Transaction, club_id: UUID, agent_id: UUID) -> str:
    """Give the agent's request a new secret in place of the one that nobody used, in the transaction of a caller who
    judged who may and moved the gate. Raises ``Conflict`` once it was claimed.
    """
    secret, hashed = new_claim()
    unclaimed = (JoinRequest.agent_id == agent_id) & JoinRequest.claimed_at.is_(None)
    anew: Claim = {"claim_secret_hash": hashed, "claim_expires_at": NOW + CLAIM_LIFE}
    renewed = await write_claim(tx, club_id, unclaimed, anew)
    if renewed is None:
        raise Conflict(
            "key_claimed", "This agent has claimed its first key.", advice="Make it a new key instead."
        )
    return secret


async def end_claim_in(tx: Transaction, club_id: UUID, agent_id: UUID) -> None:
    """The secret that nobody used is good no more. A caller who judged who may has moved the gate."""
    await write_claim(tx, club_id, JoinRequest.agent_id == agent_id, {"claim_secret_hash": None})


async def _lock(tx: Transaction, club_id: UUID, request_id: UUID) -> None:
    """Of two claims at once the second waits here and then finds the first's."""
    await tx.execute(
        select(JoinRequest.id)
        .where(JoinRequest.club_id == club_id, JoinRequest.id == request_id)
        .with_for_update(key_share=True)
    )


async def _look(tx: Reader, club_id: UUID, request_id: UUID) -> Row[Any]:
    asked = (
        await tx.execute(
            select(
                JoinRequest.status,
                JoinRequest.agent_id,
                JoinRequest.claim_secret_hash,
                JoinRequest.claimed_at,
                (JoinRequest.claim_expires_at <= NOW).label("is_expired"),
                Agent.name,
                Club.state.label("club_state"),
            )
            .join(Club, Club.id == JoinRequest.club_id)
            .outerjoin(Agent, (Agent.club_id == JoinRequest.club_id) & (Agent.id == JoinRequest.agent_id))
            .where(
                JoinRequest.club_id == club_id,
                JoinRequest.id == request_id,
                JoinRequest.subject_kind == "agent",
                Club.state != "deleting",
            )
        )
    ).one_or_none()
    if asked is None:
        raise join_request_unknown()
    return asked


def _judge(asked: Row[Any], secret: str) -> None:
    # Compared in constant time, before anything is told of the request.
    if not hmac.compare_digest(asked.claim_secret_hash or b"", token_hash(secret)):
        raise NotAllowed(
            "claim_secret_wrong",
            "This is not the claim secret of this request.",
            advice="Whoever manages the club's agents can make a new one.",
        )
    if asked.status == "pending_approval":
        raise Conflict("request_pending", "Nobody has decided this request yet.", advice="Ask again later.")
    if asked.agent_id is None:
        raise Conflict("request_decided", f"This request is {asked.status}.", fresh=asked.status)
    if asked.claimed_at is not None:
        raise Conflict(
            "key_claimed",
            "The key of this request was claimed already.",
            advice="If it was not you, tell whoever manages the club's agents to revoke it.",
        )
    if asked.is_expired:
        raise Conflict(
            "claim_expired",
            "This claim secret is too old.",
            advice="Whoever manages the club's agents can renew it.",
        )
    if asked.club_state == "archived":
        raise Conflict("club_inactive", "This club is archived.")
