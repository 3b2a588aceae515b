"""``close_instance``: nobody may join it any more. Whoever is inside stays there."""

from __future__ import annotations

import re

from lastcall.vrchat.instances import location_path
from lastcall.vrchat.transport import SendResult
from lastcall.vrchat.writes.destination import DESTINATION, check_destination
from lastcall.vrchat.writes.judging import AnswerCode, Judgement, Refusal, Write, judge
from lastcall.vrchat.writes.kind import Seen, WriteKind
from lastcall.vrchat.writes.payload import InstanceId, Payload, WorldId

_KIND = "close_instance"

# Both are 403, and only the message tells them apart; any other 403 says that the account may not.
_REFUSALS = (
    Refusal(
        403,
        re.compile(r"you're not allowed to close an already closed instance[.!]?"),
        AnswerCode.ALREADY_CLOSED,
    ),
)


class CloseInstance(Payload, frozen=True):
    world_id: WorldId
    instance_id: InstanceId


def _plan(payload: CloseInstance, seen: Seen) -> Write:
    """A normal close of the instance, under its id as VRChat writes it."""
    instance = seen.found[DESTINATION.name].value
    path = location_path(instance.world_id, instance.instance_id)
    return Write(_KIND, "DELETE", path, seen.own, payload, query={"hardClose": "false"})


def _judge(write: Write, sent: SendResult) -> Judgement:
    """Proved by the record of that instance."""
    return judge(write, sent, check_destination, _REFUSALS)


CLOSE_INSTANCE = WriteKind(
    name=_KIND,
    feature="instances",
    payload=CloseInstance,
    grants=("group-instance-manage",),
    reads=(DESTINATION,),
    plan_seen=_plan,
    judge=_judge,
)
