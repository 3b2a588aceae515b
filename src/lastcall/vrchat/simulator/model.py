"""What the simulated VRChat remembers: people with their sessions, groups with their members, and what
happened."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import date, datetime

_NAMESPACE = uuid.UUID("6f1c1d0a-5a43-4c1c-9a55-1c7a57ca1100")


def made_id(prefix: str, *parts: object) -> str:
    """An id of VRChat's form that is the same in each run: ``usr_…`` for ``("usr", "member", 14)``."""
    return f"{prefix}_{uuid.uuid5(_NAMESPACE, ':'.join(str(part) for part in (prefix, *parts)))}"


@dataclass
class User:
    """An account at VRChat. With ``totp_secret`` (base32) or ``mails_code`` a second factor is asked for.
    ``is_in_too_many_groups``: it can join no other."""

    id: str
    display_name: str
    username: str = ""
    password: str = ""
    totp_secret: str | None = None
    mails_code: bool = False
    mailed_code: str | None = None
    sign_ins: list[datetime] = field(default_factory=list)
    is_in_too_many_groups: bool = False
    joined_on: date = date(2024, 1, 1)


@dataclass
class Role:
    id: str
    name: str
    order: int
    permissions: set[str] = field(default_factory=set)


@dataclass
class Member:
    """``grants`` come on top of what the member's roles permit, so that a test can take away a single one."""

    id: str
    user_id: str
    joined_at: datetime
    role_ids: list[str] = field(default_factory=list)
    grants: set[str] = field(default_factory=set)


@dataclass
class Invitation:
    id: str
    user_id: str
    invited_by: str
    created_at: datetime


@dataclass
class JoinRequest:
    id: str
    user_id: str
    created_at: datetime


@dataclass
class Ban:
    id: str
    user_id: str
    banned_at: datetime


@dataclass
class Post:
    """``is_notified``: the members were told of it when it was published or edited last."""

    id: str
    author_id: str
    created_at: datetime
    title: str
    text: str
    visibility: str
    role_ids: list[str] = field(default_factory=list)
    image_id: str | None = None
    is_notified: bool = False
    editor_id: str | None = None
    updated_at: datetime | None = None


@dataclass
class AuditEntry:
    id: str
    at: datetime
    event: str
    actor_id: str
    target_id: str
    description: str


@dataclass
class Group:
    """``blocked_by``: the people who want nothing of it."""

    id: str
    name: str
    short_code: str
    owner_id: str
    created_at: datetime
    privacy: str = "default"
    join_state: str = "request"
    roles: dict[str, Role] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    invitations: dict[str, Invitation] = field(default_factory=dict)
    requests: dict[str, JoinRequest] = field(default_factory=dict)
    bans: dict[str, Ban] = field(default_factory=dict)
    blocked_by: set[str] = field(default_factory=set)
    posts: dict[str, Post] = field(default_factory=dict)
    posts_made: int = 0
    audit: list[AuditEntry] = field(default_factory=list)

    def permissions_of(self, user_id: str) -> set[str]:
        """What the group lets this person do; the owner may do everything, someone who is no member
        nothing."""
        if user_id == self.owner_id:
            return {"*"}
        member = self.members.get(user_id)
        if member is None:
            return set()
        granted = set(member.grants)
        for role_id in member.role_ids:
            if role_id in self.roles:
                granted |= self.roles[role_id].permissions
        return granted

    def lets(self, user_id: str, *needed: str) -> bool:
        """Whether the person holds all of ``needed``."""
        granted = self.permissions_of(user_id)
        return "*" in granted or set(needed) <= granted

    def note(self, at: datetime, event: str, actor_id: str, target_id: str, description: str) -> None:
        """Add a line to the group's audit log."""
        entry_id = made_id("gaud", self.id, len(self.audit))
        self.audit.append(AuditEntry(entry_id, at, event, actor_id, target_id, description))


@dataclass
class Place:
    """What VRChat calls a world."""

    id: str
    name: str
    author_id: str
    created_at: datetime
    capacity: int = 40


@dataclass
class Instance:
    """A place opened by a group. ``id`` carries its tags; ``closed_at``: from then on nobody may join. ``people`` are
    those inside, by their ids."""

    world_id: str
    id: str
    group_id: str
    access: str
    region: str
    role_ids: tuple[str, ...] = ()
    is_age_gated: bool = False
    has_queue: bool = False
    calendar_entry_id: str | None = None
    is_active: bool = True
    closed_at: datetime | None = None
    people: set[str] = field(default_factory=set)

    @property
    def location(self) -> str:
        return f"{self.world_id}:{self.id}"

    def is_closed_at(self, moment: datetime) -> bool:
        return self.closed_at is not None and self.closed_at <= moment


@dataclass
class World:
    """Everything. ``sessions`` maps an auth cookie to its user, ``second_factors`` likewise for
    twoFactorAuth, ``instances`` a location to its instance."""

    users: dict[str, User] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    friendships: set[frozenset[str]] = field(default_factory=set)
    sessions: dict[str, str] = field(default_factory=dict)
    second_factors: dict[str, str] = field(default_factory=dict)

    def friends_of(self, user_id: str) -> list[str]:
        return sorted(other for pair in self.friendships if user_id in pair for other in pair - {user_id})

    def are_friends(self, one: str, other: str) -> bool:
        return frozenset((one, other)) in self.friendships

    def user_named(self, username: str) -> User | None:
        return next((user for user in self.users.values() if username and user.username == username), None)
