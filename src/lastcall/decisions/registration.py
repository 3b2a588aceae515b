"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.access.listeners import on_join_request_coming, on_join_requests_changed
from lastcall.clubs.listeners import on_club_changed
from lastcall.decisions.deliveries import personal as deliveries
from lastcall.decisions.personal import SOURCES
from lastcall.decisions.retention import announce, refresh
from lastcall.decisions.retention_refresh import club_changed
from lastcall.people.data_retention import keep
from lastcall.people.personal_data import holds


def register() -> None:
    """Signal a join request before it is there, derive its deadline in every transaction that writes one, and
    note a club whose pending ones must follow it. Registering twice is once.
    """
    holds(*SOURCES, *deliveries.SOURCES)
    keep(*deliveries.RULES)
    on_join_request_coming(announce)
    on_join_requests_changed(refresh)
    on_club_changed(club_changed)
