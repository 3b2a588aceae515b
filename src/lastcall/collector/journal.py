"""The journal: what this collector was about to send, what was answered, and what it has reported.

An *intent* is on the disk before the first byte of a write may leave; the *answer* before it is reported. So
after a crash the journal tells three cases apart: an answer (it is reported), an intent alone (the outcome
is unknown), and no intent (nothing was sent). The last one holds only for a journal that lost nothing, so a
journal whose end was torn off goes on under a new id, which says nothing about what came before it. So does
one whose folder was copied or restored from a backup: the original may know of writes that the copy does not.

The file is append-only, one record a line: the CRC-32 of the JSON in eight hex digits, a space, the JSON.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from lastcall.clock import Clock
from lastcall.collector.state import fresh_id, replace_durably, usable
from lastcall.errors import Invalid, Unavailable
from lastcall.protocol.constants import SUBMISSIONS_MOST
from lastcall.protocol.messages import ClaimRef, KnownSubmission
from lastcall.protocol.outcomes import Outcome

KNOWN_FOR = timedelta(minutes=10)
"""How long a reported submission is told to the server at hello: well past the life of an open one."""

FORGET_AFTER = 100
"""Submissions that may come on top before the old ones are looked for in memory again."""

NEWEST_OF_EACH_CONNECTION = 20
"""How many reported submissions of a connection are kept for ever: a database that went back in time lost the
newest ones, so these give it away."""


ROOM = 16 * 1024
"""Bytes that must fit after a record was refused: an intent, its answer and its report, with some to spare."""


class Opened(msgspec.Struct, frozen=True, tag_field="record", tag="opened"):
    """The first record: whose journal this is, and the inode of the folder that it was opened in."""

    journal_id: str
    folder: int = 0


class Intent(msgspec.Struct, frozen=True, tag_field="record", tag="intent"):
    """The write of this claim may go out from now on."""

    account_id: str
    claim: ClaimRef
    kind: str
    at: datetime


class Answer(msgspec.Struct, frozen=True, tag_field="record", tag="answer"):
    """How the write of this claim ended, as far as anyone here will ever know."""

    nonce: str
    outcome: Outcome
    code: str | None
    result: dict[str, str]
    at: datetime


class Reported(msgspec.Struct, frozen=True, tag_field="record", tag="reported"):
    """The server has taken, or finally refused, the report of this claim."""

    nonce: str


Record = Opened | Intent | Answer | Reported
_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


@dataclass
class Submission:
    """One authorized write, as far as the journal knows it."""

    intent: Intent
    answer: Answer | None = None
    is_reported: bool = False


class Journal:
    """The open journal of one state folder. Its folder's lock keeps other processes out.

    ``is_intact`` is false when its end had to be cut off at this start. Appends are durable when they
    return; they may be made from several tasks.
    """

    def __init__(
        self, path: Path, clock: Clock, journal_id: str, place: int, submissions: dict[str, Submission]
    ) -> None:
        self.path = path
        self.id = journal_id
        self._place = place
        self.is_intact = True
        self._clock = clock
        self._submissions = submissions
        self._mutex = threading.Lock()
        self._descriptor = -1
        self._size = 0
        self._is_broken = False
        self._has_refused = False
        self._forget_at = FORGET_AFTER

    @classmethod
    def open(cls, folder: Path, clock: Clock) -> Journal:
        """Read the journal in ``folder``, or start one. Raises ``Invalid`` when it is damaged in the middle."""
        path = folder / "journal"
        with usable(folder):
            content = path.read_bytes() if path.exists() else b""
            place = folder.stat().st_ino
        records, good = _read(path, content)
        is_intact = good == len(content)
        submissions = _replay(path, records[1:])
        first = records[0] if records else Opened(fresh_id())
        if not isinstance(first, Opened):
            raise _damaged(path, 0)
        keeps_id = is_intact and first.folder == place
        journal = cls(path, clock, first.journal_id if keeps_id else fresh_id(), place, submissions)
        journal.is_intact = is_intact
        journal._start_afresh()
        return journal

    # --- appending

    async def intend(self, account_id: str, claim: ClaimRef, kind: str) -> None:
        """Record the intent durably; only then may the write go out. Raises ``Unavailable`` and records
        nothing when the disk does not take it."""
        intent = Intent(account_id, claim, kind, self._clock.wall())
        self._submissions[claim.nonce] = Submission(intent)
        try:
            await asyncio.to_thread(self._append, intent)
        except Unavailable:
            del self._submissions[claim.nonce]
            raise

    async def answered(self, nonce: str, outcome: Outcome, code: str | None, result: dict[str, str]) -> None:
        """Record the outcome of an intended write. The outcome is kept in memory also when the disk fails."""
        answer = Answer(nonce, outcome, code, result, self._clock.wall())
        self._submissions[nonce].answer = answer
        await asyncio.to_thread(self._append, answer)

    async def reported(self, nonce: str) -> None:
        """Record that this submission needs no further report."""
        self._submissions[nonce].is_reported = True
        if len(self._submissions) >= self._forget_at:
            self._forget_what_is_old()
        await asyncio.to_thread(self._append, Reported(nonce))

    async def takes_intents(self) -> bool:
        """Whether an intent would be taken now. The disk is asked only after it refused a record: each claim
        that came that far would end as not sent, one after the other."""
        return not self._has_refused or await asyncio.to_thread(self._try_room)

    def _try_room(self) -> bool:
        with self._mutex:
            if self._is_broken:
                return False
            try:
                # No end of line: a crash before it is gone leaves a torn end, which proves nothing.
                _write_all(self._descriptor, b" " * ROOM)
                os.fsync(self._descriptor)
                os.ftruncate(self._descriptor, self._size)
            except OSError as error:
                self._take_back(error)
                return False
            self._has_refused = False
            return True

    def _append(self, record: Record) -> None:
        line = _line(record)
        with self._mutex:
            if self._is_broken:
                raise self._refusal(errno.EIO)
            try:
                _write_all(self._descriptor, line)
                os.fsync(self._descriptor)
            except OSError as error:
                self._has_refused = True
                self._take_back(error)
                raise self._refusal(error.errno or errno.EIO) from error
            self._size += len(line)

    def _take_back(self, error: OSError) -> None:
        """Cut off what a failed append left. After a failed fsync nothing is certain any more: no more appends."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self._is_broken = True
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            self._is_broken = True

    def _refusal(self, code: int) -> Unavailable:
        if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return Unavailable(
                "journal_full",
                f"The disk is full: the journal {self.path} cannot be written, so nothing is sent.",
                advice="Free some space; the collector goes on by itself.",
            )
        return Unavailable(
            "journal_failed",
            f"The journal {self.path} cannot be written ({os.strerror(code)}), so nothing is sent.",
            advice="Check the disk, then restart the collector.",
        )

    # --- compacting

    def _start_afresh(self) -> None:
        """Write the file anew with what has to be kept, in one step, and append to that."""
        self._forget_what_is_old()
        records: list[Record] = [Opened(self.id, self._place)]
        for entry in self._submissions.values():
            records.append(entry.intent)
            if entry.answer is not None:
                records.append(entry.answer)
            if entry.is_reported:
                records.append(Reported(entry.intent.claim.nonce))
        content = b"".join(_line(record) for record in records)
        try:
            replace_durably(self.path, content)
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise self._refusal(error.errno or errno.EIO) from error
        self._size = len(content)

    def _forget_what_is_old(self) -> None:
        """Keep, in order: every unreported submission, every recent one, the newest of each connection."""
        places = self._places()
        self._submissions = {
            nonce: entry
            for nonce, entry in self._submissions.items()
            if places[nonce] <= NEWEST_OF_EACH_CONNECTION
        }
        # It walks over all of them: not with each report of a process that serves hundreds of connections.
        self._forget_at = 2 * len(self._submissions) + FORGET_AFTER

    def _places(self) -> dict[str, int]:
        """The place of each submission among its connection's, the newest being 1, and before all of those 0: what is
        unreported or recent."""
        recent_from = self._clock.wall() - KNOWN_FOR
        seen: defaultdict[str, int] = defaultdict(int)
        places = {}
        for nonce, entry in reversed(self._submissions.items()):
            connection = entry.intent.claim.connection_id
            seen[connection] += 1
            is_old = entry.is_reported and entry.intent.at < recent_from
            places[nonce] = seen[connection] if is_old else 0
        return places

    # --- reading

    def unreported(self, account_id: str) -> list[Submission]:
        """What still has to be reported for this account, oldest first."""
        return [
            entry
            for entry in self._submissions.values()
            if entry.intent.account_id == account_id and not entry.is_reported
        ]

    def known(self, account_id: str) -> tuple[KnownSubmission, ...]:
        """What the server is told at hello: the submissions of this account that this journal vouches for.

        Where they are too many, the newest of every connection come before the second newest of any: one is enough to
        give away a database that went back in time.
        """
        self._forget_what_is_old()
        places = self._places()
        mine = [nonce for nonce in places if self._submissions[nonce].intent.account_id == account_id]
        told = set(sorted(mine, key=places.__getitem__)[:SUBMISSIONS_MOST])
        return tuple(
            KnownSubmission(
                club_id=entry.intent.claim.club_id,
                connection_id=entry.intent.claim.connection_id,
                operation_id=entry.intent.claim.operation_id,
                nonce=entry.intent.claim.nonce,
                is_answered=entry.answer is not None,
            )
            for nonce, entry in self._submissions.items()
            if nonce in told
        )

    def close(self) -> None:
        """Close the file. Nothing is lost: every append was durable when it returned."""
        with self._mutex:
            self._is_broken = True
            os.close(self._descriptor)


