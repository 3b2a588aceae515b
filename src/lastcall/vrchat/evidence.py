"""What VRChat says about a group, validated: the only thing that may count as authority or as proof.

An answer of another shape is no evidence (``SchemaDrift``), an answer about another group or person neither
(``ProviderScope``). Freshness is the reader's business: each value carries when it was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from lastcall.vrchat.errors import Membership, ProviderScope, SchemaDrift
from lastcall.vrchat.fields import MOST_ROLES, Grant, Id, Number, RoleIds, Text, Word, is_same
from lastcall.vrchat.transport import Read, Transport


@dataclass(frozen=True)
class Role:
    """A role of the group, with the id exactly as VRChat writes it."""

    role_id: str
    name: str


@dataclass(frozen=True)
class OwnMember:
    """What the group allows the account: the evidence behind every write.

    ``asked_at`` is the collector's boot clock from before the read was sent; its age is counted from there.
    """

    group_id: str
    owner_id: str
    user_id: str
    member_status: str
    permissions: frozenset[str]
    role_ids: tuple[str, ...]
    roles: tuple[Role, ...]
    privacy: str
    join_state: str
    asked_at: float

    def has_grants(self, grants: tuple[str, ...]) -> bool:
        """Whether the account holds all of them; ``*`` is every grant."""
        return "*" in self.permissions or set(grants) <= self.permissions

    def role(self, role_id: str) -> Role | None:
        """The group's role of this id, letter case aside."""
        wanted = role_id.casefold()
        return next((role for role in self.roles if role.role_id.casefold() == wanted), None)

    def protects(self, user_id: str) -> bool:
        """Whether this person is the account itself or the group's owner."""
        return user_id.casefold() in (self.user_id.casefold(), self.owner_id.casefold())


class _Role(msgspec.Struct, rename="camel"):
    id: Id
    group_id: Id
    name: Text


class _MyMember(msgspec.Struct, rename="camel"):
    group_id: Id
    user_id: Id
    membership_status: Word
    permissions: Annotated[list[Grant], msgspec.Meta(max_length=200)]
    role_ids: RoleIds


class Group(msgspec.Struct, rename="camel"):
    """``GET /groups/{id}?includeRoles=true``, as far as it matters here.

    Who is no member is shown less: without ``roles``, and ``my_member`` may be missing or say less than
    ``membership_status``.
    """

    id: Id
    name: Text
    owner_id: Id
    privacy: Word
    join_state: Word
    roles: Annotated[list[_Role], msgspec.Meta(max_length=MOST_ROLES)] | None = None
    my_member: _MyMember | None = None
    membership_status: Word | None = None
    member_count: Number | None = None


async def read_group(transport: Transport, group_id: str) -> Read[Group]:
    """The group as this account sees it, with its roles. One request.

    Raises ``NotVisible`` for a group that does not exist or hides from the account, ``ProviderScope`` when the
    answer is about another one, and the faults of any read.
    """
    read = await transport.get(f"/groups/{group_id}", Group, {"includeRoles": "true"})
    if not is_same(read.value.id, group_id):
        raise ProviderScope("VRChat answered about another group.")
    return read


async def read_own_member(transport: Transport, group_id: str, user_id: str) -> OwnMember:
    """Read the group and the standing of the account ``user_id`` in it.

    Raises ``Membership`` when the account is no member, and the faults of any read.
    """
    return own_member(await read_group(transport, group_id), group_id, user_id)


def own_member(read: Read[Group], group_id: str, user_id: str) -> OwnMember:
    """``read`` as evidence about this group and account, or the fault that it is."""
    group = read.value
    if not is_same(group.id, group_id):
        raise ProviderScope("VRChat answered about another group.")
    mine = group.my_member
    if mine is None:
        raise Membership("The account is not a member of the group.")
    if not is_same(mine.group_id, group_id) or not is_same(mine.user_id, user_id):
        raise ProviderScope("VRChat answered about another member.")
    if mine.membership_status != "member":
        raise Membership("The account is not a member of the group.")
    if group.roles is None:
        raise SchemaDrift("VRChat left out the roles of the group.")
    if not all(is_same(role.group_id, group_id) for role in group.roles):
        raise ProviderScope("VRChat answered with another group's roles.")
    return OwnMember(
        group_id=group.id,
        owner_id=group.owner_id,
        user_id=mine.user_id,
        member_status=mine.membership_status,
        permissions=frozenset(mine.permissions),
        role_ids=tuple(mine.role_ids),
        roles=tuple(Role(role.id, role.name) for role in group.roles),
        privacy=group.privacy,
        join_state=group.join_state,
        asked_at=read.asked_at,
    )
