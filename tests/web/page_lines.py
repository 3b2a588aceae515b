"""A line for every page: what it answers to every wrong way, and to the right one."""

from __future__ import annotations

from tests.web.conftest import ROLE, user
from tests.web.door_lines import DOOR
from tests.web.route_lines import (
    ACCOUNT_PAGE,
    MANAGERS_PAGE,
    OPERATORS_PAGE,
    OWNERS_PAGE,
    STAFF_PAGE,
    Line,
    at,
)

from lastcall.db.ids import encode_id, new_id

MAIL = "owner@example.org"
CLUB = {"name": "Night Shift", "slug": "night-shift", "zone": "UTC", "retention_days": "30"}
COMPOSE = {"role": ROLE, "people": user(1), "when": "now", "zone": "UTC"}

LINES: dict[str, Line] = DOOR | {
    "GET /static/{name:str}": Line(200, 200, None, None, None, 404, 200, path=at("/static/{style}")),
    "GET /ops/health": Line(200, 200, None, None, None, None, 200),
    "GET /sign-in": Line(200, 200, None, None, None, None, 200),
    "GET /sign-in/{token:str}": Line(200, 200, None, None, None, 401, 200, path=at("/sign-in/{link}")),
    "POST /sign-in": Line(303, 303, None, None, 403, None, 303, fields=lambda *_: {"email": MAIL}),
    "GET /sign-in/code": Line(200, 200, None, None, None, None, 200),
    # A code that nobody was sent; that the right one signs in is test_sign_in_pages' business.
    "POST /sign-in/code": Line(401, 401, None, None, 403, None, 401, fields=lambda *_: {"code": "ab12cd34"}),
    "GET /sign-in/confirm": Line(401, 401, None, None, None, None, 303),
    "POST /sign-in/confirm/mail": Line(401, 401, None, None, 403, None, 303),
    "POST /sign-in/confirm": Line(401, 401, None, None, 403, None, 422, fields=lambda *_: {"code": "x"}),
    # The other tests' server has an address without passkeys and no provider: test_ways has one with both.
    "POST /sign-in/passkey/options": Line(404, 404, None, None, 403, None, 404),
    "POST /sign-in/passkey": Line(404, 404, None, None, 403, None, 404),
    "POST /sign-in/confirm/passkey/options": Line(401, 401, None, None, 403, None, 404),
    "POST /sign-in/confirm/passkey": Line(401, 401, None, None, 403, None, 404),
    "POST /sign-in/with/{provider:str}": Line(404, 404, None, None, 403, 404, 404),
    "GET /sign-in/with/{provider:str}/back": Line(404, 404, None, None, None, 404, 404),
    "POST /sign-in/confirm/with/{provider:str}": Line(401, 401, None, None, 403, 404, 404),
    "GET /me/sign-in": ACCOUNT_PAGE,
    "POST /me/passkeys/options": Line(401, 401, None, None, 403, None, 404),
    "POST /me/passkeys": Line(401, 401, None, None, 403, None, 404),
    "POST /me/passkeys/{passkey_id:str}/remove": Line(
        401, 401, 404, 404, 403, 404, 303, path=at("/me/passkeys/{passkey}/remove")
    ),
    "POST /me/link/{provider:str}": Line(401, 401, None, None, 403, 404, 404),
    "POST /me/identities/{identity_id:str}/remove": Line(
        401, 401, 404, 404, 403, 404, 303, path=at("/me/identities/{identity}/remove")
    ),
    "GET /": Line(401, 401, None, None, None, None, 200),
    "GET /c/{slug:str}/scheduled": STAFF_PAGE,
    "GET /c/{slug:str}/scheduled/history": STAFF_PAGE,
    "GET /c/{slug:str}/requests/{request_id:str}": Line(
        401, 401, 404, 404, None, 404, 200, path=at("/c/night-shift/requests/{request}")
    ),
    "GET /c/{slug:str}/scheduled/{operation_id:str}/cancel": Line(
        401, 401, 404, 404, None, 404, 200, path=at("/c/night-shift/scheduled/{operation}/cancel?revision=1")
    ),
    "POST /c/{slug:str}/scheduled/{operation_id:str}/cancel": Line(
        401,
        401,
        404,
        404,
        403,
        404,
        303,
        path=at("/c/night-shift/scheduled/{operation}/cancel"),
        fields=lambda _world, _ids: {"revision": "1"},
    ),
    "GET /c/{slug:str}/live/scheduled": STAFF_PAGE,
    "GET /c/{slug:str}/new": STAFF_PAGE,
    "GET /c/{slug:str}/new/{kind:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/new/ban_member")
    ),
    "POST /c/{slug:str}/new/{kind:str}/review": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        200,
        path=at("/c/night-shift/new/assign_role/review"),
        fields=lambda *_: COMPOSE,
    ),
    "POST /c/{slug:str}/new/{kind:str}": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/new/assign_role"),
        fields=lambda *_: COMPOSE | {"request_key": encode_id(new_id())},
    ),
    "GET /c/{slug:str}/start": OWNERS_PAGE,
    "GET /c/{slug:str}/staff": MANAGERS_PAGE,
    "POST /c/{slug:str}/staff/{person_id:str}/roles": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/staff/{member}/roles"),
        fields=lambda _world, ids: {"role_id": ids["role"]},
    ),
    "GET /c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/staff/{member}/roles/{role}")
    ),
    "POST /c/{slug:str}/staff/{person_id:str}/roles/{role_id:str}": Line(
        401, 401, 404, 403, 403, 404, 303, path=at("/c/night-shift/staff/{member}/roles/{role}")
    ),
    "GET /c/{slug:str}/roles": MANAGERS_PAGE,
    "GET /c/{slug:str}/roles/new": OWNERS_PAGE,
    "POST /c/{slug:str}/roles/new": Line(
        401,
        401,
        404,
        403,
        403,
        None,
        303,
        fields=lambda *_: {"name": "Greeter", "permission": "view_members"},
    ),
    "GET /c/{slug:str}/roles/{role_id:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/roles/{role}")
    ),
    "POST /c/{slug:str}/roles/{role_id:str}": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/roles/{spare_role}"),
        fields=lambda _world, ids: {"name": "Helpers", "seen": ids["role_seen"]},
    ),
    "GET /c/{slug:str}/roles/{role_id:str}/delete": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/roles/{other_role}/delete")
    ),
    "POST /c/{slug:str}/roles/{role_id:str}/delete": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/roles/{other_role}/delete"),
        fields=lambda _world, ids: {"seen": ids["role_seen"]},
    ),
    "GET /c/{slug:str}/log": MANAGERS_PAGE,
    "GET /c/{slug:str}/log/{form:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/log/csv")
    ),
    "GET /c/{slug:str}/visibility": OWNERS_PAGE,
    "POST /c/{slug:str}/visibility/{category:str}": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        path=at("/c/night-shift/visibility/group_size"),
        fields=lambda *_: {"audience": "owner", "seen": ""},
    ),
    "GET /c/{slug:str}/settings": OWNERS_PAGE,
    "POST /c/{slug:str}/settings": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        unknown_path="/c/no-such-club",
        fields=lambda _world, ids: CLUB | {"seen": ids["club_seen"]},
    ),
    "GET /c/{slug:str}/settings/{act:str}": Line(
        401, 401, 404, 403, None, 404, 200, path=at("/c/night-shift/settings/pause")
    ),
    "POST /c/{slug:str}/settings/{act:str}": Line(
        401, 401, 404, 403, 403, 404, 303, path=at("/c/night-shift/settings/pause")
    ),
    "GET /c/{slug:str}/settings/transfer": OWNERS_PAGE,
    "GET /c/{slug:str}/settings/delete": OWNERS_PAGE,
    "GET /operator/clubs": OPERATORS_PAGE,
    "POST /operator/clubs": Line(
        401,
        401,
        404,
        404,
        403,
        None,
        303,
        who="operator",
        fields=lambda *_: CLUB | {"slug": "new-club", "owner_email": "new-owner@example.org"},
    ),
    "GET /me": ACCOUNT_PAGE,
    "POST /me/name": Line(401, 401, None, None, 403, None, 303, fields=lambda *_: {"display_name": "Owner"}),
    "GET /me/email": ACCOUNT_PAGE,
    "POST /me/email": Line(
        401, 401, None, None, 403, None, 303, fields=lambda *_: {"email": "o@example.org"}
    ),
    "GET /me/email/confirm": ACCOUNT_PAGE,
    "POST /me/email/confirm": Line(401, 401, None, None, 403, None, 422, fields=lambda *_: {"code": "x"}),
    "POST /me/mails": Line(401, 401, None, None, 403, None, 303),
    "POST /me/sessions/{session_id:str}": Line(
        401, 401, 404, 404, 403, 404, 303, path=at("/me/sessions/{session}")
    ),
    "POST /me/sessions": Line(401, 401, None, None, 403, None, 303),
    "GET /me/tokens/new": ACCOUNT_PAGE,
    "POST /me/tokens/new": Line(
        401, 401, None, None, 403, None, 200, fields=lambda *_: {"name": "Bot", "scope": "read", "days": "7"}
    ),
    "GET /me/tokens/{token_id:str}": Line(401, 401, 404, 404, None, 404, 200, path=at("/me/tokens/{token}")),
    "POST /me/tokens/{token_id:str}": Line(401, 401, 404, 404, 403, 404, 303, path=at("/me/tokens/{token}")),
    "GET /operator/people": OPERATORS_PAGE,
    "POST /operator/people": Line(
        401, 401, 404, 404, 403, None, 303, who="operator", fields=lambda *_: {"email": "new@example.org"}
    ),
    "GET /operator/people/{person_id:str}": Line(
        401, 401, 404, 404, None, 404, 200, who="operator", path=at("/operator/people/{person}")
    ),
    "GET /operator/people/{person_id:str}/{act:str}": Line(
        401, 401, 404, 404, None, 404, 200, who="operator", path=at("/operator/people/{person}/unblock")
    ),
    "POST /operator/people/{person_id:str}/{act:str}": Line(
        401, 401, 404, 404, 403, 404, 303, who="operator", path=at("/operator/people/{person}/unblock")
    ),
    "GET /operator/audit": OPERATORS_PAGE,
    "GET /operator": Line(401, 401, 404, 404, None, None, 200, who="operator"),
    "GET /operator/live": Line(401, 401, 404, 404, None, None, 200, who="operator"),
    "GET /operator/mail": Line(401, 401, 404, 404, None, None, 200, who="operator"),
    "GET /operator/{what:str}/{key:str}": Line(
        401, 401, 404, 404, None, 404, 200, who="operator", path=at("/operator/account/{account}")
    ),
    "POST /operator/{what:str}/{key:str}": Line(
        401,
        401,
        404,
        404,
        403,
        404,
        303,
        who="operator",
        path=at("/operator/account/{account}"),
        fields=lambda *_: {"on": "yes"},
    ),
    # The last lines, because they end what the others need: the session, the club, the owner.
    "POST /c/{slug:str}/settings/delete": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        422,  # It is not its short name; that the right one deletes is test_club_pages' business.
        unknown_path="/c/no-such-club",
        fields=lambda *_: {"confirm_slug": "another"},
    ),
    "POST /c/{slug:str}/settings/transfer": Line(
        401,
        401,
        404,
        403,
        403,
        404,
        303,
        unknown_path="/c/no-such-club",
        fields=lambda _world, ids: {"new_owner_id": ids["member"]},
    ),
    "POST /sign-in/{token:str}": Line(
        303, 303, None, None, 403, 401, 303, who="staff", path=at("/sign-in/{link}")
    ),
    "POST /sign-out": Line(401, 401, None, None, 403, None, 303),
}
