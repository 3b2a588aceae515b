"""``eligibility``: which of these people could be invited to an instance, and whether it is open.

The account's own record lists all its friends, so that one request answers for a hundred people.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from lastcall.vrchat.errors import Authentication, DestinationClosed, InvalidInput, NotVisible, SchemaDrift
from lastcall.vrchat.fields import Id, is_same
from lastcall.vrchat.instances import read_open_instance
from lastcall.vrchat.reads.kind import Asking, Item, Page, Params, ReadKind
from lastcall.vrchat.writes.payload import InstanceId, UserId, WorldId


class EligibilityParams(Params, frozen=True):
    """``world_id`` and ``instance_id`` go together; without them only friendship is answered."""

    target_user_ids: Annotated[tuple[UserId, ...], msgspec.Meta(min_length=1, max_length=100)]
    world_id: WorldId | None = None
    instance_id: InstanceId | None = None


class EligibilityItem(Item, frozen=True):
    """``friendship``: ``friend`` or ``not_friend`` of the account. ``destination``: ``open``, ``closed``, or
    ``none`` when no place was named."""

    user_id: str
    friendship: str
    destination: str


class _Friends(msgspec.Struct, rename="camel"):
    """The account's own record; without ``id`` it is the question for a second factor."""

    id: Id | None = None
    friends: list[Id] | None = None


async def _ask(asking: Asking, params: EligibilityParams) -> Page:
    destination, asked_at = await _destination(asking, params)
    asking.charge()
    read = await asking.transport.get("/auth/user", _Friends)
    friends = {friend.casefold() for friend in _friends_of(read.value, asking.own.user_id)}
    items = tuple(
        EligibilityItem(
            user_id, "friend" if user_id.casefold() in friends else "not_friend", destination
        )
        for user_id in params.target_user_ids
    )  # fmt: skip
    return Page(items, min(asked_at, read.asked_at), total=len(items))


async def _destination(asking: Asking, params: EligibilityParams) -> tuple[str, float]:
    """What can be said about the place, and the boot time from before it was asked."""
    asked_at = asking.transport.clock.boot()
    if params.world_id is None or params.instance_id is None:
        return "none", asked_at
    asking.charge()
    try:
        await read_open_instance(asking.transport, params.world_id, params.instance_id, asking.own.group_id)
    except (NotVisible, DestinationClosed):
        return "closed", asked_at
    return "open", asked_at


def _friends_of(account: _Friends, user_id: str) -> list[str]:
    if account.id is None or not is_same(account.id, user_id):
        raise Authentication("VRChat does not answer as the account any more.")
    if account.friends is None:
        raise SchemaDrift("VRChat left out the friends of the account.")
    return account.friends


def _check(params: EligibilityParams) -> None:
    if (params.world_id is None) != (params.instance_id is None):
        raise InvalidInput("A place is a world and an instance.")


def _requests(params: EligibilityParams) -> int:
    return 1 if params.world_id is None else 2


ELIGIBILITY = ReadKind(
    name="eligibility",
    feature="instances",
    params=EligibilityParams,
    item=EligibilityItem,
    check=_check,
    requests=_requests,
    ask=_ask,
)
