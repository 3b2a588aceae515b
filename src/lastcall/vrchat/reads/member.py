"""``member``: what one person is to the group, also when that is nothing."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from lastcall.vrchat.errors import NoGroup, NotVisible, ProviderScope, SchemaDrift
from lastcall.vrchat.fields import is_same
from lastcall.vrchat.reads.kind import Asking, Item, Page, Params, ReadKind, one_request
from lastcall.vrchat.reads.members import VIEW_GRANTS
from lastcall.vrchat.reads.people import Person
from lastcall.vrchat.writes.payload import UserId

_PERSON_OR_NULL = cast("type[Person | None]", Person | None)


class MemberParams(Params, frozen=True):
    target_user_id: UserId


class StandingItem(Item, frozen=True):
    """``status``: ``member``, ``requested``, ``invited``, ``banned``, or ``inactive`` for none of these."""

    user_id: str
    display_name: str
    status: str
    role_ids: tuple[str, ...]
    joined_at: datetime | None


async def _ask(asking: Asking, params: MemberParams) -> Page:
    """The account sees the group and may see its members: then 404, or ``null``, is a person who is nothing
    to it."""
    asked_at = asking.transport.clock.boot()
    try:
        read = await asking.get(f"/members/{params.target_user_id}", _PERSON_OR_NULL)
    except NoGroup:
        raise
    except NotVisible:
        return _nothing(params, asked_at)
    person = read.value
    if person is None:
        return _nothing(params, asked_at)
    person.belongs_to(asking.own.group_id)
    if not is_same(person.user_id, params.target_user_id):
        raise ProviderScope("VRChat answered about another person.")
    if person.membership_status is None:
        raise SchemaDrift("VRChat does not say what the person is to the group.")
    item = StandingItem(
        person.user_id,
        person.display_name,
        person.membership_status,
        tuple(person.role_ids),
        person.joined_at,
    )
    return Page((item,), read.asked_at, total=1)


def _nothing(params: MemberParams, asked_at: float) -> Page:
    return Page((StandingItem(params.target_user_id, "", "inactive", (), None),), asked_at, total=1)


MEMBER = ReadKind(
    name="member",
    feature="membership_management",
    params=MemberParams,
    item=StandingItem,
    grants=VIEW_GRANTS,
    requests=one_request,
    ask=_ask,
)
