"""A line for every page: what it answers to every wrong way, and to the right one."""

from __future__ import annotations

from tests.web.asks_lines import ASKS
from tests.web.conftest import ROLE, user
from tests.web.connection_lines import CONNECTION
from tests.web.door_lines import DOOR
from tests.web.event_lines import EVENTS
from tests.web.inbox_lines import INBOX
from tests.web.route_lines import (
    ACCOUNT_PAGE,
    MANAGERS_PAGE,
    OPERATORS_PAGE,
    OWNERS_PAGE,
    STAFF_PAGE,
    Line,
    form,
    own_form,
    page,
)

from lastcall.db.ids import encode_id, new_id

MAIL = "owner@example.org"
CLUB = {"name": "Night Shift", "slug": "night-shift", "zone": "UTC", "retention_days": "30"}
COMPOSE = {"role": ROLE, "people": user(1), "when": "now", "zone": "UTC"}
ACCOUNT_LIMITS = {
    "requests_per_minute": "6",
    "writes_per_day": "500",
    "capacity": "40",
    "reserved_headroom": "4",
}
EDIT = {"people": user(9), "when": "now", "zone": "UTC", "seen": "1"}

LINES: dict[str, Line] = (
    ASKS
    | DOOR
    | INBOX
    | EVENTS
    | CONNECTION
    | {
        "GET /static/{name:str}": Line(200, 200, None, None, None, 404, 200, path="/static/{style}"),
        "GET /ops/health": Line(200, 200, None, None, None, None, 200),
        # They know no cookies; what a token may ask is test_ops' business.
        "GET /ops/next-wake": Line(401, 401, None, None, None, None, 401),
        "GET /ops/metrics": Line(401, 401, None, None, None, None, 401),
        "GET /sign-in": Line(200, 200, None, None, None, None, 200),
        "GET /sign-in/{token:str}": Line(200, 200, None, None, None, 401, 200, path="/sign-in/{link}"),
        "POST /sign-in": Line(303, 303, None, None, 403, None, 303, fields={"email": MAIL}),
        "GET /sign-in/code": Line(200, 200, None, None, None, None, 200),
        # A code that nobody was sent; that the right one signs in is test_sign_in_pages' business.
        "POST /sign-in/code": own_form(right=401, fields={"code": "ab12cd34"}),
        "GET /sign-in/confirm": Line(401, 401, None, None, None, None, 303),
        "POST /sign-in/confirm/mail": own_form(),
        "POST /sign-in/confirm": own_form(right=422, fields={"code": "x"}),
        # The other tests' server has an address without passkeys and no provider: test_ways has one with both.
        "POST /sign-in/passkey/options": Line(404, 404, None, None, 403, None, 404),
        "POST /sign-in/passkey": Line(404, 404, None, None, 403, None, 404),
        "POST /sign-in/confirm/passkey/options": own_form(right=404),
        "POST /sign-in/confirm/passkey": own_form(right=404),
        "POST /sign-in/with/{provider:str}": Line(404, 404, None, None, 403, 404, 404),
        "GET /sign-in/with/{provider:str}/back": Line(404, 404, None, None, None, 404, 404),
        "POST /sign-in/confirm/with/{provider:str}": Line(401, 401, None, None, 403, 404, 404),
        "GET /me/sign-in": ACCOUNT_PAGE,
        "POST /me/passkeys/options": own_form(right=404),
        "POST /me/passkeys": own_form(right=404),
        "POST /me/passkeys/{passkey_id:str}/remove": form("/me/passkeys/{passkey}/remove", lacking=404),
        "POST /me/link/{provider:str}": Line(401, 401, None, None, 403, 404, 404),
        "POST /me/identities/{identity_id:str}/remove": form("/me/identities/{identity}/remove", lacking=404),
        "GET /": Line(401, 401, None, None, None, None, 200),
        "GET /c/{slug:str}/scheduled": STAFF_PAGE,
        "GET /c/{slug:str}/scheduled/history": STAFF_PAGE,
        "GET /c/{slug:str}/clock": Line(
            *(401, 401, 404, 200, None, 404, 200),
            path=f"/c/night-shift/clock?nonce={'n' * 16}",
            unknown_path="/c/no-such-club",
        ),
        "GET /c/{slug:str}/requests/{request_id:str}": page("/c/night-shift/requests/{request}", lacking=404),
        "GET /c/{slug:str}/scheduled/{operation_id:str}/cancel": page(
            "/c/night-shift/scheduled/{operation}/cancel?revision=1", lacking=404
        ),
        "POST /c/{slug:str}/scheduled/{operation_id:str}/cancel": form(
            "/c/night-shift/scheduled/{operation}/cancel", lacking=404, fields={"revision": "1"}
        ),
        "GET /c/{slug:str}/scheduled/{operation_id:str}": page(
            "/c/night-shift/scheduled/{second}", lacking=404
        ),
        "GET /c/{slug:str}/scheduled/{operation_id:str}/edit": page(
            "/c/night-shift/scheduled/{second}/edit", lacking=404
        ),
        "POST /c/{slug:str}/scheduled/{operation_id:str}/edit/review": form(
            "/c/night-shift/scheduled/{second}/edit/review", lacking=404, right=200, fields=EDIT
        ),
        "POST /c/{slug:str}/scheduled/{operation_id:str}/edit": form(
            "/c/night-shift/scheduled/{second}/edit", lacking=404, fields=EDIT
        ),
        # Its outcome is no riddle; that a finding is kept is test_action_pages' business.
        "POST /c/{slug:str}/scheduled/{operation_id:str}/settle": form(
            "/c/night-shift/scheduled/{second}/settle",
            lacking=404,
            right=409,
            fields={"seen": "0", "verdict": "happened", "note": "I saw it."},
        ),
        # What it reads is test_finding_pages' business; of a known outcome it is nothing.
        "POST /c/{slug:str}/scheduled/{operation_id:str}/read": form(
            "/c/night-shift/scheduled/{second}/read", lacking=404, right=200, fields={"tells": "bans"}
        ),
        "GET /c/{slug:str}/requests/{request_id:str}/cancel": page(
            "/c/night-shift/requests/{second_request}/cancel", lacking=404
        ),
        "POST /c/{slug:str}/requests/{request_id:str}/cancel": form(
            "/c/night-shift/requests/{second_request}/cancel", lacking=404
        ),
        "POST /c/{slug:str}/notices": form(lacking=303, unknown_path="/c/no-such-club"),
        "GET /c/{slug:str}/new": STAFF_PAGE,
        "GET /c/{slug:str}/new/{kind:str}": page("/c/night-shift/new/ban_member"),
        "POST /c/{slug:str}/new/{kind:str}/review": form(
            "/c/night-shift/new/assign_role/review", right=200, fields=COMPOSE
        ),
        "POST /c/{slug:str}/new/{kind:str}": form(
            "/c/night-shift/new/assign_role", fields=COMPOSE | {"request_key": encode_id(new_id())}
        ),
        # Opening a list leads to what VRChat is asked then; what stands there is test_members_pages' business.
        "GET /c/{slug:str}/members": Line(401, 401, 404, 403, None, 404, 303, unknown_path="/c/no-such-club"),
        "GET /c/{slug:str}/members/recent": STAFF_PAGE,
        "GET /c/{slug:str}/members/actions": MANAGERS_PAGE,
        "GET /c/{slug:str}/members/{tab:str}": Line(
            *(401, 401, 404, 403, None, 404, 303), path="/c/night-shift/members/directory"
        ),
        "POST /c/{slug:str}/members/actions/review": form(
            "/c/night-shift/members/actions/review",
            right=200,
            unknown_path="/c/no-such-club",
            fields={"act": "ban_member", "people": user(1)},
        ),
        # A read that nobody knows is one that is over: back to the list.
        "POST /c/{slug:str}/members/{tab:str}/review": form(
            "/c/night-shift/members/directory/review",
            fields={"act": "assign_role", "people": user(1), "role": ROLE, "read": "{request}"},
        ),
        # The others are for all staff: test_live.
        "GET /c/{slug:str}/live/{topic:str}": page("/c/night-shift/live/connection"),
        "GET /c/{slug:str}/posts": MANAGERS_PAGE,
        "GET /c/{slug:str}/posts/{draft_id:str}/discard": page("/c/night-shift/posts/{draft}/discard"),
        "POST /c/{slug:str}/posts/{draft_id:str}/discard": form(
            "/c/night-shift/posts/{draft}/discard", fields={"seen": "1"}
        ),
        "GET /c/{slug:str}/lists": MANAGERS_PAGE,
        "GET /c/{slug:str}/lists/new": MANAGERS_PAGE,
        "POST /c/{slug:str}/lists/new": form(unknown=None, fields={"name": "Guests", "people": user(1)}),
        "GET /c/{slug:str}/lists/{list_id:str}": page("/c/night-shift/lists/{list}"),
        "POST /c/{slug:str}/lists/{list_id:str}": form(
            "/c/night-shift/lists/{list}", fields={"name": "Guests", "people": user(2), "seen": "1"}
        ),
        "GET /c/{slug:str}/lists/{list_id:str}/delete": page("/c/night-shift/lists/{list}/delete"),
        "POST /c/{slug:str}/lists/{list_id:str}/delete": form(
            "/c/night-shift/lists/{spare_list}/delete", fields={"seen": "1"}
        ),
        "GET /c/{slug:str}/start": OWNERS_PAGE,
        "GET /c/{slug:str}/staff": MANAGERS_PAGE,
        "POST /c/{slug:str}/staff/{person_id:str}/roles": form(
            "/c/night-shift/staff/{member}/roles", fields={"role_id": "{role}"}
        ),
        "GET /c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}": page(
            "/c/night-shift/staff/{member}/roles/{role}"
        ),
        "POST /c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}": form(
            "/c/night-shift/staff/{member}/roles/{role}"
        ),
        "GET /c/{slug:str}/roles": MANAGERS_PAGE,
        "GET /c/{slug:str}/roles/new": OWNERS_PAGE,
        "POST /c/{slug:str}/roles/new": form(
            unknown=None, fields={"name": "Greeter", "permission": "view_members"}
        ),
        "GET /c/{slug:str}/roles/{role_id:str}": page("/c/night-shift/roles/{role}"),
        "POST /c/{slug:str}/roles/{role_id:str}": form(
            "/c/night-shift/roles/{spare_role}", fields={"name": "Helpers", "seen": "{role_seen}"}
        ),
        "GET /c/{slug:str}/roles/{role_id:str}/delete": page("/c/night-shift/roles/{other_role}/delete"),
        "POST /c/{slug:str}/roles/{role_id:str}/delete": form(
            "/c/night-shift/roles/{other_role}/delete", fields={"seen": "{role_seen}"}
        ),
        "GET /c/{slug:str}/log": MANAGERS_PAGE,
        "GET /c/{slug:str}/log/{form:str}": page("/c/night-shift/log/csv"),
        "GET /c/{slug:str}/visibility": OWNERS_PAGE,
        "POST /c/{slug:str}/visibility/{category:str}": form(
            "/c/night-shift/visibility/group_size", fields={"audience": "owner", "seen": ""}
        ),
        "GET /c/{slug:str}/settings": OWNERS_PAGE,
        "POST /c/{slug:str}/settings": form(
            unknown_path="/c/no-such-club", fields=CLUB | {"seen": "{club_seen}"}
        ),
        "GET /c/{slug:str}/settings/{act:str}": page("/c/night-shift/settings/pause"),
        "POST /c/{slug:str}/settings/{act:str}": form("/c/night-shift/settings/pause"),
        "GET /c/{slug:str}/settings/transfer": OWNERS_PAGE,
        "GET /c/{slug:str}/settings/delete": OWNERS_PAGE,
        "GET /operator/clubs": OPERATORS_PAGE,
        "POST /operator/clubs": form(
            lacking=404,
            unknown=None,
            who="operator",
            fields=CLUB | {"slug": "new-club", "owner_email": "new-owner@example.org"},
        ),
        "GET /me": ACCOUNT_PAGE,
        "POST /me/name": own_form(fields={"display_name": "Owner"}),
        "GET /me/email": ACCOUNT_PAGE,
        "POST /me/email": own_form(fields={"email": "o@example.org"}),
        "GET /me/email/confirm": ACCOUNT_PAGE,
        "POST /me/email/confirm": own_form(right=422, fields={"code": "x"}),
        "POST /me/mails": own_form(),
        "POST /me/sessions/{session_id:str}": form("/me/sessions/{session}", lacking=404),
        "POST /me/sessions": own_form(),
        "GET /me/tokens/new": ACCOUNT_PAGE,
        "POST /me/tokens/new": own_form(right=200, fields={"name": "Bot", "scope": "read", "days": "7"}),
        "GET /me/tokens/{token_id:str}": page("/me/tokens/{token}", lacking=404),
        "POST /me/tokens/{token_id:str}": form("/me/tokens/{token}", lacking=404),
        "GET /operator/people": OPERATORS_PAGE,
        "POST /operator/people": form(
            lacking=404, unknown=None, who="operator", fields={"email": "new@example.org"}
        ),
        "GET /operator/people/{person_id:str}": page(
            "/operator/people/{person}", lacking=404, who="operator"
        ),
        "GET /operator/people/{person_id:str}/{act:str}": page(
            "/operator/people/{person}/unblock", lacking=404, who="operator"
        ),
        "POST /operator/people/{person_id:str}/{act:str}": form(
            "/operator/people/{person}/unblock", lacking=404, who="operator"
        ),
        "GET /operator/audit": OPERATORS_PAGE,
        "GET /operator": OPERATORS_PAGE,
        "GET /operator/live": OPERATORS_PAGE,
        "GET /operator/mail": OPERATORS_PAGE,
        "POST /operator/messages/retry": form(
            lacking=404,
            unknown=None,
            who="operator",
            fields={"club": "{club}", "message": "{spare_message}"},
        ),
        "GET /c/{slug:str}/messages": STAFF_PAGE,
        "POST /c/{slug:str}/messages": form(lacking=303, unknown_path="/c/no-such-club"),
        "POST /c/{slug:str}/messages/{message_id:str}/retry": form("/c/night-shift/messages/{message}/retry"),
        "GET /operator/limits/{what:str}/{key:str}": page(
            "/operator/limits/fleet/all", lacking=404, who="operator"
        ),
        "POST /operator/limits/{what:str}/{key:str}": form(
            "/operator/limits/fleet/all", lacking=404, who="operator", fields={"requests_per_minute": "60"}
        ),
        "GET /operator/reassign/{key:str}": page(
            "/operator/reassign/{connection}", lacking=404, who="operator"
        ),
        # Its account works, so that it keeps the club.
        "POST /operator/reassign/{key:str}": form(
            "/operator/reassign/{connection}", lacking=404, who="operator", right=409
        ),
        "GET /operator/accounts/{account_id:str}": page(
            "/operator/accounts/{account}", lacking=404, who="operator"
        ),
        "POST /operator/accounts/{account_id:str}": form(
            "/operator/accounts/{account}", lacking=404, who="operator", fields=ACCOUNT_LIMITS
        ),
        "GET /operator/accounts/{account_id:str}/{to:str}": page(
            "/operator/accounts/{account}/degraded", lacking=404, who="operator"
        ),
        "POST /operator/accounts/{account_id:str}/{to:str}": form(
            "/operator/accounts/{account}/degraded", lacking=404, who="operator"
        ),
        "GET /operator/{what:str}/{key:str}": page(
            "/operator/account/{account}", lacking=404, who="operator"
        ),
        "POST /operator/{what:str}/{key:str}": form(
            "/operator/account/{account}", lacking=404, who="operator", fields={"on": "yes"}
        ),
        # The last lines, because they end what the others need: the session, the club, the owner.
        # Another name is typed; that the right one deletes is test_club_pages' business.
        "POST /c/{slug:str}/settings/delete": form(
            right=422, unknown_path="/c/no-such-club", fields={"confirm_slug": "another"}
        ),
        "POST /c/{slug:str}/settings/transfer": form(
            unknown_path="/c/no-such-club", fields={"new_owner_id": "{member}"}
        ),
        "POST /sign-in/{token:str}": Line(
            303, 303, None, None, 403, 401, 303, path="/sign-in/{link}", who="staff"
        ),
        "POST /sign-out": own_form(),
    }
)
