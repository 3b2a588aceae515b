"""What every file of worker routes is given, and how it answers."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from litestar import MediaType, Response

from lastcall.connections.keys import KeyRing
from lastcall.connections.work import WorkBoard
from lastcall.db.database import Database
from lastcall.operations.services.worker import WorkerSteps
from lastcall.protocol.messages import Message
from lastcall.reads.worker import ReadSteps

Answer = Response[bytes]


@dataclass(frozen=True)
class WorkerServices:
    """What the routes call. One a process: board, key ring and steps remember things."""

    db: Database
    keys: KeyRing
    board: WorkBoard
    steps: WorkerSteps
    reads: ReadSteps


def answer(message: Message) -> Answer:
    """The message as it goes over the wire; nothing on the way may keep it."""
    return Response(
        msgspec.json.encode(message), media_type=MediaType.JSON, headers={"Cache-Control": "no-store"}
    )
