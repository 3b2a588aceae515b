"""The lines of the routes at a club's door, and of a person's own data."""

from __future__ import annotations

from tests.web.route_lines import ACCOUNT_PAGE, MANAGERS_PAGE, Line, at

DOOR: dict[str, Line] = {
    "GET /invites/{token:str}": Line(200, 200, 200, 200, None, 404, 200, path=at("/invites/{invite}")),
    # These invitations wait for a decision, so that nobody joins the staff on the way.
    "POST /invites/{token:str}": Line(
        401, 401, 303, 303, 403, 404, 303, who="operator", path=at("/invites/{invite}")
    ),
    "POST /invites/{token:str}/sign-in": Line(
        303,
        303,
        303,
        303,
        403,
        404,
        303,
        path=at("/invites/{invite}/sign-in"),
        fields=lambda *_: {"email": "new@example.org"},
    ),
    # An invitation that nobody used; that withdrawing works is test_invite_pages' business.
    "POST /invites/{token:str}/withdraw": Line(
        401, 401, 404, 404, 403, 404, 404, path=at("/invites/{invite}/withdraw")
    ),
    "GET /c/{slug:str}/staff/invites": MANAGERS_PAGE,
    "GET /c/{slug:str}/staff/invites/new": MANAGERS_PAGE,
    "POST /c/{slug:str}/staff/invites/new": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        200,
        unknown_path="/c/no-such-club",
        fields=lambda _world, ids: {"role": ids["role"]},
    ),
    "GET /c/{slug:str}/staff/invites/{invite_id:str}/revoke": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/staff/invites/{invite_id}/revoke")
    ),
    "POST /c/{slug:str}/staff/invites/{invite_id:str}/revoke": Line(
        401, 401, 404, 403, 403, 404, 303, path=at("/c/night-shift/staff/invites/{invite_id}/revoke")
    ),
    "GET /c/{slug:str}/join-requests": Line(
        401, 401, 404, 404, None, 404, 200, unknown_path="/c/no-such-club"
    ),
    "GET /c/{slug:str}/join-requests/{request_id:str}": Line(
        401, 401, 404, 404, None, 404, 200, path=at("/c/night-shift/join-requests/{waiting}")
    ),
    "POST /c/{slug:str}/join-requests/{request_id:str}": Line(
        401,
        401,
        404,
        404,
        403,
        404,
        303,
        path=at("/c/night-shift/join-requests/{waiting}"),
        fields=lambda *_: {"decision": "reject"},
    ),
    "POST /c/{slug:str}/export": Line(401, 401, 404, 403, 403, 404, 200, unknown_path="/c/no-such-club"),
    "GET /me/privacy": ACCOUNT_PAGE,
    "POST /me/privacy/export": Line(401, 401, None, None, 403, None, 200),
    "GET /me/privacy/erase": ACCOUNT_PAGE,
    # Another address than their own is typed.
    "POST /me/privacy/erase": Line(401, 401, None, None, 403, None, 422, fields=lambda *_: {"email": "x"}),
}
