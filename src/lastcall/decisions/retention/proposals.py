"""Proposals by agents to archive what nobody looks at any more: a decision that names exact versions (DEC-04).

Accepting is all or nothing. A proposal is refused when an item moved since it was made, or when the agent may no longer
make it or the person may not do it by hand; the decision then stays open with the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select

from lastcall.access.agents.policy import require_agent
from lastcall.access.agents.tables import Agent
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import club_unknown, require
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import decode_id, encode_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.decisions.questions.asking import Option, Question, ask_in
from lastcall.decisions.questions.tables import Decision
from lastcall.decisions.retention.controls import archived_by
from lastcall.decisions.retention.explain import AGEING, Explanation, explain
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.kinds import KINDS, kind_named
from lastcall.decisions.retention.write import ARCHIVED, change
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant

ARCHIVE_PROPOSAL = "archive_proposal"
MOST_PROPOSED = 100
REASON_MOST = 500
"""Characters."""
NEEDED = (AgentGrant.READ_INBOX, AgentGrant.PROPOSE_ARCHIVE)
ARCHIVE, LEAVE = "archive", "leave"
"""The options of such a decision."""
OPTIONS = (
    Option(ARCHIVE, "Archive all of them", "They stay undecided, and each can be brought back."),
    Option(LEAVE, "Leave them", "Nothing changes."),
)


@dataclass(frozen=True)
class Proposed:
    """An item, the version of its retention that the agent saw, and why it should go."""

    kind: Kind
    id: UUID
    version: int
    reason: str


class ArchiveProposal:
    """The action of such decisions: archives everything that was proposed, or nothing."""

    name = ARCHIVE_PROPOSAL

    async def lock(self, tx: Transaction, club_id: UUID, body: Mapping[str, Any], option: str) -> None:
        """The items, before the decision's own row."""
        if option == ARCHIVE:
            await lock_proposed(tx, club_id, body)

    async def apply(
        self,
        db: Database,
        decider: Actor,
        club_id: UUID,
        decision_id: UUID,
        body: Mapping[str, Any],
        option: str,
    ) -> dict[str, Any]:
        """Answers how many were archived."""
        if option != ARCHIVE:
            return {"archived": 0}
        async with db.transaction() as tx:
            agent_id = await tx.scalar(
                select(Decision.requested_by_agent_id).where(
                    Decision.club_id == club_id, Decision.id == decision_id
                )
            )
            await _accept(tx, decider, club_id, agent_id, body)
        return {"archived": len(body["items"])}


async def propose_archive(db: Database, agent: AgentActor, club_id: UUID, items: Sequence[Proposed]) -> UUID:
    """Ask staff to archive these items; answers the id of the decision. Needs ``read_inbox`` and ``propose_archive``.

    The same agent proposing the same versions for the same reasons is answered the decision that it made then,
    however that ended. Errors as for ``manifest``, ``require_agent`` and ``ask_in``.
    """
    if agent.club_id != club_id:
        raise club_unknown()
    async with db.transaction() as tx:
        for grant in NEEDED:
            await require_agent(tx, agent, grant)
        body = await manifest(tx, club_id, items)
        count = len(items)
        title = f"Archive {count} {'item' if count == 1 else 'items'} that nobody decided?"
        question = Question(title, OPTIONS, action=(ARCHIVE_PROPOSAL, body))
        return await ask_in(tx, agent, club_id, question, key=f"{ARCHIVE_PROPOSAL}:{body['sha256']}")


async def manifest(tx: Reader, club_id: UUID, items: Sequence[Proposed]) -> dict[str, Any]:
    """What is proposed, sorted, with exact versions and activity times, and its SHA-256.

    Raises ``Invalid`` for none, too many or the same item twice, for a reason that is too long and for an item that
    is not ageing; the kind's ``NotFound``; and ``Conflict`` for an item that moved since the agent saw it.
    """
    _check(items)
    found = await _explained(tx, club_id, items)
    now = await tx.scalar(select(NOW))
    entries = [_entry(item, _fit(item, found, now)) for item in items]
    entries.sort(key=lambda entry: (entry["kind"], entry["id"]))
    return {"items": entries, "sha256": _digest(club_id, entries)}


async def lock_proposed(tx: Transaction, club_id: UUID, body: Mapping[str, Any]) -> None:
    """Hold every item of a proposal, kind by kind and in the order of ids: before the decision's own row."""
    for kind, ids in _by_kind(body).items():
        item = kind.table.c
        await tx.execute(
            select(item.id)
            .where(item.club_id == club_id, item.id.in_(ids))
            .order_by(item.id)
            .with_for_update(key_share=True)
        )