def _line(record: Record) -> bytes:
    body = msgspec.json.encode(record)
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _parse(line: bytes) -> Record | None:
    crc, space, body = line[:8], line[8:9], line[9:]
    if space != b" " or crc != b"%08x" % zlib.crc32(body):
        return None
    try:
        return _DECODER.decode(body)
    except msgspec.MsgspecError:
        return None


def _read(path: Path, content: bytes) -> tuple[list[Record], int]:
    """The records of ``content`` and the length of its good part.

    Damage at the end is what a crash leaves; damage with a good record after it is no crash and is refused.
    """
    records: list[Record] = []
    good = position = 0
    for line in content.split(b"\n")[:-1]:
        record = _parse(line)
        after = position + len(line) + 1
        if record is not None:
            if good != position:
                raise _damaged(path, good)
            records.append(record)
            good = after
        position = after
    return records, good


def _replay(path: Path, records: Iterable[Record]) -> dict[str, Submission]:
    submissions: dict[str, Submission] = {}
    for record in records:
        match record:
            case Intent():
                submissions[record.claim.nonce] = Submission(record)
            case Answer() if record.nonce in submissions:
                submissions[record.nonce].answer = record
            case Reported() if record.nonce in submissions:
                submissions[record.nonce].is_reported = True
            case _:
                raise _damaged(path, 0)
    return submissions


def _write_all(descriptor: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(descriptor, content[written:])


def _damaged(path: Path, position: int) -> Invalid:
    return Invalid(
        "journal_damaged",
        f"The journal {path} is damaged at byte {position}, with good records after that place.",
        advice="Move it away and start again; what it had not yet reported then ends as Outcome unknown.",
    )
