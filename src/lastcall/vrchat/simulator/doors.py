"""The way into a group and out of it, as an account goes it by itself."""

from __future__ import annotations

from lastcall.vrchat.simulator import shapes
from lastcall.vrchat.simulator.messages import FULL_STOP, Reply, Request, json_reply, refusal
from lastcall.vrchat.simulator.model import Group, JoinRequest, Member, User, made_id
from lastcall.vrchat.simulator.reads import no_group, not_a_member
from lastcall.vrchat.simulator.site import Site
from lastcall.vrchat.simulator.writes import record


def join(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """``POST …/join``: a member at once where the group is open or has invited, else one who asked.

    The answer is the record of the standing. A group that the account has blocked stays shut only where
    ``confirmOverrideBlock`` is sent as false, as with invitations.
    """
    group = site.world.groups.get(group_id)
    if group is None or shapes.hides(group, actor.id):
        return no_group()
    refused = _refused(request, actor, group)
    if refused is not None:
        return refused
    member_id = made_id("gmem", group.id, actor.id)
    group.blocked_by.discard(actor.id)
    if group.join_state == "open" or actor.id in group.invitations:
        group.invitations.pop(actor.id, None)
        group.requests.pop(actor.id, None)
        group.members[actor.id] = Member(member_id, actor.id, site.now())
        record(site, request, actor, group, "group.member.join", actor.id)
    else:
        group.requests[actor.id] = JoinRequest(member_id, actor.id, site.now())
        record(site, request, actor, group, "group.request.create", actor.id)
    return json_reply(shapes.member(site.world, group, actor.id))


def _refused(request: Request, actor: User, group: Group) -> Reply | None:
    if actor.id in group.members:
        return refusal(400, "You're already a member\u01c3")
    if actor.id in group.blocked_by and request.parameter("confirmOverrideBlock") == "false":
        return refusal(400, f"You have blocked this group{FULL_STOP}")
    if actor.id in group.bans:
        return refusal(403, f"You can't join this group{FULL_STOP}")
    if actor.is_in_too_many_groups:
        return refusal(403, f"You can't join right now because you're in too many groups{FULL_STOP}")
    if actor.id in group.invitations:
        return None
    if actor.id in group.requests:
        return refusal(400, f"You've already asked to join this group{FULL_STOP}")
    if group.join_state not in ("open", "request"):
        return refusal(403, f"You can't join this group without an invite{FULL_STOP}")
    return None


def leave(site: Site, request: Request, actor: User, group_id: str) -> Reply:
    """``POST …/leave``; answered with an empty body. The owner stays."""
    group = site.world.groups.get(group_id)
    if group is None:
        return no_group()
    if actor.id not in group.members:
        return not_a_member()
    if actor.id == group.owner_id:
        return refusal(403, f"You can't leave a group that you own{FULL_STOP}")
    del group.members[actor.id]
    record(site, request, actor, group, "group.member.leave", actor.id)
    return Reply(200, b"")