async def _accept(
    tx: Transaction, actor: Actor, club_id: UUID, agent_id: UUID, body: Mapping[str, Any]
) -> None:
    """Archive all that was proposed, or raise. The items are locked already, and the club's gate is held.

    Raises ``Conflict``: ``archive_proposal_stale`` when an item moved or is decided or archived by now,
    ``archive_proposal_authority_changed`` when the agent lost what it needed or the person may not do it by hand.
    """
    if body["sha256"] != _digest(club_id, body["items"]):
        raise _stale()
    await _require_authority(tx, actor, club_id, agent_id, list(_by_kind(body)))
    entries = {decode_id(entry["id"]): entry for entry in body["items"]}
    for kind, ids in _by_kind(body).items():
        now = await explain(tx, club_id, kind, ids)
        for item_id in ids:
            entry, item = entries[item_id], now.get(item_id)
            if item is None or not _is_unmoved(entry, item):
                raise _stale()
    for kind, ids in _by_kind(body).items():
        for item_id in ids:
            seen = entries[item_id]["version"]
            decide = archived_by(actor, "accepted_proposal")
            await change(tx, actor, club_id, kind, item_id, ARCHIVED, decide, seen_version=seen)


def _is_unmoved(entry: Mapping[str, Any], item: Explanation) -> bool:
    return (
        item.status == item.kind.pending
        and item.retention.archived_at is None
        and not item.retention.keep
        and item.retention.version == entry["version"]
        and item.activity_at.isoformat() == entry["activityAt"]
    )


async def _require_authority(
    tx: Transaction, actor: Actor, club_id: UUID, agent_id: UUID, kinds: Sequence[Kind]
) -> None:
    agent = (
        await tx.execute(
            select(Agent.status, Agent.grants).where(Agent.club_id == club_id, Agent.id == agent_id)
        )
    ).one_or_none()
    if agent is None or agent.status == "blocked" or not {str(one) for one in NEEDED} <= set(agent.grants):
        raise _authority_changed("The agent that proposed this may no longer do so.")
    for kind in kinds:
        try:
            await kind.require_readable(tx, actor, club_id, scope=kind.scope)
            await require(tx, actor, club_id, Permission.MANAGE_RETENTION, scope=kind.scope)
        except LastcallError as refusal:
            raise _authority_changed("You may not archive all of these items.") from refusal


def _check(items: Sequence[Proposed]) -> None:
    if not 1 <= len(items) <= MOST_PROPOSED:
        raise Invalid(
            "items_out_of_range",
            f"Propose between one and {MOST_PROPOSED} items.",
            advice="Propose the rest afterwards.",
            field="items",
        )
    if len({item.id for item in items}) < len(items):
        raise Invalid("item_twice", "An item is proposed twice.", advice="Name each once.", field="items")
    if any(len(item.reason) > REASON_MOST for item in items):
        raise Invalid(
            "reason_too_long",
            f"A reason has at most {REASON_MOST} characters.",
            advice="Say it shorter.",
            field="items",
        )


async def _explained(tx: Reader, club_id: UUID, items: Sequence[Proposed]) -> dict[UUID, Explanation]:
    ids: dict[str, list[UUID]] = defaultdict(list)
    for item in items:
        ids[item.kind.name].append(item.id)
    found: dict[UUID, Explanation] = {}
    for name, of_kind in ids.items():
        found |= await explain(tx, club_id, KINDS[name], of_kind)
    return found


def _fit(item: Proposed, found: Mapping[UUID, Explanation], now: datetime) -> Explanation:
    one = found.get(item.id)
    if one is None:
        raise item.kind.unknown()
    if one.retention.version != item.version:
        raise _stale()
    # Where the club archives early, what has waited for half of its days has waited long.
    days = AGEING if one.retention_days is None else min(AGEING, timedelta(days=one.retention_days) / 2)
    is_open = one.status == item.kind.pending and one.retention.archived_at is None and not one.retention.keep
    if not is_open or now - one.idle_since < days:
        raise Invalid(
            "item_not_ageing",
            "Only what waits, is neither kept nor archived and has been idle long enough can be proposed.",
            advice="Leave this item out.",
            field="items",
        )
    return one


def _entry(item: Proposed, one: Explanation) -> dict[str, Any]:
    return {
        "kind": item.kind.name,
        "id": encode_id(item.id),
        "version": item.version,
        "activityAt": one.activity_at.isoformat(),
        "reason": item.reason,
    }


def _by_kind(body: Mapping[str, Any]) -> dict[Kind, list[UUID]]:
    """In the house's order of locks, which is that of ``KINDS``."""
    found: dict[Kind, list[UUID]] = {kind: [] for kind in KINDS.values()}
    for entry in body["items"]:
        found[kind_named(entry["kind"])].append(decode_id(entry["id"]))
    return {kind: sorted(ids) for kind, ids in found.items() if ids}


def _digest(club_id: UUID, entries: Sequence[Mapping[str, Any]]) -> str:
    told = json.dumps([str(club_id), *entries], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(told.encode()).hexdigest()


def _stale() -> Conflict:
    return Conflict(
        "archive_proposal_stale",
        "Something happened to an item of this proposal after it was made.",
        advice="Look at the items as they are now.",
    )


def _authority_changed(sentence: str) -> Conflict:
    return Conflict(
        "archive_proposal_authority_changed", sentence, advice="Let somebody decide who may do it by hand."
    )
