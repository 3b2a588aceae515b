"""Lines of the Connection page and what is done there."""

from __future__ import annotations

from tests.web.route_lines import MANAGERS_PAGE, Line, form, page

AT = "/c/night-shift/connection"

CONNECTION: dict[str, Line] = {
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
