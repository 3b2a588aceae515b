"""The lines of approvals', decisions' and runs' pages."""

from __future__ import annotations

from tests.web.route_lines import STAFF_PAGE, Line, form, page

ASKS: dict[str, Line] = {
    "GET /c/{slug:str}/approvals": STAFF_PAGE,
    "GET /c/{slug:str}/approvals/{approval_id:str}": page("/c/night-shift/approvals/{approval}", lacking=404),
    "POST /c/{slug:str}/approvals/{approval_id:str}": form(
        "/c/night-shift/approvals/{approval}", lacking=404, fields={"act": "approve", "seen": "1"}
    ),
    "GET /c/{slug:str}/decisions": STAFF_PAGE,
    "GET /c/{slug:str}/decisions/{decision_id:str}": page("/c/night-shift/decisions/{decision}", lacking=404),
    "POST /c/{slug:str}/decisions/{decision_id:str}": form(
        "/c/night-shift/decisions/{decision}", lacking=404, fields={"act": "decide", "option": "a"}
    ),
    "GET /c/{slug:str}/runs/{run_id:str}": page("/c/night-shift/runs/{run}"),
}
