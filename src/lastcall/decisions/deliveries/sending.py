"""Sends what is to leave the house: mail, and the channels that are registered.

A row is claimed before anything is sent, under its lock, so two processes cannot send it both. Mail keeps the house's
rule: the claim and the row of the one attempt in the ledger of mail are committed together, the ledger says what became
of it, and what may have left is never sent again. What certainly did not leave is tried again, eight times in all; what
a limit of mail held back waits until that limit begins anew, and this counts as none of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import asyncpg
import structlog

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.policy import standing
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.owner import describe
from lastcall.deadlines.paged import PagedOwner
from lastcall.deadlines.poison import Candidate
from lastcall.decisions.deliveries.channels import channel_of
from lastcall.decisions.deliveries.deliver import MAIL
from lastcall.decisions.deliveries.kinds import Told, Words, kind_of
from lastcall.decisions.deliveries.mails import message_mail
from lastcall.decisions.deliveries.signals import DEAD, DELIVERIES, SEND_TIMEOUT
from lastcall.errors import NotFound
from lastcall.mail.limits import PER_ADDRESS, WHOLE_SERVER
from lastcall.mail.mailer import Mailer
from lastcall.mail.states import OVER_LIMIT, UNKNOWN_AFTER, MailState
from lastcall.people.preferences import wants_mail

ATTEMPTS_MOST = 8
"""Attempts that come to nothing before a delivery is dead: the last is a good hour after the first."""
FIRST_PAUSE = timedelta(seconds=30)
"""Between the first two attempts; it doubles with each. The seventh and last pause is 32 minutes."""
LOOKED_AT_AFTER = timedelta(minutes=1)
"""When the ledger is asked what became of a mail: an attempt takes at most half of it."""
OVER_LIMIT_PAUSE = max(PER_ADDRESS.per, WHOLE_SERVER.per)
"""How long a mail waits that a limit held back: whichever it was, its window is over by then."""
STALE_AFTER = timedelta(minutes=5)
"""How long another channel's attempt may be without an outcome; its process has ended, and it is tried again."""

BROKEN_OFF = "the server ended while it was sent"

_HOLD = "select from deliveries where club_id = $1 and id = $2 for no key update"
_DUE = """
    select d.club_id, d.id, d.kind, d.channel, d.person_id, coalesce(d.approval_id, d.decision_id) as source_id,
           d.data, d.state, d.attempts, c.name as club, c.slug, p.email, p.email_verified_at is not null as is_verified,
           m.state as mail_state, m.error as mail_error, m.created_at + $3::interval > lastcall_now() as is_young,
           m.created_at + $3::interval as unknown_at
      from deliveries d
      join clubs c on c.id = d.club_id
      left join people p on p.id = d.person_id and p.blocked_at is null
      left join outgoing_mail m on m.id = d.mail_id
     where d.club_id = $1 and d.id = $2 and d.channel <> 'agent' and d.next_at <= lastcall_now()
"""
_CLAIM = """
    update deliveries
       set state = 'delivering', attempts = attempts + 1, next_at = lastcall_now() + $3::interval, mail_id = $4
     where club_id = $1 and id = $2 and state = 'pending'
"""
# Every end names the attempt that it is of: one that was settled otherwise meanwhile keeps what it has.
_AGAIN = """
    update deliveries
       set state = 'pending', next_at = lastcall_now() + $4::interval, last_error = $5
     where club_id = $1 and id = $2 and state = 'delivering' and attempts = $3
"""
_PUT_OFF = """
    update deliveries
       set state = 'pending', attempts = attempts - 1, next_at = lastcall_now() + $4::interval, last_error = $5
     where club_id = $1 and id = $2 and state = 'delivering' and attempts = $3
"""
_END = """
    update deliveries
       set state = $4, next_at = null, ended_at = lastcall_now(), last_error = $5
     where club_id = $1 and id = $2 and state in ('pending', 'delivering') and attempts = $3
"""
_LOOK_AGAIN = "update deliveries set next_at = $3 where club_id = $1 and id = $2 and state = 'delivering'"

log = structlog.get_logger()


@dataclass(frozen=True)
class _Letter:
    """What was claimed, to be sent by a channel; ``attempt`` is its number."""

    club_id: UUID
    id: UUID
    channel: str
    person_id: UUID
    attempt: int
    text: str
    path: str


def pause_after(attempts: int) -> timedelta:
    """How long the next attempt waits after so many."""
    return FIRST_PAUSE * (1 << (attempts - 1))


