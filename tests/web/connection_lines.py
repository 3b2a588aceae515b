"""Lines of the Connection page and what is done there."""

from __future__ import annotations

from tests.web.route_lines import MANAGERS_PAGE, Line, form, page

from lastcall.db.ids import encode_id, new_id

AT = "/c/night-shift/connection"
NOBODYS = encode_id(new_id())

CONNECTION: dict[str, Line] = {
    "GET /c/{slug:str}/spending": MANAGERS_PAGE,
    "POST /c/{slug:str}/spending": form(
        unknown_path="/c/no-such-club",
        fields={"amount": "50", "warn": "80", "stop": "yes", "whose": " month"},
    ),
    "POST /c/{slug:str}/spending/{budget_id:str}/end": form(
        f"/c/night-shift/spending/{NOBODYS}/end", fields={"seen": "2026-01-01T00:00:00+00:00"}, right=404
    ),
    "POST /c/{slug:str}/spending/incidents/{incident_id:str}/leave": form(
        f"/c/night-shift/spending/incidents/{NOBODYS}/leave", right=404
    ),
    "GET /c/{slug:str}/connection": MANAGERS_PAGE,
    # The club is connected already.
    "POST /c/{slug:str}/connection": form(
        right=409, unknown_path="/c/no-such-club", fields={"group_id": "grp_2", "accepts": "yes"}
    ),
    "GET /c/{slug:str}/connection/features/{feature:str}": page(f"{AT}/features/posts"),
    "POST /c/{slug:str}/connection/features/{feature:str}": form(
        f"{AT}/features/posts", fields={"on": "yes"}
    ),
    "GET /c/{slug:str}/connection/roles/{role_id:str}": page(f"{AT}/roles/{{role}}"),
    "POST /c/{slug:str}/connection/roles/{role_id:str}": form(
        f"{AT}/roles/{{role}}", fields={"provider_role": "", "seen": "{role_seen}"}
    ),
    "GET /c/{slug:str}/connection/{act:str}": page(f"{AT}/disconnect"),
    "POST /c/{slug:str}/connection/{act:str}": form(f"{AT}/check"),
}
