"""The writes, with the refusals and the quirks of VRChat. Whatever is accepted is in the ledger before it
is answered."""

from __future__ import annotations

from lastcall.vrchat.simulator import shapes
from lastcall.vrchat.simulator.messages import FULL_STOP, Reply, Request, json_reply, refusal, success
from lastcall.vrchat.simulator.model import Ban, Group, Invitation, User, made_id
from lastcall.vrchat.simulator.reads import no_group, not_a_member
from lastcall.vrchat.simulator.site import Site


def allowed(site: Site, actor: User, group_id: str, *grants: str) -> Group | Reply:
    """The group, if the actor is in it and holds these grants; else the refusal."""
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if actor.id not in group.members:
        return not_a_member()
    if not group.lets(actor.id, *grants):
        return refusal(403, f"You're not allowed to do that{FULL_STOP}")
    return group


def record(
    site: Site, request: Request, actor: User, group: Group, event: str, target: str, *, changed: bool = True
) -> None:
    """Write the applied change into the ledger and the group's log; ``target`` is a person or a post."""
    now = site.now()
    site.ledger.record(
        now,
        request.method,
        request.path,
        action=event,
        actor=actor.id,
        group=group.id,
        target=target,
        changed=changed,
        request_id=request.headers.get("x-request-id"),
    )
    user = site.world.users.get(target)
    name = target if user is None else user.display_name
    group.note(now, event, actor.id, target, f"{actor.display_name}: {event} for {name}")


def add_role(site: Site, request: Request, actor: User, group_id: str, user_id: str, role_id: str) -> Reply:
    """``PUT …/members/{user}/roles/{role}``: a role already held is accepted again."""
    group = allowed(site, actor, group_id, "group-roles-assign", "group-members-manage")
    if isinstance(group, Reply):
        return group
    member = group.members.get(user_id)
    if member is None:
        return refusal(404, f"Can't find that member{FULL_STOP}")
    if role_id not in group.roles:
        return refusal(404, f"Can't find that role{FULL_STOP}")
    is_new = role_id not in member.role_ids
    if is_new:
        member.role_ids.append(role_id)
    record(site, request, actor, group, "group.member.role.assign", user_id, changed=is_new)
    return json_reply(member.role_ids)


def remove_role(
    site: Site, request: Request, actor: User, group_id: str, user_id: str, role_id: str
) -> Reply:
    """``DELETE …/members/{user}/roles/{role}``."""
    group = allowed(site, actor, group_id, "group-roles-assign", "group-members-manage")
    if isinstance(group, Reply):
        return group
    member = group.members.get(user_id)
    if member is None or role_id not in group.roles:
        return refusal(404, f"Can't find that member{FULL_STOP}")
    had = role_id in member.role_ids
    if had:
        member.role_ids.remove(role_id)
    record(site, request, actor, group, "group.member.role.unassign", user_id, changed=had)
    return json_reply(member.role_ids)


def invite(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """``POST …/invites``. ``confirmOverrideBlock`` is true unless it is sent: then a banned person is
    unbanned."""
    group = allowed(site, actor, group_id, "group-invites-manage")
    if isinstance(group, Reply):
        return group
    body = request.json()
    user_id = body.get("userId")
    user = site.world.users.get(user_id) if isinstance(user_id, str) else None
    if user is None:
        return refusal(404, f"Can't find that user{FULL_STOP}")
    if user.id in group.members:
        return refusal(400, f"User {user.display_name} is already a member of this group{FULL_STOP}")
    if user.id in group.invitations:
        return refusal(400, f"User {user.display_name} is already invited{FULL_STOP}")
    if user.id in group.bans:
        if body.get("confirmOverrideBlock", True) is not True:
            return refusal(403, f"You can't invite that user{FULL_STOP}")
        del group.bans[user.id]
    invitation_id = made_id("gmem", group.id, user.id)
    group.invitations[user.id] = Invitation(invitation_id, user.id, actor.id, site.now())
    record(site, request, actor, group, "group.invite.create", user.id)
    return success("Invite sent\u01c3")


def ban(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """``POST …/bans``: the person is no member and not invited any more."""
    group = allowed(site, actor, group_id, "group-bans-manage", "group-members-manage")
    if isinstance(group, Reply):
        return group
    user_id = request.json().get("userId")
    user = site.world.users.get(user_id) if isinstance(user_id, str) else None
    if user is None:
        return refusal(404, f"Can't find that user{FULL_STOP}")
    if user.id in group.bans:
        return refusal(400, f"User is already banned{FULL_STOP}")
    if user.id in (group.owner_id, actor.id):
        return refusal(403, f"You can't ban that user{FULL_STOP}")
    member = group.members.pop(user.id, None)
    group.invitations.pop(user.id, None)
    group.requests.pop(user.id, None)
    ban_id = member.id if member is not None else made_id("gmem", group.id, user.id)
    group.bans[user.id] = Ban(ban_id, user.id, site.now())
    record(site, request, actor, group, "group.user.ban", user.id)
    return json_reply(shapes.member(site.world, group, user.id))


def uninvite(site: Site, request: Request, actor: User, group_id: str, user_id: str) -> Reply:
    """``DELETE …/invites/{user}``."""
    group = allowed(site, actor, group_id, "group-invites-manage")
    if isinstance(group, Reply):
        return group
    if group.invitations.pop(user_id, None) is None:
        return refusal(400, f"You can't uninvite a user who wasn't invited{FULL_STOP}")
    record(site, request, actor, group, "group.invite.cancel", user_id)
    return success("Invite deleted!")


def kick(site: Site, request: Request, actor: User, group_id: str, user_id: str) -> Reply:
    """``DELETE …/members/{user}``."""
    group = allowed(site, actor, group_id, "group-members-remove", "group-members-manage")
    if isinstance(group, Reply):
        return group
    if user_id not in group.members:
        return refusal(404, f"Can't find that member{FULL_STOP}")
    if user_id in (group.owner_id, actor.id):
        return refusal(403, f"You can't remove that user{FULL_STOP}")
    del group.members[user_id]
    record(site, request, actor, group, "group.member.remove", user_id)
    return success("Group member deleted!")


def unban(site: Site, request: Request, actor: User, group_id: str, user_id: str) -> Reply:
    """``DELETE …/bans/{user}``: answered with the record as it was; the person is no member by it."""
    group = allowed(site, actor, group_id, "group-bans-manage", "group-members-manage")
    if isinstance(group, Reply):
        return group
    if user_id not in group.bans:
        return refusal(400, f"User is not banned{FULL_STOP}")
    lifted = shapes.member(site.world, group, user_id) | {"membershipStatus": "inactive", "bannedAt": None}
    del group.bans[user_id]
    record(site, request, actor, group, "group.user.unban", user_id)
    return json_reply(lifted)
