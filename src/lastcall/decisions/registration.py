"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.access.listeners import on_join_requests_changed
from lastcall.decisions.retention import refresh


def register() -> None:
    """Derive a join request's deadline in every transaction that writes one. Registering twice is once."""
    on_join_requests_changed(refresh)
