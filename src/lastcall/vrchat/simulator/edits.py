"""Changes that somebody else makes at VRChat while Lastcall works: a grant goes, a member leaves, a session
ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from lastcall.clock import Clock
from lastcall.vrchat.simulator.model import (
    Ban,
    Group,
    Instance,
    Invitation,
    JoinRequest,
    Member,
    Post,
    World,
    made_id,
)


def _take_grant(_clock: Clock, _world: World, group: Group, user_id: str, grant: str) -> None:
    group.members[user_id].grants.discard(grant)


def _give_grant(_clock: Clock, _world: World, group: Group, user_id: str, grant: str) -> None:
    group.members[user_id].grants.add(grant)


def _remove_member(_clock: Clock, _world: World, group: Group, user_id: str) -> None:
    group.members.pop(user_id, None)


def _add_member(clock: Clock, world: World, group: Group, user_id: str) -> None:
    group.invitations.pop(user_id, None)
    group.requests.pop(user_id, None)
    group.bans.pop(user_id, None)
    user = world.users[user_id]
    group.members[user.id] = Member(made_id("gmem", group.id, user.id), user.id, clock.wall())


def _ban(clock: Clock, world: World, group: Group, user_id: str) -> None:
    group.members.pop(user_id, None)
    user = world.users[user_id]
    group.bans[user.id] = Ban(made_id("gmem", group.id, user.id), user.id, clock.wall())


def _unban(_clock: Clock, _world: World, group: Group, user_id: str) -> None:
    group.bans.pop(user_id, None)


def _invite(clock: Clock, world: World, group: Group, user_id: str) -> None:
    user = world.users[user_id]
    invitation_id = made_id("gmem", group.id, user.id)
    group.invitations[user.id] = Invitation(invitation_id, user.id, group.owner_id, clock.wall())


def _block(_clock: Clock, world: World, group: Group, user_id: str) -> None:
    """The person wants nothing of the group any more, which ends their standing in it."""
    group.members.pop(user_id, None)
    group.blocked_by.add(world.users[user_id].id)


def _ask_to_join(clock: Clock, world: World, group: Group, user_id: str) -> None:
    user = world.users[user_id]
    group.requests[user.id] = JoinRequest(made_id("gmem", group.id, user.id), user.id, clock.wall())


def _withdraw_request(_clock: Clock, _world: World, group: Group, user_id: str) -> None:
    del group.requests[user_id]


def _join_many_groups(_clock: Clock, world: World, _group: Group, user_id: str) -> None:
    world.users[user_id].is_in_too_many_groups = True


def _publish_post(clock: Clock, _world: World, group: Group, title: str) -> None:
    """The owner's, to the group; its id is ``made_id("not", group.id, how many were made before + 1)``."""
    group.posts_made += 1
    post_id = made_id("not", group.id, group.posts_made)
    group.posts[post_id] = Post(post_id, group.owner_id, clock.wall(), title, title, "group")


def _delete_post(_clock: Clock, _world: World, group: Group, post_id: str) -> None:
    del group.posts[post_id]


def _delete_role(_clock: Clock, _world: World, group: Group, role_id: str) -> None:
    del group.roles[role_id]
    for member in group.members.values():
        member.role_ids = [kept for kept in member.role_ids if kept != role_id]


def _transfer(_clock: Clock, _world: World, group: Group, user_id: str) -> None:
    group.owner_id = group.members[user_id].user_id


def _set_privacy(_clock: Clock, _world: World, group: Group, privacy: str) -> None:
    group.privacy = privacy


def _set_join_state(_clock: Clock, _world: World, group: Group, join_state: str) -> None:
    """``open``, ``request``, ``invite`` or ``closed``."""
    group.join_state = join_state


def _rename(_clock: Clock, _world: World, group: Group, to: str) -> None:
    group.name = to


def _delete_group(_clock: Clock, world: World, group: Group) -> None:
    """Its instances go with it."""
    del world.groups[group.id]
    world.instances = {
        location: instance for location, instance in world.instances.items() if instance.group_id != group.id
    }


def _log(clock: Clock, _world: World, group: Group, event: str, user_id: str) -> None:
    """A line of the audit log, as if the owner had done it."""
    group.note(clock.wall(), event, group.owner_id, user_id, event)


def _befriend(_clock: Clock, world: World, _group: Group, user_id: str, other_id: str) -> None:
    world.friendships.add(frozenset((world.users[user_id].id, world.users[other_id].id)))


def _unfriend(_clock: Clock, world: World, _group: Group, user_id: str, other_id: str) -> None:
    world.friendships.discard(frozenset((user_id, other_id)))


def _open_instance(
    _clock: Clock, world: World, group: Group, world_id: str, number: str, access: str = "members"
) -> None:
    """Its id is ``number~region(eu)~group(…)~groupAccessType(…)``."""
    instance = Instance(
        world_id=world.places[world_id].id,
        id=f"{number}~region(eu)~group({group.id})~groupAccessType({access})",
        group_id=group.id,
        access=access,
        region="eu",
    )
    world.instances[instance.location] = instance


def _enter_instance(_clock: Clock, world: World, _group: Group, location: str, user_id: str) -> None:
    world.instances[location].people.add(world.users[user_id].id)


def _leave_instance(_clock: Clock, world: World, _group: Group, location: str, user_id: str) -> None:
    world.instances[location].people.discard(user_id)


def _close_instance(clock: Clock, world: World, _group: Group, location: str) -> None:
    world.instances[location].closed_at = clock.wall()


def _empty_instance(_clock: Clock, world: World, _group: Group, location: str) -> None:
    """The last one left: it is not active any more."""
    world.instances[location].people.clear()
    world.instances[location].is_active = False


def _age(_clock: Clock, world: World, _group: Group, user_id: str, joined_on: str) -> None:
    """Since when VRChat knows this account, as an ISO date."""
    world.users[user_id].joined_on = date.fromisoformat(joined_on)


def _end_sessions(_clock: Clock, world: World, _group: Group, user_id: str) -> None:
    world.sessions = {cookie: owner for cookie, owner in world.sessions.items() if owner != user_id}


EDITS: dict[str, Callable[..., None]] = {
    "take_grant": _take_grant,
    "give_grant": _give_grant,
    "remove_member": _remove_member,
    "add_member": _add_member,
    "ban": _ban,
    "unban": _unban,
    "invite": _invite,
    "block": _block,
    "ask_to_join": _ask_to_join,
    "withdraw_request": _withdraw_request,
    "join_many_groups": _join_many_groups,
    "publish_post": _publish_post,
    "delete_post": _delete_post,
    "delete_role": _delete_role,
    "transfer": _transfer,
    "set_privacy": _set_privacy,
    "set_join_state": _set_join_state,
    "rename": _rename,
    "delete_group": _delete_group,
    "log": _log,
    "befriend": _befriend,
    "unfriend": _unfriend,
    "open_instance": _open_instance,
    "enter_instance": _enter_instance,
    "leave_instance": _leave_instance,
    "close_instance": _close_instance,
    "empty_instance": _empty_instance,
    "age": _age,
    "end_sessions": _end_sessions,
}


def edit(clock: Clock, world: World, group_id: str, name: str, **arguments: str) -> None:
    """Make the change ``name`` in this group. Raises ``KeyError`` or ``TypeError`` for what does not
    exist."""
    EDITS[name](clock, world, world.groups[group_id], **arguments)
