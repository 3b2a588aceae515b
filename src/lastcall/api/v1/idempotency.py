"""Creating calls that may be sent again: the same key and the same call are answered with what was made.

Key, service and answer are one transaction. Two same calls at once: the second waits for the first one's
transaction and then reads its answer. A crash in between leaves nothing, neither key nor what was created, so
that the next try runs. What was refused leaves nothing either: a key names something that exists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import msgspec
from litestar.params import HeaderParameter

from lastcall.api.v1.requests import ApiRequest
from lastcall.api.v1.shapes import Input, Shape
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict
from lastcall.people.actor import Actor

KEY_LIFE = timedelta(hours=24)
"""How long a key is known; after that it is a new one."""

SWEPT = 10
"""Keys past their life that each new one removes: the table shrinks to what is in use, and nobody scans it."""

Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=8,
        max_length=128,
        pattern=r"^[A-Za-z0-9_-]+$",
        description=(
            "Makes it safe to send this again: within 24 hours the same key and body are answered with what was "
            "made the first time."
        ),
    ),
]
Answer = TypeVar("Answer", bound=Shape)

_SWEEP = """
    delete from idempotency_keys where (person_id, key) in (
        select person_id, key from idempotency_keys
         where created_at <= (select lastcall_now()) - $1::interval and (person_id, key) <> ($2, $3)
         order by created_at limit $4 for update skip locked)
"""
# The key itself may be past its life; a row that is locked by the same call is waited for.
_EXPIRE = """
    delete from idempotency_keys
     where person_id = $1 and key = $2 and created_at <= (select lastcall_now()) - $3::interval
"""
_BEGIN = """
    insert into idempotency_keys (person_id, key, digest) values ($1, $2, $3)
    on conflict (person_id, key) do nothing returning true
"""
_KNOWN = "select digest, answer from idempotency_keys where person_id = $1 and key = $2"
_END = "update idempotency_keys set answer = $3 where person_id = $1 and key = $2"


async def once(
    db: Database,
    actor: Actor,
    call: str,
    key: str | None,
    asked: Input,
    work: Callable[[], Awaitable[Answer]],
    kind: type[Answer],
    stored: Callable[[Answer], Answer] = lambda answer: answer,
) -> Answer:
    """What ``work`` answers, or what it answered to the same call before. Without a key it is just done.

    ``call`` names what is done, and to what. ``stored`` takes out of the answer what is shown once only. Raises
    ``Conflict`` when the key stands for another call.
    """
    if key is None:
        return await work()
    digest = _digest(call, asked)
    async with db.transaction(outermost=True) as tx:
        known = await _begin(tx, actor, key, digest)
        if known is not None:
            return msgspec.json.decode(known, type=kind)
        answer = await work()
        await tx.raw.execute(_END, actor.person_id, key, msgspec.json.encode(stored(answer)))
    return answer


async def _begin(tx: Transaction, actor: Actor, key: str, digest: bytes) -> bytes | None:
    """Take the key, waiting for whoever is at it; answers what it stands for when it was used before."""
    await tx.raw.execute(_EXPIRE, actor.person_id, key, KEY_LIFE)
    await tx.raw.execute(_SWEEP, KEY_LIFE, actor.person_id, key, SWEPT)
    while not await tx.raw.fetchval(_BEGIN, actor.person_id, key, digest):
        # Committed by now, so a new statement sees it, unless its person was erased that moment.
        known = await tx.raw.fetchrow(_KNOWN, actor.person_id, key)
        if known is None:
            continue
        if known["digest"] != digest:
            raise Conflict(
                "idempotency_key_used",
                "This Idempotency-Key was used for another call.",
                advice="Make a new key for each thing to create.",
            )
        answer: bytes = known["answer"]
        return answer
    return None


def called(request: ApiRequest) -> str:
    """What a call over HTTP is named by."""
    return f"{request.method} {request.url.path}"


def _digest(call: str, asked: Input) -> bytes:
    """What makes two calls the same: name and content, whatever the order of the content's fields."""
    content = msgspec.json.encode(asked, order="deterministic")
    return hashlib.sha256(f"{call}\n".encode() + content).digest()
