"""A club in which things are asked: an owner, two who decide, somebody who may not, and an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.clubs.roles import RoleFields, create_role
from lastcall.clubs.service import add_club
from lastcall.clubs.staff import assign_role
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.decisions.approvals import asking
from lastcall.decisions.approvals.asking import Ask, Carried, Subject
from lastcall.decisions.effects import offer_effect
from lastcall.decisions.questions.asking import Option, Question
from lastcall.errors import Conflict, Invalid
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.service import add_person
from lastcall.testing.agents import let_in_agent

ANY = Ask("hire", "Hire a door host", "For the weekend.")
YES_NO = Question("Which night?", [Option("friday", "Friday"), Option("saturday", "Saturday", "Later.")])


@dataclass
class Desk:
    """Where it happens."""

    db: Database
    club_id: UUID
    owner: Actor
    decider: Actor
    second: Actor
    host: Actor
    agent: AgentActor
    decider_role: UUID

    async def ask(
        self, asker: Actor | AgentActor | None = None, ask: Ask = ANY, *, key: str | None = None
    ) -> UUID:
        """Something is asked, by the agent unless told."""
        return await asking.ask_approval(self.db, asker or self.agent, self.club_id, ask, key=key)

    async def row(self, approval_id: UUID) -> Any:
        return await self.db.pool.fetchrow(
            "select * from approvals where club_id = $1 and id = $2", self.club_id, approval_id
        )

    async def status(self, approval_id: UUID) -> str:
        return str((await self.row(approval_id))["status"])

    async def told(self) -> list[str]:
        """The kinds of what the agent was told, in order."""
        rows = await self.db.pool.fetch(
            "select kind from deliveries where agent_id = $1 order by created_at, id", self.agent.agent_id
        )
        return [row["kind"] for row in rows]

    async def logged(self) -> list[str]:
        rows = await self.db.pool.fetch(
            "select action from activity_log where club_id = $1"
            " and entity_type in ('approval', 'decision', 'agent_run') order by created_at, id",
            self.club_id,
        )
        return [row["action"] for row in rows]


async def person(db: Database, name: str) -> Actor:
    """Somebody who signed in just now."""
    person_id = await add_person(db, f"{name}@example.org", name.capitalize())
    return Actor(person_id, name.capitalize(), is_operator=False, is_recent=True)


async def make_desk(db: Database) -> Desk:
    owner, decider, second, host = [await person(db, n) for n in ("owner", "decider", "second", "host")]
    club_id = await add_club(db, None, "Desk", "desk", "UTC", owner.person_id)
    decides = (
        await create_role(
            db, owner, club_id, RoleFields("Decider", permissions=frozenset({Permission.DECIDE_APPROVALS}))
        )
    ).id
    bare = (await create_role(db, owner, club_id, RoleFields("Bare"))).id
    await assign_role(db, owner, club_id, decides, decider.person_id)
    await assign_role(db, owner, club_id, decides, second.person_id)
    await assign_role(db, owner, club_id, bare, host.person_id)
    agent, _ = await let_in_agent(db, club_id, owner.person_id, name="Porter")
    return Desk(db, club_id, owner, decider, second, host, agent, decides)


class Ledger:
    """An effect that writes down who approved; it refuses what says so."""

    name = "ledger"

    def validate(self, body: Mapping[str, Any]) -> None:
        if "line" not in body:
            raise Invalid("line_missing", "There is no line.", field="line")

    async def lock(self, tx: Transaction, club_id: UUID, body: Mapping[str, Any]) -> None:
        await tx.raw.execute("select from clubs where id = $1 for key share", club_id)

    async def apply(
        self,
        db: Database,
        approver: Actor,
        club_id: UUID,
        approval_id: UUID,
        body: Mapping[str, Any],
        reviewed: Mapping[str, Any],
    ) -> dict[str, Any]:
        async with db.transaction() as tx:
            await tx.raw.execute(
                "insert into directory (kind, key, club_id) values ('ledger', $1, $2)", body["line"], club_id
            )
        if body.get("refuse"):
            raise Conflict("ledger_closed", "The ledger is closed.")
        return {"line": body["line"]}


offer_effect(Ledger())


def carrying(line: str, **more: Any) -> Ask:
    return Ask("entry", "Write a line", effect=Carried("ledger", {"line": line, **more}))


def only_one(key: str) -> Ask:
    return Ask("hire", "Hire", subject=Subject("post", key, is_only_one=True))
