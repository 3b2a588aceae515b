"""Starts the process that reads a calendar, and ends it when it takes too long or too much."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import datetime, timedelta

import msgspec
import structlog

from lastcall.errors import Invalid
from lastcall.events.imports.entries import DOCUMENT_CAP, Asked, Reading, Refusal

READING_TIME = timedelta(seconds=20)
"""For one calendar, the start of the process included. A megabyte takes about three seconds of one core."""
MEMORY_CAP = 1024 * 1024 * 1024
"""Bytes of address space that the process may take, where the system can say so."""
AT_ONCE = 2
"""Calendars that one server reads at the same time; more wait."""
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONTZPATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""What the process needs of this one's environment; secrets are not among it."""

log = structlog.get_logger()
_turns = asyncio.Semaphore(AT_ONCE)


async def read_calendar(
    document: bytes, zone: str, now: datetime, *, within: timedelta = READING_TIME
) -> Reading:
    """The dates in a calendar; times that name no zone are in ``zone``. Raises ``Invalid`` naming ``calendar`` for one
    that is too large, takes too long or is none."""
    if len(document) > DOCUMENT_CAP:
        raise unreadable(
            f"The calendar is larger than {DOCUMENT_CAP // 1024} KiB.",
            "Export fewer entries, for example those of the next year.",
        )
    asked = msgspec.json.encode(Asked(zone=zone, now=now)) + b"\n" + document
    async with _turns:
        answer = await _run(asked, within)
    read = msgspec.json.decode(answer, type=Reading | Refusal)
    if isinstance(read, Refusal):
        raise unreadable(read.sentence, read.advice)
    return read


async def _run(asked: bytes, within: timedelta) -> bytes:
    """What the process says. Raises ``Invalid`` when it was ended or ended without an answer."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "lastcall.events.imports.limited",
        str(int(within.total_seconds()) + 1),
        str(MEMORY_CAP),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: value for name in _ENVIRONMENT if (value := os.environ.get(name)) is not None},
    )
    answer = b""
    try:
        async with asyncio.timeout(within.total_seconds()):
            answer, _ = await process.communicate(asked)
    except TimeoutError:
        log.warning("reading a calendar took too long")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return answer
    log.warning("reading a calendar failed", returncode=process.returncode)
    if (process.returncode or 0) < 0:
        raise unreadable(
            "The calendar takes too long to read.",
            "Export fewer entries, and none that repeat without end at short intervals.",
        )
    raise unreadable("This is no calendar that can be read.", "Export it again, or with fewer entries.")


def unreadable(sentence: str, advice: str) -> Invalid:
    """The answer to a calendar that cannot be imported."""
    return Invalid("calendar_unreadable", sentence, advice=advice, field="calendar")
