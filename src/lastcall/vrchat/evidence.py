"""What VRChat says about a group, validated: the only thing that may count as authority or as proof.

An answer of another shape is no evidence (``SchemaDrift``), an answer about another group or person neither
(``ProviderScope``). Freshness is the reader's business: each value carries when it was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from lastcall.vrchat.errors import Membership, ProviderScope, SchemaDrift
from lastcall.vrchat.transport import Read, Transport

MOST_ROLES = 100
"""Roles of a group that are read."""

PAGE = 100
"""People on one page of a list, the most that VRChat gives."""

MOST_PAGES = 20
"""Pages that one look through a list costs at most; a longer list is reported as cut short."""

_Text = Annotated[str, msgspec.Meta(max_length=600)]
_Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,100}\Z")]
_Word = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]{1,100}\Z")]
_Grant = Annotated[str, msgspec.Meta(max_length=100)]


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
    id: _Id
    group_id: _Id
    name: _Text


class _MyMember(msgspec.Struct, rename="camel"):
    group_id: _Id
    user_id: _Id
    membership_status: _Word
    permissions: Annotated[list[_Grant], msgspec.Meta(max_length=200)]
    role_ids: Annotated[list[_Id], msgspec.Meta(max_length=MOST_ROLES)]


class Group(msgspec.Struct, rename="camel"):
    """``GET /groups/{id}?includeRoles=true``, as far as it matters here."""

    id: _Id
    owner_id: _Id
    privacy: _Word
    join_state: _Word
    roles: Annotated[list[_Role], msgspec.Meta(max_length=MOST_ROLES)]
    my_member: _MyMember | None = None


async def read_own_member(transport: Transport, group_id: str, user_id: str) -> OwnMember:
    """Read the group and the standing of the account ``user_id`` in it.

    Raises ``Membership`` when the account is no member, and the faults of any read.
    """
    read = await transport.get(f"/groups/{group_id}", Group, {"includeRoles": "true"})
    return own_member(read, group_id, user_id)


def own_member(read: Read[Group], group_id: str, user_id: str) -> OwnMember:
    """``read`` as evidence about this group and account, or the fault that it is."""
    group = read.value
    if group.id.casefold() != group_id.casefold():
        raise ProviderScope("VRChat answered about another group.")
    mine = group.my_member
    if mine is None:
        raise Membership("The account is not a member of the group.")
    if mine.group_id.casefold() != group_id.casefold() or mine.user_id.casefold() != user_id.casefold():
        raise ProviderScope("VRChat answered about another member.")
    if mine.membership_status != "member":
        raise Membership("The account is not a member of the group.")
    if any(role.group_id.casefold() != group_id.casefold() for role in group.roles):
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


@dataclass(frozen=True)
class Person:
    """One person's standing in the group: ``member``, ``invited``, ``banned`` or what else VRChat says."""

    user_id: str
    display_name: str
    status: str
    role_ids: tuple[str, ...]


@dataclass(frozen=True)
class People:
    """A list read through. ``is_whole`` is false when it was longer than ``MOST_PAGES`` pages."""

    people: tuple[Person, ...]
    is_whole: bool


class _User(msgspec.Struct, rename="camel"):
    id: _Id
    display_name: _Text


class _Member(msgspec.Struct, rename="camel"):
    group_id: _Id
    user_id: _Id
    role_ids: Annotated[list[_Id], msgspec.Meta(max_length=MOST_ROLES)]
    membership_status: _Word
    user: _User | None = None


async def read_member(transport: Transport, group_id: str, user_id: str) -> Read[Person]:
    """One person. Raises ``NotVisible`` when VRChat knows no standing of theirs in the group."""
    read = await transport.get(f"/groups/{group_id}/members/{user_id}", _Member)
    person = _person(read.value, group_id)
    if person.user_id.casefold() != user_id.casefold():
        raise ProviderScope("VRChat answered about another person.")
    return Read(person, read.asked_at)


async def read_bans(transport: Transport, group_id: str) -> Read[People]:
    """Who is banned from the group, page by page."""
    return await _read_people(transport, f"/groups/{group_id}/bans", group_id)


async def read_invitations(transport: Transport, group_id: str) -> Read[People]:
    """Who is invited to the group and has not answered, page by page."""
    return await _read_people(transport, f"/groups/{group_id}/invites", group_id)


async def _read_people(transport: Transport, path: str, group_id: str) -> Read[People]:
    asked_at = transport.clock.boot()
    people: dict[str, Person] = {}
    for number in range(MOST_PAGES):
        window = {"n": str(PAGE), "offset": str(number * PAGE)}
        page = (await transport.get(path, list[_Member], window)).value
        if len(page) > PAGE:
            raise SchemaDrift("VRChat gave a longer page than asked for.")
        people |= {member.user_id: _person(member, group_id) for member in page}
        if len(page) < PAGE:
            return Read(People(tuple(people.values()), is_whole=True), asked_at)
    return Read(People(tuple(people.values()), is_whole=False), asked_at)


def _person(member: _Member, group_id: str) -> Person:
    if member.group_id.casefold() != group_id.casefold():
        raise ProviderScope("VRChat answered about another group.")
    name = member.user.display_name if member.user is not None else ""
    return Person(member.user_id, name, member.membership_status, tuple(member.role_ids))
