"""Requests to join the group, as VRChat has them: who asked, and what the group answers."""

from __future__ import annotations

from lastcall.vrchat.simulator.messages import FULL_STOP, Reply, Request, refusal
from lastcall.vrchat.simulator.model import Member, User, made_id
from lastcall.vrchat.simulator.site import Site
from lastcall.vrchat.simulator.writes import allowed, record

_EVENTS = {"accept": "group.member.join", "reject": "group.request.reject"}


def answer_request(site: Site, request: Request, actor: User, group_id: str, user_id: str) -> Reply:
    """``PUT …/requests/{user}`` with ``action``; what it did is answered with an empty body.

    An acceptance is refused with 403 over the number of groups of the person who asked, which says nothing
    about the account that accepts.
    """
    group = allowed(site, actor, group_id, "group-invites-manage")
    if isinstance(group, Reply):
        return group
    action = request.json().get("action")
    if action not in _EVENTS:
        return refusal(400, '"action" must be one of: accept, reject')
    user = site.world.users.get(user_id)
    if user is not None and user_id in group.members:
        return refusal(400, f"User {user.display_name} is already a member of this group{FULL_STOP}")
    if user is None or user_id not in group.requests:
        return refusal(
            400, f"You can't {action} a join request for a user who hasn't requested to join{FULL_STOP}"
        )
    if action == "accept":
        if user.is_in_too_many_groups:
            words = f"{user.display_name} can't join right now because they're in too many groups"
            return refusal(403, f"{words}{FULL_STOP}")
        group.invitations.pop(user_id, None)
        group.members[user_id] = Member(made_id("gmem", group.id, user_id), user_id, site.now())
    del group.requests[user_id]
    record(site, request, actor, group, _EVENTS[action], user_id)
    return Reply(200, b"")
