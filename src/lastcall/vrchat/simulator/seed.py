"""A club of any size to play with. Ids and names are made by rule, so that two runs are alike and nobody is
real."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lastcall.vrchat.simulator.model import Group, Member, Place, Role, User, World, made_id

BOT_GRANTS = (
    "group-announcement-manage",
    "group-audit-view",
    "group-bans-manage",
    "group-instance-age-gated-create",
    "group-instance-calendar-link",
    "group-instance-manage",
    "group-instance-open-create",
    "group-instance-plus-create",
    "group-instance-public-create",
    "group-instance-restricted-create",
    "group-invites-manage",
    "group-members-manage",
    "group-members-remove",
    "group-members-viewall",
    "group-roles-assign",
)
BOT_USERNAME = "lastcall-bot"
BOT_PASSWORD = "not-a-secret-of-anyone"  # noqa: S105 - the simulator's own, it opens nothing else
BOT_TOTP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"  # noqa: S105 - as above
ROLE_NAMES = ("Regular", "Host", "Greeter", "Photographer")
STRANGERS = 20
FRIENDS = 10
WORLD_NAMES = ("The Long Bar", "Rooftop")


@dataclass(frozen=True)
class Seed:
    """The ids of a seeded club. ``members`` are those besides owner and account; ``strangers`` belong to no
    group. ``friends`` are those members, at most ``FRIENDS``, who are friends of the account."""

    group_id: str
    owner_id: str
    bot_id: str
    role_ids: tuple[str, ...]
    members: tuple[str, ...]
    strangers: tuple[str, ...]
    friends: tuple[str, ...] = ()
    world_ids: tuple[str, ...] = ()


def seed_club(
    world: World, now: datetime, *, members: int = 40, name: str = "Demo Club", totp: bool = True
) -> Seed:
    """Add a group with an owner, the dedicated account (its sign-in is ``BOT_…``) and ``members`` in all."""
    key = f"club-{len(world.groups) + 1}"
    group_id = made_id("grp", key)
    owner = User(made_id("usr", key, "owner"), f"Owner of {name}")
    bot = User(
        made_id("usr", "bot"), "Lastcall", BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET if totp else None
    )
    bot = world.users.setdefault(bot.id, bot)
    world.users[owner.id] = owner
    group = Group(group_id, name, key.replace("-", "").upper()[:6], owner.id, now - timedelta(days=400))
    for order, role_name in enumerate(ROLE_NAMES):
        role = Role(made_id("grol", key, role_name), role_name, order)
        group.roles[role.id] = role
    ordinary = [
        User(made_id("usr", key, "member", number), f"Member {number}")
        for number in range(1, max(0, members - 2) + 1)
    ]
    for position, user in enumerate([owner, bot, *ordinary]):
        world.users[user.id] = user
        joined_at = group.created_at + timedelta(days=position)
        group.members[user.id] = Member(made_id("gmem", key, user.id), user.id, joined_at)
    group.members[bot.id].grants |= set(BOT_GRANTS)
    strangers = [
        User(made_id("usr", key, "stranger", number), f"Visitor {number}")
        for number in range(1, STRANGERS + 1)
    ]
    world.users |= {user.id: user for user in strangers}
    world.groups[group_id] = group
    friends = [user.id for user in ordinary[::2]][:FRIENDS]
    world.friendships |= {frozenset((bot.id, friend)) for friend in friends}
    places = [
        Place(made_id("wrld", key, place_name), place_name, owner.id, group.created_at)
        for place_name in WORLD_NAMES
    ]
    world.places |= {place.id: place for place in places}
    return Seed(
        group_id,
        owner.id,
        bot.id,
        tuple(group.roles),
        tuple(user.id for user in ordinary),
        tuple(user.id for user in strangers),
        tuple(friends),
        tuple(place.id for place in places),
    )
