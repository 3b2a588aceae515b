"""The lines of the routes of events and of calendars that are imported."""

from __future__ import annotations

from tests.web.route_lines import MANAGERS_PAGE, STAFF_PAGE, Line, form, page

EVENT = {"title": "Opening", "kind": "tba", "zone": "UTC", "seen": "{event_seen}"}

EVENTS: dict[str, Line] = {
    "GET /c/{slug:str}/events": STAFF_PAGE,
    "GET /c/{slug:str}/events/new": MANAGERS_PAGE,
    "POST /c/{slug:str}/events/new": form(unknown=None, fields=EVENT),
    # The event is published, so that all staff may read it.
    "GET /c/{slug:str}/events/{event_id:str}": page("/c/night-shift/events/{event}", lacking=200),
    "GET /c/{slug:str}/events/{event_id:str}/edit": page("/c/night-shift/events/{event}/edit"),
    "POST /c/{slug:str}/events/{event_id:str}/edit": form("/c/night-shift/events/{event}/edit", fields=EVENT),
    "POST /c/{slug:str}/events/{event_id:str}/worlds": form(
        "/c/night-shift/events/{event}/worlds", fields={"world_id": "wrld_1"}
    ),
    "POST /c/{slug:str}/events/{event_id:str}/worlds/{link_id:str}": form(
        "/c/night-shift/events/{event}/worlds/{link_id}", fields={"step": "unlink"}
    ),
    "GET /c/{slug:str}/events/{event_id:str}/{act:str}": page("/c/night-shift/events/{event}/cancel"),
    "POST /c/{slug:str}/events/{event_id:str}/{act:str}": form("/c/night-shift/events/{event}/cancel"),
    # Whoever may not manage events knows of no calendar.
    "GET /c/{slug:str}/events/imports": page(lacking=404, unknown_path="/c/no-such-club"),
    # Neither a file nor an address.
    "POST /c/{slug:str}/events/imports": form(right=422, unknown_path="/c/no-such-club"),
    "GET /c/{slug:str}/events/imports/{import_id:str}": page(
        "/c/night-shift/events/imports/{import}", lacking=404
    ),
    # No date is chosen.
    "POST /c/{slug:str}/events/imports/{import_id:str}": form(
        "/c/night-shift/events/imports/{import}", right=422, fields={"seen": "1"}
    ),
}
