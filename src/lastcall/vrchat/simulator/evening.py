"""What goes on in the seeded club, so that there is something to see: people who ask, wait and are banned, two open
instances, posts, and two days of audit log."""

from __future__ import annotations

from datetime import datetime, timedelta

from lastcall.vrchat.simulator.model import (
    Ban,
    Group,
    Instance,
    Invitation,
    JoinRequest,
    Post,
    World,
    made_id,
)
from lastcall.vrchat.simulator.seed import Seed

_ASK, _INVITED, _BANNED, _LEFT = slice(9, 14), slice(14, 17), slice(17, 19), slice(19, 20)
"""Which of the strangers; those before do nothing yet."""

_POSTS = (
    ("Opening hours", "Friday and Saturday from nine in the evening, Europe time.", "public"),
    ("Photo night", "Bring a camera on Saturday. The best picture goes on the wall.", "group"),
)


def enliven(world: World, seed: Seed, now: datetime) -> None:
    """Let it go on in the seeded group as if it were an evening at ``now``. The account has no part in it."""
    group = world.groups[seed.group_id]
    _people_at_the_door(group, seed, now)
    _open(world, group, seed, 0, "members", seed.members[2:14])
    _open(world, group, seed, 1, "plus", seed.members[14:17])
    for number, (title, text, visibility) in enumerate(_POSTS):
        group.posts_made += 1
        post_id = made_id("not", group.id, group.posts_made)
        at = now - timedelta(days=9 - number * 4)
        group.posts[post_id] = Post(post_id, seed.owner_id, at, title, text, visibility)
        group.note(at, "group.post.create", seed.owner_id, post_id, title)
    for number, user_id in enumerate(seed.members[-6:]):
        at = now - timedelta(hours=44 - number * 7)
        group.members[user_id].joined_at = at
        group.note(at, "group.member.join", user_id, user_id, "joined")
    for user_id in seed.strangers[_LEFT]:
        group.note(now - timedelta(hours=30), "group.member.join", user_id, user_id, "joined")
        group.note(now - timedelta(hours=3), "group.member.leave", user_id, user_id, "left")


def _people_at_the_door(group: Group, seed: Seed, now: datetime) -> None:
    for number, user_id in enumerate(seed.strangers[_ASK]):
        at = now - timedelta(minutes=25 + number * 130)
        group.requests[user_id] = JoinRequest(made_id("gmem", group.id, user_id), user_id, at)
        group.note(at, "group.request.create", user_id, user_id, "asked to join")
    for number, user_id in enumerate(seed.strangers[_INVITED]):
        at = now - timedelta(hours=5 + number * 20)
        invitation_id = made_id("gmem", group.id, user_id)
        group.invitations[user_id] = Invitation(invitation_id, user_id, seed.owner_id, at)
        group.note(at, "group.invite.create", seed.owner_id, user_id, "invited")
    for number, user_id in enumerate(seed.strangers[_BANNED]):
        at = now - timedelta(hours=20 + number * 400)
        group.bans[user_id] = Ban(made_id("gmem", group.id, user_id), user_id, at)
        group.note(at, "group.user.ban", seed.owner_id, user_id, "banned")


def _open(world: World, group: Group, seed: Seed, place: int, access: str, people: tuple[str, ...]) -> None:
    number = f"{31_417 + place * 1_009:05d}"
    instance = Instance(
        world_id=seed.world_ids[place],
        id=f"{number}~group({group.id})~groupAccessType({access})~region(eu)",
        group_id=group.id,
        access=access,
        region="eu",
        people=set(people),
    )
    world.instances[instance.location] = instance
