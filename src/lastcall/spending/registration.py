"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from lastcall.clubs.listeners import on_club_changed
from lastcall.decisions.deliveries.kinds import declare_kind
from lastcall.decisions.inbox.source import register_source
from lastcall.people.preferences import declare_topic
from lastcall.spending.judging import club_changed
from lastcall.spending.source import BUDGETS
from lastcall.spending.words import BUDGET, KINDS


def register() -> None:
    """Registering twice is once."""
    register_source(BUDGETS)
    on_club_changed(club_changed)
    declare_topic(BUDGET)
    declare_kind(*KINDS)
