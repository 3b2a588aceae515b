"""Tells people by mail what did not end well: one mail a request, revision, outcome and recipient, tried once.

The first notice of a batch waits a minute for the others. The digest's row is the claim: it is committed before the
mail leaves, and no other process can write it. A process that ends in between leaves it, and then nobody sends that
mail again; after an hour the ledger of mail reads it as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import asyncpg

from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.poison import Candidate
from lastcall.mail.mailer import Mailer
from lastcall.mail.messages import Mail
from lastcall.operations.kinds import KINDS
from lastcall.operations.machine import State
from lastcall.operations.mails import ENDED_BADLY, ended_badly
from lastcall.people.preferences import wants_mail

POSTPONED = timedelta(hours=1)
"""How long a notice waits when nobody may be written to about it now: a permission may come back, a person may want
mail again."""
GIVEN_UP = timedelta(days=1)
"""How old a notice is when that is given up; it is still shown."""

_GROUP = """
    select n.request_id, n.revision, n.outcome, q.kind, c.name, c.slug
      from operation_notices n
      join operation_requests q on q.club_id = n.club_id and q.id = n.request_id
      join clubs c on c.id = n.club_id
     where n.club_id = $1 and n.id = $2 and n.mail_at is not null
"""
_RECIPIENTS = """
    select a.actor_id, a.notices, a.first_id, p.id as person_id, p.email
      from (select n.actor_id, count(*) as notices, (array_agg(n.id order by n.id))[1] as first_id
              from operation_notices n
             where n.club_id = $1 and n.request_id = $2 and n.revision = $3 and n.outcome = $4
               and n.mail_at is not null
             group by n.actor_id) as a
      left join people p on p.id = notice_recipient($1, a.actor_id, $5)
                        and p.blocked_at is null and p.email_verified_at is not null
     order by p.id, a.actor_id
"""
_CLAIM = """
    insert into operation_digests (club_id, id, request_id, revision, outcome, person_id)
    values ($1, $2, $3, $4, $5, $6)
        on conflict (club_id, request_id, revision, outcome, person_id) do nothing
"""
_TOLD = """
    update operation_notices n
       set mail_at = null, digest_id = d.id
      from operation_digests d
     where n.club_id = $1 and n.request_id = $2 and n.revision = $3 and n.outcome = $4
       and n.actor_id = any ($6::uuid[]) and n.mail_at is not null
       and d.club_id = n.club_id and d.request_id = n.request_id and d.revision = n.revision
       and d.outcome = n.outcome and d.person_id = $5
"""
_POSTPONE = """
    update operation_notices n
       set mail_at = case when n.created_at > lastcall_now() - $6::interval then lastcall_now() + $7::interval end
     where n.club_id = $1 and n.request_id = $2 and n.revision = $3 and n.outcome = $4
       and n.actor_id = any ($5::uuid[]) and n.mail_at is not null
"""
_SKIP = """
    update operation_notices n
       set mail_at = null
     where n.club_id = $1 and n.request_id = $2 and n.mail_at is not null
"""


@dataclass
class _Recipient:
    """One person, and under whose authority the operations stood of which they are told."""

    email: str
    first_id: UUID
    actor_ids: list[UUID] = field(default_factory=list)
    notices: int = 0


class NoticeMail(NotedWork):
    """Mails the notice that has waited longest: one step is one group of notices."""

    notes = Notes("operation_notices", "mail_at", only="n.mail_at is not null")

    def __init__(self, db: Database, mailer: Mailer) -> None:
        super().__init__(db)
        self._mailer = mailer

    async def step(self, candidate: Candidate) -> None:
        """Mail what belongs together with this notice, or put it off."""
        async with self._db.transaction() as tx:
            group = await tx.raw.fetchrow(_GROUP, candidate.club_id, candidate.id)
            if group is None:
                return
            if not self._mailer.is_configured:
                await tx.raw.execute(_SKIP, candidate.club_id, group["request_id"])
                return
            await self._tell(tx, candidate.club_id, group)

    async def _tell(self, tx: Transaction, club_id: UUID, group: asyncpg.Record) -> None:
        permission = KINDS[group["kind"]].permission
        key = (club_id, group["request_id"], group["revision"], group["outcome"])
        told: dict[UUID, _Recipient] = {}
        nobody: list[UUID] = []
        for row in await tx.raw.fetch(_RECIPIENTS, *key, permission.value):
            person_id = row["person_id"]
            if person_id is None or not await wants_mail(tx, person_id, ENDED_BADLY):
                nobody.append(row["actor_id"])
                continue
            one = told.setdefault(person_id, _Recipient(row["email"], row["first_id"]))
            one.actor_ids.append(row["actor_id"])
            one.notices += row["notices"]
        for person_id, one in told.items():
            digest_id = new_id()
            # The claim first: a process that is at the same digest waits here, and then it is not its own to send.
            tag = await tx.raw.execute(_CLAIM, club_id, digest_id, *key[1:], person_id)
            if tag == "INSERT 0 1":
                await self._mailer.post(tx, _mail(group, one), digest_id)
            await tx.raw.execute(_TOLD, *key, person_id, one.actor_ids)
        if nobody:
            await tx.raw.execute(_POSTPONE, *key, nobody, GIVEN_UP, POSTPONED)


def _mail(group: asyncpg.Record, one: _Recipient) -> Mail:
    action, batch = f"scheduled/{encode_id(one.first_id)}", f"requests/{encode_id(group['request_id'])}"
    place = action if one.notices == 1 else batch
    return ended_badly(one.email, group["name"], group["slug"], State(group["outcome"]), one.notices, place)
