"""What the lists of people in a group share: VRChat writes all of them down in one shape."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lastcall.vrchat.errors import ProviderScope
from lastcall.vrchat.fields import Id, Moment, RoleIds, Text, Word, is_same
from lastcall.vrchat.reads.kind import Asking, Item, Page, PageParams, page_of, window_of


class _User(msgspec.Struct, rename="camel"):
    id: Id
    display_name: Text


class Person(msgspec.Struct, rename="camel"):
    """A member, a banned or an invited person, or one who asked. Presence and notes are not even looked
    at."""

    group_id: Id
    user_id: Id
    role_ids: RoleIds
    membership_status: Word | None = None
    joined_at: Moment | None = None
    created_at: Moment | None = None
    banned_at: Moment | None = None
    user: _User | None = None

    @property
    def display_name(self) -> str:
        """Empty where VRChat leaves the person's own record out."""
        return "" if self.user is None else self.user.display_name

    def belongs_to(self, group_id: str) -> None:
        """Raise ``ProviderScope`` for a row of another group, or with another person's record inside."""
        is_about_one = self.user is None or is_same(self.user.id, self.user_id)
        if not is_same(self.group_id, group_id) or not is_about_one:
            raise ProviderScope("VRChat answered about another group or person.")


async def read_people(
    asking: Asking, path: str, params: PageParams, item_of: Callable[[Person], Item]
) -> Page:
    """One page of the list at ``path`` below the group."""
    read = await asking.get(path, list[Person], window_of(params))
    for person in read.value:
        person.belongs_to(asking.own.group_id)
    return page_of([item_of(person) for person in read.value], params, read.asked_at)
