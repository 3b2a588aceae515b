"""Sends mail after the answer: nobody who asks for one can tell from the time it takes whether it went out.

Each mail is tried at most once. Its row says *sending* before the mail server hears of it; a process that ends
in between leaves that row, and it reads as unknown (``states``). Nothing is read from the ledger to send, so
nothing polls, and a mail that waits in memory is lost with the process rather than sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import structlog

from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import TooFast, Unavailable
from lastcall.mail import ledger
from lastcall.mail.addresses import valid_address
from lastcall.mail.layout import Layout
from lastcall.mail.limits import admit_asker, admit_notice, admit_to_server
from lastcall.mail.messages import Mail
from lastcall.mail.server import MailServer
from lastcall.mail.smtp import Attempt, Outcome
from lastcall.mail.states import OVER_LIMIT, MailState

HANDS = 4
"""Mails that are handed over at the same time."""
WAITING = 1000
"""Mails that may wait in memory; what is asked for beyond that is dropped. The limits let fewer through an hour."""
DRAIN = timedelta(seconds=5)
"""How long a stop waits for what is under way."""

PREPARED = "prepared"
"""What the limit of an address counts everything as that ``prepare`` sends: its kind is not known before."""

Make = Callable[[Transaction], Awaitable[Mail | None]]
log = structlog.get_logger()


@dataclass(frozen=True)
class _Posted:
    """A mail whose row is committed."""

    mailer: Mailer
    mail: Mail
    id: UUID


@dataclass(frozen=True)
class _Prepared:
    to: str
    source: str | None
    make: Make


class Mailer:
    """One of these lives as long as the process. ``start`` before anything is sent, ``stop`` at the end."""

    def __init__(self, db: Database, server: MailServer | None, public_url: str) -> None:
        self._db = db
        self.server = server
        self._layout = Layout(server.sender, public_url) if server else None
        self._waiting: asyncio.Queue[_Posted | _Prepared] = asyncio.Queue()
        self._hands: list[asyncio.Task[None]] = []
        self._in_hand = 0
        db.bus.subscribe(_Posted, self._committed)

    @property
    def is_configured(self) -> bool:
        """Whether mail can be sent at all. Where it cannot, pages say whom to ask, and posting does nothing."""
        return self.server is not None

    @property
    def under_way(self) -> int:
        """Mails that wait in this process to be sent, or are being sent."""
        return self._waiting.qsize() + self._in_hand

    async def post(self, tx: Transaction, mail: Mail, mail_id: UUID | None = None) -> None:
        """Send ``mail`` once, after ``tx`` is committed, which the mail's row is part of: no commit, no mail.

        Raises ``Invalid`` for an address that mail is not sent to. Whether it goes out is for the ledger to say,
        and not for whoever asked; who keeps the ``mail_id`` finds it there.
        """
        if self._layout is not None:
            tx.publish(await self._begin(tx, self._layout, mail, mail_id or new_id()))

    def prepare(self, to: str, source: str | None, make: Make) -> None:
        """Later, and if the limits for ``to`` and ``source`` allow: call ``make`` and send what it answers.

        For requests whose answer must be the same for known and unknown addresses: all that differs happens in
        ``make``, which answers ``None`` when there is nothing to send. The mail's row is part of the transaction
        that ``make`` is given, so whoever it holds there is not erased between the two. Returns at once.
        """
        if self._layout is None:
            return
        if self._waiting.qsize() >= WAITING:
            log.warning("mail_dropped", reason="too many are waiting")
            return
        self._waiting.put_nowait(_Prepared(to, source, make))

    async def send_now(self, mail: Mail) -> Outcome:
        """Send one mail and wait for what becomes of it; limits do not count. For the host's command line.

        Raises ``Unavailable`` without a mail server and ``Invalid`` for a malformed address.
        """
        if self._layout is None:
            raise Unavailable(
                "mail_not_set_up",
                "This server has no mail server to hand mail to.",
                advice="Set LASTCALL_MAIL_URL and LASTCALL_MAIL_FROM.",
            )
        async with self._db.transaction() as tx:
            posted = await self._begin(tx, self._layout, mail, new_id())
        return await self._attempt(posted)

    async def start(self) -> None:
        """Begin to send. Hands without work wait, and ask the database nothing."""
        if self._layout is not None and not self._hands:
            self._hands = [asyncio.create_task(self._work(), name="mail") for _ in range(HANDS)]

    async def stop(self) -> None:
        """Finish what is under way, for ``DRAIN`` at most. What then still waits was certainly not sent."""
        hands, self._hands = self._hands, []
        if not hands:
            return
        try:
            async with asyncio.timeout(DRAIN.total_seconds()):
                await self._waiting.join()
        except TimeoutError:
            log.warning("mail_not_drained", waiting=self._waiting.qsize())
        for hand in hands:
            hand.cancel()
        await asyncio.gather(*hands, return_exceptions=True)
        while not self._waiting.empty():
            left = self._waiting.get_nowait()
            if isinstance(left, _Posted):
                await ledger.settle(self._db, left.id, Outcome(MailState.FAILED, "the server was stopped"))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Mailer]:
        """``start`` and ``stop`` around a block: for a command that posts."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    def _committed(self, posted: _Posted) -> None:
        if posted.mailer is self:
            self._waiting.put_nowait(posted)

    async def _work(self) -> None:
        while True:
            item = await self._waiting.get()
            self._in_hand += 1
            try:
                await (self._prepared(item) if isinstance(item, _Prepared) else self._posted(item))
            except Exception:
                # The database is away, or a room's ``make`` failed: the next mail may fare better.
                log.exception("mail_not_sent")
            finally:
                self._in_hand -= 1
                self._waiting.task_done()

    async def _prepared(self, item: _Prepared) -> None:
        assert self._layout is not None
        try:
            await admit_asker(self._db, item.to, item.source, PREPARED)
        except TooFast:
            log.info("mail_over_limit")
            return
        async with self._db.transaction() as tx:
            mail = await item.make(tx)
            if mail is None:
                return
            posted = await self._begin(tx, self._layout, mail, new_id())
        await self._hand_over(posted)

    async def _posted(self, posted: _Posted) -> None:
        mail = posted.mail
        try:
            if mail.is_security:
                await admit_notice(self._db, mail.to)
            else:
                await admit_asker(self._db, mail.to, mail.source, mail.kind)
        except TooFast:
            await self._refused(posted)
        else:
            await self._hand_over(posted)

    async def _begin(self, tx: Transaction, layout: Layout, mail: Mail, mail_id: UUID) -> _Posted:
        """Write the row of the one attempt into ``tx``."""
        posted = _Posted(self, replace(mail, to=valid_address(mail.to)), mail_id)
        # What cannot be sent stops the caller now.
        layout.render(posted.mail, posted.id, SYSTEM_CLOCK.wall())
        await ledger.begin(tx, posted.id, posted.mail.kind, posted.mail.to)
        return posted

    async def _hand_over(self, posted: _Posted) -> None:
        try:
            await admit_to_server(self._db, is_security=posted.mail.is_security)
        except TooFast:
            await self._refused(posted)
        else:
            await self._attempt(posted)

    async def _refused(self, posted: _Posted) -> None:
        log.info("mail_over_limit", kind=posted.mail.kind)
        await ledger.settle(self._db, posted.id, Outcome(MailState.FAILED, OVER_LIMIT))

    async def _attempt(self, posted: _Posted) -> Outcome:
        """The one attempt that the mail's row stands for."""
        assert self.server is not None
        assert self._layout is not None
        mail = posted.mail
        message = self._layout.render(mail, posted.id, SYSTEM_CLOCK.wall()).as_bytes()
        attempt = Attempt(self.server, mail.to, message)
        try:
            outcome = await attempt.make()
        except asyncio.CancelledError:
            await ledger.settle(self._db, posted.id, attempt.broken_off("the server was stopped"))
            raise
        log_it = log.info if outcome.state is MailState.SENT else log.warning
        log_it("mail", kind=mail.kind, mail=str(posted.id), state=outcome.state, error=outcome.error)
        await ledger.settle(self._db, posted.id, outcome)
        return outcome
