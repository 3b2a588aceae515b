"""How VRChat writes its things down. The official SDK reads these shapes unchanged; a test holds that."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lastcall.vrchat.simulator.model import AuditEntry, Group, Post, User, World


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def current_user(world: World, user: User) -> dict[str, Any]:
    """The signed-in user. Most of it is what an account that never entered a world looks like."""
    avatar = "https://assets.vrchat.com/default/image.png"
    empty_lists = (
        "bioLinks", "currentAvatarTags", "friendGroupNames", "activeFriends", "onlineFriends", "offlineFriends",
        "pastDisplayNames", "pronounsHistory", "statusHistory", "tags",
    )  # fmt: skip
    empty_texts = (
        "bio", "friendKey", "homeLocation", "oculusId", "profilePicOverride",
        "statusDescription", "profilePicOverrideThumbnail", "pronouns", "steamId", "userIcon",
        "obfuscatedPendingEmail",
    )  # fmt: skip
    switches = (
        "ageVerified", "allowAvatarCopying", "hasBirthday", "hasLoggedInFromClient", "hasPendingEmail",
        "isAdult", "isFriend", "statusFirstTime", "unsubscribe", "usesGeneratedPassword",
    )  # fmt: skip
    return {
        **{name: [] for name in empty_lists},
        **dict.fromkeys(empty_texts, ""),
        **dict.fromkeys(switches, False),
        "acceptedTOSVersion": 11,
        "ageVerificationStatus": "hidden",
        "currentAvatar": "avtr_00000000-0000-0000-0000-000000000000",
        "currentAvatarImageUrl": avatar,
        "currentAvatarThumbnailImageUrl": avatar,
        "date_joined": user.joined_on.isoformat(),
        "developerType": "none",
        "displayName": user.display_name,
        "emailVerified": True,
        "friends": world.friends_of(user.id),
        "hasEmail": True,
        "id": user.id,
        "last_login": "2026-01-01T00:00:00.000Z",
        "last_mobile": None,
        "last_platform": "standalonewindows",
        "obfuscatedEmail": "b*@example.org",
        "state": "offline",
        "status": "active",
        "steamDetails": {},
        "twoFactorAuthEnabled": user.totp_secret is not None,
        "username": user.username,
    }


def role(group: Group, role_id: str) -> dict[str, Any]:
    one = group.roles[role_id]
    return {
        "id": one.id,
        "groupId": group.id,
        "name": one.name,
        "description": "",
        "isSelfAssignable": False,
        "permissions": sorted(one.permissions),
        "isManagementRole": False,
        "requiresTwoFactor": False,
        "requiresPurchase": False,
        "order": one.order,
        "createdAt": moment(group.created_at),
        "updatedAt": moment(group.created_at),
    }


def group(one: Group, user_id: str, *, with_roles: bool) -> dict[str, Any]:
    """The group as this account sees it; ``myMember`` is there for members only."""
    document: dict[str, Any] = {
        "id": one.id,
        "name": one.name,
        "shortCode": one.short_code,
        "discriminator": "0001",
        "description": "",
        "ownerId": one.owner_id,
        "privacy": one.privacy,
        "joinState": one.join_state,
        "memberCount": len(one.members),
        "memberCountSyncedAt": moment(one.created_at),
        "onlineMemberCount": 0,
        "membershipStatus": membership_status(one, user_id),
        "isVerified": False,
        "languages": [],
        "links": [],
        "tags": [],
        "badges": [],
        "galleries": [],
        "rules": "",
        "iconId": None,
        "iconUrl": None,
        "bannerId": None,
        "bannerUrl": None,
        "createdAt": moment(one.created_at),
        "updatedAt": moment(one.created_at),
    }
    if user_id in one.members:
        mine = one.members[user_id]
        document["myMember"] = {
            "id": mine.id,
            "groupId": one.id,
            "userId": user_id,
            "roleIds": list(mine.role_ids),
            "mRoleIds": [],
            "permissions": sorted(one.permissions_of(user_id)),
            "membershipStatus": "member",
            "visibility": "visible",
            "isRepresenting": False,
            "isSubscribedToAnnouncements": True,
            "has2FA": True,
            "joinedAt": moment(mine.joined_at),
            "createdAt": moment(mine.joined_at),
            "bannedAt": None,
            "managerNotes": None,
        }
    if with_roles:
        document["roles"] = [role(one, role_id) for role_id in one.roles]
    return document


def hides(one: Group, user_id: str) -> bool:
    """Whether a private group is not there at all for this person."""
    return one.privacy == "private" and membership_status(one, user_id) == "inactive"


def membership_status(one: Group, user_id: str) -> str:
    if user_id in one.members:
        return "member"
    if user_id in one.blocked_by:
        return "userblocked"
    if user_id in one.bans:
        return "banned"
    if user_id in one.invitations:
        return "invited"
    return "requested" if user_id in one.requests else "inactive"


def member(world: World, one: Group, user_id: str) -> dict[str, Any]:
    """A member, an invited or a banned person, or one who asked: VRChat uses one shape for all of them."""
    user = world.users[user_id]
    standing = one.members.get(user_id)
    ban = one.bans.get(user_id)
    invitation = one.invitations.get(user_id)
    asked = one.requests.get(user_id)
    record = standing or ban or invitation or asked
    waiting = invitation or asked
    return {
        "id": record.id if record is not None else "",
        "groupId": one.id,
        "userId": user_id,
        "isRepresenting": False,
        "user": {"id": user.id, "displayName": user.display_name, "thumbnailUrl": None, "iconUrl": ""},
        "roleIds": list(standing.role_ids) if standing is not None else [],
        "mRoleIds": [],
        "joinedAt": moment(standing.joined_at) if standing is not None else None,
        "membershipStatus": membership_status(one, user_id),
        "visibility": "visible",
        "isSubscribedToAnnouncements": False,
        "createdAt": moment(waiting.created_at) if waiting is not None else None,
        "bannedAt": moment(ban.banned_at) if ban is not None else None,
        "managerNotes": "",
    }


def post(one: Group, entry: Post) -> dict[str, Any]:
    return {
        "id": entry.id,
        "groupId": one.id,
        "authorId": entry.author_id,
        "editorId": entry.editor_id,
        "visibility": entry.visibility,
        "roleIds": list(entry.role_ids),
        "title": entry.title,
        "text": entry.text,
        "imageId": entry.image_id,
        "imageUrl": None,
        "createdAt": moment(entry.created_at),
        "updatedAt": moment(entry.updated_at or entry.created_at),
    }


def audit_entry(world: World, one: Group, entry: AuditEntry) -> dict[str, Any]:
    actor = world.users.get(entry.actor_id)
    return {
        "id": entry.id,
        "created_at": moment(entry.at),
        "groupId": one.id,
        "actorId": entry.actor_id,
        "actorDisplayName": actor.display_name if actor is not None else "",
        "targetId": entry.target_id,
        "eventType": entry.event,
        "description": entry.description,
        "data": {},
    }
