"""How a connection begins, goes on and ends: what the account is to the group, and that it has left it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lastcall.protocol.messages import (
    Call,
    CodeText,
    Features,
    Id,
    LeaseRef,
    Message,
    OwnMemberEvidence,
    ProviderId,
    Text,
)


class GroupSeen(Message, frozen=True, kw_only=True):
    """The group as it was just read. ``membership`` is VRChat's word for the account's standing: ``member``,
    ``requested``, ``invited``, ``banned``, ``userblocked``, or ``inactive`` for none at all."""

    group_id: ProviderId
    name: Text
    privacy: CodeText
    join_state: CodeText
    membership: CodeText


class Membership(Call, frozen=True, kw_only=True):
    """What the account is to the group, after it joined where it should. ``evidence`` comes with a member.

    The same call refreshes the readiness of a connection that is active already. The server alone says which state
    follows.
    """

    lease: LeaseRef
    group: GroupSeen
    evidence: OwnMemberEvidence | None = None


class MembershipAnswer(Message, frozen=True, kw_only=True):
    """The state of the connection from now on; the rest of the pass goes by it (COL-01)."""

    state: CodeText


class Left(Call, frozen=True, kw_only=True):
    """The account is no member of the group any more: a connection that is being ended is over."""

    lease: LeaseRef


class Groups(Call, frozen=True, kw_only=True):
    """Asks which groups this account serves, for ``lastcall collector --check``."""


class GroupServed(Message, frozen=True, kw_only=True):
    club_id: Id
    connection_id: Id
    group_id: ProviderId
    state: CodeText
    features: Features


class GroupsAnswer(Message, frozen=True, kw_only=True):
    groups: Annotated[tuple[GroupServed, ...], Meta(max_length=1000)] = ()
