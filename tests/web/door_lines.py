"""The lines of the routes at a club's door, and of a person's own data."""

from __future__ import annotations

from tests.web.route_lines import ACCOUNT_PAGE, MANAGERS_PAGE, STAFF_PAGE, Line, form, own_form, page

DOOR: dict[str, Line] = {
    "GET /invites/{token:str}": Line(200, 200, 200, 200, None, 404, 200, path="/invites/{invite}"),
    # These invitations wait for a decision, so that nobody joins the staff on the way.
    "POST /invites/{token:str}": Line(
        401, 401, 303, 303, 403, 404, 303, path="/invites/{invite}", who="operator"
    ),
    "POST /invites/{token:str}/sign-in": Line(
        303,
        303,
        303,
        303,
        403,
        404,
        303,
        path="/invites/{invite}/sign-in",
        fields={"email": "new@example.org"},
    ),
    # An invitation that nobody used; that withdrawing works is test_invite_pages' business.
    "POST /invites/{token:str}/withdraw": form("/invites/{invite}/withdraw", lacking=404, right=404),
    "GET /c/{slug:str}/staff/invites": MANAGERS_PAGE,
    "GET /c/{slug:str}/staff/invites/new": MANAGERS_PAGE,
    "POST /c/{slug:str}/staff/invites/new": form(
        right=200, unknown_path="/c/no-such-club", fields={"role": "{role}"}
    ),
    "GET /c/{slug:str}/staff/invites/revoke": MANAGERS_PAGE,
    "POST /c/{slug:str}/staff/invites/revoke": form(unknown_path="/c/no-such-club"),
    "GET /c/{slug:str}/staff/invites/{invite_id:str}": page("/c/night-shift/staff/invites/{invite_id}"),
    "GET /c/{slug:str}/staff/invites/{invite_id:str}/again": page(
        "/c/night-shift/staff/invites/{invite_id}/again"
    ),
    "POST /c/{slug:str}/staff/invites/{invite_id:str}/again": form(
        "/c/night-shift/staff/invites/{invite_id}/again", right=200
    ),
    "GET /c/{slug:str}/staff/invites/{invite_id:str}/revoke": page(
        "/c/night-shift/staff/invites/{invite_id}/revoke"
    ),
    "POST /c/{slug:str}/staff/invites/{invite_id:str}/revoke": form(
        "/c/night-shift/staff/invites/{invite_id}/revoke"
    ),
    "GET /c/{slug:str}/agents": MANAGERS_PAGE,
    "GET /c/{slug:str}/agents/{agent_id:str}": page("/c/night-shift/agents/{agent}"),
    "POST /c/{slug:str}/agents/{agent_id:str}": form(
        "/c/night-shift/agents/{agent}", fields={"name": "Robot", "grant": "ask", "seen": "{agent_seen}"}
    ),
    "GET /c/{slug:str}/agents/{agent_id:str}/{act:str}": page("/c/night-shift/agents/{agent}/block"),
    "POST /c/{slug:str}/agents/{agent_id:str}/{act:str}": form("/c/night-shift/agents/{agent}/responsible"),
    # The other tests' server has no Slack app, and nobody was sent a link: test_slack_pages has one with both.
    "GET /c/{slug:str}/slack": STAFF_PAGE,
    "POST /c/{slug:str}/slack": form(
        lacking=404, right=404, unknown_path="/c/no-such-club", fields={"role": "{role}"}
    ),
    "POST /c/{slug:str}/slack/remove": form(unknown_path="/c/no-such-club"),
    "POST /c/{slug:str}/slack/unlink": form(lacking=303, unknown_path="/c/no-such-club"),
    "GET /slack/installed": Line(401, 401, None, None, None, None, 404),
    "GET /slack/connect/{token:str}": Line(404, 404, None, None, None, 404, 404, path="/slack/connect/none"),
    "POST /slack/connect/{token:str}/sign-in": Line(
        404, 404, None, None, 403, 404, 404, path="/slack/connect/none/sign-in"
    ),
    "POST /slack/connect/{token:str}/ask": Line(
        401, 401, None, None, 403, 404, 404, path="/slack/connect/none/ask"
    ),
    "POST /slack/connect/{token:str}/confirm": Line(
        401, 401, None, None, 403, 404, 404, path="/slack/connect/none/confirm"
    ),
    "GET /c/{slug:str}/join-requests": page(lacking=404, unknown_path="/c/no-such-club"),
    "GET /requests": ACCOUNT_PAGE,
    # Somebody else's request is nobody's; that one's own is withdrawn is test_invite_pages' business.
    "POST /requests/{request_id:str}/withdraw": form("/requests/{waiting}/withdraw", lacking=404, right=404),
    "GET /c/{slug:str}/join-requests/{request_id:str}": page(
        "/c/night-shift/join-requests/{waiting}", lacking=404
    ),
    "POST /c/{slug:str}/join-requests/{request_id:str}": form(
        "/c/night-shift/join-requests/{waiting}", lacking=404, fields={"decision": "reject"}
    ),
    # It is decided by then, which the page says.
    "POST /c/{slug:str}/join-requests": form(
        lacking=404,
        right=200,
        unknown_path="/c/no-such-club",
        fields={"decision": "reject", "request": "{waiting}"},
    ),
    "GET /c/{slug:str}/join-requests/{request_id:str}/delete": page(
        "/c/night-shift/join-requests/{waiting}/delete", lacking=404
    ),
    "POST /c/{slug:str}/join-requests/{request_id:str}/delete": form(
        "/c/night-shift/join-requests/{waiting}/delete", lacking=404
    ),
    "POST /c/{slug:str}/export": form(right=200, unknown_path="/c/no-such-club"),
    "GET /me/privacy": ACCOUNT_PAGE,
    "POST /me/privacy/export": own_form(right=200),
    "GET /me/privacy/erase": ACCOUNT_PAGE,
    # Another address than their own is typed.
    "POST /me/privacy/erase": own_form(right=422, fields={"email": "x"}),
}
