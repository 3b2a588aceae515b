"""Who of some people an invitation to an instance can reach: the account's friends, while the instance is open."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.errors import Invalid
from lastcall.operations.kinds.fields import InstanceId, UserId, WorldId
from lastcall.protocol.messages import ProviderId
from lastcall.reads.kinds.fields import TARGETS_MOST, Item, Params
from lastcall.reads.kinds.kind import ReadKind


class EligibilityParams(Params, frozen=True):
    """Without a place friendship alone is looked at."""

    target_user_ids: Annotated[tuple[UserId, ...], Meta(min_length=1, max_length=TARGETS_MOST)]
    world_id: WorldId | None = None
    instance_id: InstanceId | None = None


class EligibilityItem(Item, frozen=True):
    """``destination`` is ``none`` when no place was asked for."""

    user_id: ProviderId
    friendship: Literal["friend", "not_friend"]
    destination: Literal["open", "closed", "none"]


def _check(params: EligibilityParams) -> None:
    if (params.world_id is None) != (params.instance_id is None):
        missing = "worldId" if params.world_id is None else "instanceId"
        raise Invalid(
            "place_incomplete", "A place has both a world and an instance, or is left out.", field=missing
        )
    if len({user_id.lower() for user_id in params.target_user_ids}) != len(params.target_user_ids):
        raise Invalid("targets_repeated", "targetUserIds names a person twice.", field="targetUserIds")


KIND = ReadKind(
    name="eligibility",
    label="Invitation check",
    params=EligibilityParams,
    item=EligibilityItem,
    permission=Permission.MANAGE_INSTANCES,
    feature=Feature.INSTANCES,
    most=lambda params: len(params.target_user_ids),
    check=_check,
)
