"""The lines of the inbox's routes."""

from __future__ import annotations

from tests.web.route_lines import ACCOUNT_PAGE, STAFF_PAGE, Line, form, own_form

INBOX: dict[str, Line] = {
    "GET /inbox": ACCOUNT_PAGE,
    "GET /live/inbox": ACCOUNT_PAGE,
    # Without a tick the page comes again and says so; what it does to items is test_inbox_pages' business.
    "POST /inbox": own_form(right=200, fields={"do": "dismiss"}),
    "GET /c/{slug:str}/inbox": STAFF_PAGE,
    "POST /c/{slug:str}/inbox": form(
        lacking=200, right=200, unknown_path="/c/no-such-club", fields={"do": "dismiss"}
    ),
}