class Sending(NotedWork):
    """The parts that the paged owner asks for: one step is one delivery's next act."""

    notes = Notes("deliveries", "next_at", only="n.next_at is not null and n.channel <> 'agent'")

    def __init__(self, db: Database, mailer: Mailer) -> None:
        super().__init__(db)
        self._mailer = mailer

    async def step(self, candidate: Candidate) -> None:
        """Claim it and send it, or settle what an earlier attempt left."""
        async with self._db.transaction() as tx:
            await tx.raw.execute(_HOLD, candidate.club_id, candidate.id)
            row = await tx.raw.fetchrow(_DUE, candidate.club_id, candidate.id, UNKNOWN_AFTER)
            if row is None:
                return
            letter = await (self._settle(tx, row) if row["state"] == "delivering" else self._begin(tx, row))
        if letter is not None:
            await self._send(letter)

    async def _begin(self, tx: Transaction, row: asyncpg.Record) -> _Letter | None:
        """Claim it: from the commit on this process, and no other, makes the attempt."""
        words = await words_for(tx, row)
        if words is None:
            await _end(tx, row, "dropped", "they may not know of it any more")
            return None
        if row["channel"] == MAIL:
            await self._mail(tx, row, words)
            return None
        if channel_of(row["channel"]) is None:
            await _end(tx, row, "dropped", "this server does not have that channel")
            return None
        await tx.raw.execute(_CLAIM, row["club_id"], row["id"], STALE_AFTER, None)
        path = f"/c/{row['slug']}/{words.place}"
        return _Letter(
            row["club_id"],
            row["id"],
            row["channel"],
            row["person_id"],
            row["attempts"] + 1,
            words.sentence,
            path,
        )

    async def _mail(self, tx: Transaction, row: asyncpg.Record, words: Words) -> None:
        kind = kind_of(row["kind"])
        assert kind is not None
        if not self._mailer.is_configured:
            await _end(tx, row, "dropped", "this server sends no mail")
        elif not row["is_verified"] or not await wants_mail(tx, row["person_id"], kind.topic):
            await _end(tx, row, "dropped", "they do not want mail about this, or have no verified address")
        else:
            mail_id = new_id()
            await tx.raw.execute(_CLAIM, row["club_id"], row["id"], LOOKED_AT_AFTER, mail_id)
            await self._mailer.post(tx, message_mail(row["email"], row["kind"], row["slug"], words), mail_id)

    async def _settle(self, tx: Transaction, row: asyncpg.Record) -> None:
        """What became of the attempt whose time is over."""
        if row["channel"] != MAIL:
            await _failed(tx, row, BROKEN_OFF)
        elif row["mail_state"] == MailState.SENT:
            await _end(tx, row, "delivered", None)
        elif row["mail_state"] == MailState.FAILED and row["mail_error"] == OVER_LIMIT:
            key = (row["club_id"], row["id"], row["attempts"])
            await tx.raw.execute(_PUT_OFF, *key, OVER_LIMIT_PAUSE, OVER_LIMIT)
        elif row["mail_state"] == MailState.FAILED:
            await _failed(tx, row, row["mail_error"])
        elif row["mail_state"] == MailState.SENDING and row["is_young"]:
            await tx.raw.execute(_LOOK_AGAIN, row["club_id"], row["id"], row["unknown_at"])
        else:
            await _end(tx, row, "unknown", row["mail_error"] or BROKEN_OFF)

    async def _send(self, letter: _Letter) -> None:
        """The one attempt that the claim stands for."""
        channel = channel_of(letter.channel)
        key = {"club_id": letter.club_id, "id": letter.id, "attempts": letter.attempt}
        why: str | None = None
        try:
            assert channel is not None
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()):
                await channel.send(self._db, letter.club_id, letter.person_id, letter.text, letter.path)
        except NotFound as error:
            outcome, why = "dropped", describe(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, it costs only this attempt
            outcome, why = "failed", describe(error)
        else:
            outcome = "delivered"
        async with self._db.transaction() as tx:
            if outcome == "failed":
                await _failed(tx, key, why)
            else:
                await _end(tx, key, outcome, why)


async def words_for(tx: Reader, row: asyncpg.Record) -> Words | None:
    """What the message says to its recipient as they are in the club now; nothing when they may not know of it."""
    kind = kind_of(row["kind"])
    found = await standing(tx, row["club_id"], row["person_id"])
    if kind is None or not found.is_staff:
        return None
    return kind.say(Told(row["club"], row["source_id"], row["data"]), found)


async def _failed(tx: Transaction, row: asyncpg.Record | dict[str, object], why: str | None) -> None:
    """The attempt came to nothing and certainly did not arrive, or may be made twice: try again, or give up."""
    attempts = row["attempts"]
    assert isinstance(attempts, int)
    if attempts < ATTEMPTS_MOST:
        await tx.raw.execute(_AGAIN, row["club_id"], row["id"], attempts, pause_after(attempts), why)
    else:
        log.warning("delivery_dead", club=str(row["club_id"]), delivery=str(row["id"]), error=why)
        await _end(tx, row, "dead", why)


async def _end(tx: Transaction, row: asyncpg.Record | dict[str, object], state: str, why: str | None) -> None:
    club_id = row["club_id"]
    assert isinstance(club_id, UUID)
    await tx.raw.execute(_END, club_id, row["id"], row["attempts"], state, why)
    if state == "dead":
        tx.publish(Hint(club_id, DEAD))


def deliveries_owner(db: Database, mailer: Mailer, clock: Clock = SYSTEM_CLOCK) -> PagedOwner:
    """The owner to register with the scheduler."""
    return PagedOwner(DELIVERIES, Sending(db, mailer), clock)
