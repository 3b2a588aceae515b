"""Which endpoint answers which request."""

from __future__ import annotations

import re
from collections.abc import Callable

from lastcall.vrchat.simulator import auth, doors, places, posts, reads, requests, writes
from lastcall.vrchat.simulator.messages import Reply, Request, flat_refusal
from lastcall.vrchat.simulator.site import Site

OpenEndpoint = Callable[[Site, Request], Reply]

_OPEN: dict[tuple[str, str], OpenEndpoint] = {
    ("GET", "/auth/user"): auth.current_user,
    ("GET", "/auth"): auth.token,
    ("POST", "/auth/twofactorauth/totp/verify"): auth.verify_totp,
    ("POST", "/auth/twofactorauth/emailotp/verify"): auth.verify_mailed_code,
    ("PUT", "/logout"): auth.sign_out,
}

_SIGNED_IN: list[tuple[str, re.Pattern[str], Callable[..., Reply]]] = [
    (method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), endpoint)
    for method, path, endpoint in (
        ("GET", "/groups/{group_id}", reads.get_group),
        ("GET", "/groups/{group_id}/roles", reads.get_roles),
        ("GET", "/groups/{group_id}/members", reads.get_members),
        ("GET", "/groups/{group_id}/members/search", reads.search_members),
        ("GET", "/groups/{group_id}/members/{user_id}", reads.get_member),
        ("GET", "/groups/{group_id}/instances", reads.get_instances),
        ("POST", "/groups/{group_id}/join", doors.join),
        ("POST", "/groups/{group_id}/leave", doors.leave),
        ("GET", "/groups/{group_id}/invites", reads.get_invitations),
        ("GET", "/groups/{group_id}/requests", reads.get_requests),
        ("GET", "/groups/{group_id}/bans", reads.get_bans),
        ("GET", "/groups/{group_id}/auditLogs", reads.get_audit_log),
        ("PUT", "/groups/{group_id}/members/{user_id}/roles/{role_id}", writes.add_role),
        ("DELETE", "/groups/{group_id}/members/{user_id}/roles/{role_id}", writes.remove_role),
        ("POST", "/groups/{group_id}/invites", writes.invite),
        ("DELETE", "/groups/{group_id}/invites/{user_id}", writes.uninvite),
        ("PUT", "/groups/{group_id}/requests/{user_id}", requests.answer_request),
        ("DELETE", "/groups/{group_id}/members/{user_id}", writes.kick),
        ("POST", "/groups/{group_id}/bans", writes.ban),
        ("DELETE", "/groups/{group_id}/bans/{user_id}", writes.unban),
        ("GET", "/groups/{group_id}/posts", posts.get_posts),
        ("POST", "/groups/{group_id}/posts", posts.add_post),
        ("PUT", "/groups/{group_id}/posts/{post_id}", posts.edit_post),
        ("DELETE", "/groups/{group_id}/posts/{post_id}", posts.delete_post),
        ("GET", "/worlds/{world_id}", places.get_place),
        ("POST", "/instances", places.create_instance),
        ("GET", "/instances/{location}", places.get_instance),
        ("DELETE", "/instances/{location}", places.close_instance),
        ("GET", "/user/{user_id}/friendStatus", places.get_friend_status),
        ("POST", "/invite/{user_id}", places.invite_to_instance),
    )
]


def respond(site: Site, request: Request) -> Reply:
    """Apply the request to the world and answer it, in one step: nothing else runs in between."""
    if not request.headers.get("user-agent"):
        return flat_refusal(403, "Please identify your application with a User-Agent")
    limited = site.limited(request)
    if limited is not None:
        return limited
    open_endpoint = _OPEN.get((request.method, request.path))
    if open_endpoint is not None:
        return open_endpoint(site, request)
    for method, pattern, endpoint in _SIGNED_IN:
        match = pattern.fullmatch(request.path)
        if match is not None and method == request.method:
            user = site.session_user(request)
            if user is None or site.needs_second_factor(request, user):
                return auth.missing_credentials()
            return endpoint(site, request, user, **match.groupdict())
    return flat_refusal(404, "Not found")
