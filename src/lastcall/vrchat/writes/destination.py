"""What the writes about an open instance share: the read of the place, and of the person who is asked there."""

from __future__ import annotations

from typing import Any

from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import NotFriends, SchemaDrift, Transient
from lastcall.vrchat.evidence import OwnMember
from lastcall.vrchat.instances import Instance, read_friendship, read_open_instance
from lastcall.vrchat.transport import Answer, Read, Transport, decode
from lastcall.vrchat.writes.judging import Proof, Write
from lastcall.vrchat.writes.kind import FRIENDSHIP_NAME, PreflightRead


async def _ask_destination(transport: Transport, payload: Any, own: OwnMember) -> Read[Instance]:
    return await read_open_instance(transport, payload.world_id, payload.instance_id, own.group_id)


async def _ask_friendship(transport: Transport, payload: Any, _own: OwnMember) -> Read[bool]:
    read = await read_friendship(transport, payload.target_user_id)
    if not read.value:
        raise NotFriends("The person is not a friend of the account.")
    return read


DESTINATION = PreflightRead("destination", _ask_destination)
"""The instance: this group's, and open."""

FRIENDSHIP = PreflightRead(FRIENDSHIP_NAME, _ask_friendship)
"""The target is a friend of the account."""


def check_destination(write: Write, answer: Answer) -> Proof | Code:
    """The record of the very instance that the payload names."""
    try:
        found = decode(answer.body, Instance)
    except (SchemaDrift, Transient):
        return Code.SCHEMA_DRIFT
    payload = write.payload
    is_it = found.is_at(payload.world_id, payload.instance_id) and found.belongs_to(write.own.group_id)
    return Proof() if is_it else Code.DESTINATION_SCOPE
