"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.access.listeners import on_join_request_coming, on_join_requests_changed
from lastcall.decisions.retention import announce, refresh


def register() -> None:
    """Signal a join request before it is there, and derive its deadline in every transaction that writes one.
    Registering twice is once.
    """
    on_join_request_coming(announce)
    on_join_requests_changed(refresh)
