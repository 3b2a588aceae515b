"""``invite_to_instance``: ask a friend of the account into an open instance. Success means that VRChat took the
invite, not that it is delivered, read or followed.

An invitation to an instance that was still to be created arrives here too, with the place that came of it.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import SchemaDrift, Transient
from lastcall.vrchat.transport import Answer, SendResult, decode
from lastcall.vrchat.writes.destination import DESTINATION, FRIENDSHIP
from lastcall.vrchat.writes.judging import Judgement, Proof, Refusal, Write, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import InstanceId, MessageSlot, PersonPayload, WorldId

_KIND = "invite_to_instance"

_REFUSALS = (
    Refusal(403, re.compile(r"you need to be friends with that user first[.!]?"), Code.FRIENDSHIP),
)  # fmt: skip


class InviteToInstance(PersonPayload, frozen=True):
    world_id: WorldId
    instance_id: InstanceId
    message_slot: MessageSlot | None = None


class _Sent(msgspec.Struct, rename="camel"):
    id: Annotated[str, msgspec.Meta(pattern=r"^not_")]
    type: str
    sender_user_id: str
    receiver_user_id: str


def _plan(payload: InviteToInstance, seen: Seen) -> Write:
    """The invite, to the instance under its id as VRChat writes it."""
    instance = seen.found[DESTINATION.name].value
    body: dict[str, object] = {"instanceId": f"{instance.world_id}:{instance.instance_id}"}
    if payload.message_slot is not None:
        body["messageSlot"] = payload.message_slot
    return Write(_KIND, "POST", f"/invite/{payload.target_user_id}", seen.own, payload, json=body)


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the record of an invite from the account to that person."""
    return judge(write, sent, _check_body, _REFUSALS)


def _check_body(write: Write, answer: Answer) -> Proof | Code:
    try:
        sent = decode(answer.body, _Sent)
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    is_ours = (
        sent.type == "invite"
        and sent.sender_user_id.casefold() == write.own.user_id.casefold()
        and sent.receiver_user_id.casefold() == write.payload.target_user_id.casefold()
    )
    return Proof() if is_ours else Code.PROVIDER_SCOPE


INVITE_TO_INSTANCE = WriteKind(
    name=_KIND,
    feature="instances",
    payload=InviteToInstance,
    grants=(),
    reads=(DESTINATION, FRIENDSHIP),
    plan_seen=_plan,
    judge=_judge,
)
