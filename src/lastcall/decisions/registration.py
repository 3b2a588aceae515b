"""What this room hangs on others; ``app.py`` calls it."""

from __future__ import annotations

from functools import partial

from lastcall.access.listeners import (
    on_join_request_coming,
    on_join_requests_changed,
    on_join_requests_going,
)
from lastcall.clubs.listeners import on_club_changed
from lastcall.decisions.approvals import personal as approvals
from lastcall.decisions.deliveries import registration as deliveries
from lastcall.decisions.inbox import registration as inbox
from lastcall.decisions.personal import SOURCES
from lastcall.decisions.questions import personal as questions
from lastcall.decisions.questions.actions import offer_action
from lastcall.decisions.retention.due import announce, gone, refresh
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.decisions.retention.proposals import ArchiveProposal
from lastcall.decisions.retention.refreshes import club_changed
from lastcall.decisions.runs.retained import RULES
from lastcall.people.data_retention import keep
from lastcall.people.personal_data import holds

JOIN_REQUEST_COMING = partial(announce, kind=JOIN_REQUEST)
JOIN_REQUESTS_CHANGED = partial(refresh, kind=JOIN_REQUEST)
JOIN_REQUESTS_GOING = partial(gone, kind=JOIN_REQUEST)


def register() -> None:
    """Signal a join request before it is there, derive its deadline in every transaction that writes one, and
    note a club whose pending ones must follow it. Registering twice is once.
    """
    holds(*SOURCES, *approvals.SOURCES, *questions.SOURCES)
    keep(*RULES)
    deliveries.register()
    inbox.register()
    offer_action(ArchiveProposal())
    on_join_request_coming(JOIN_REQUEST_COMING)
    on_join_requests_changed(JOIN_REQUESTS_CHANGED)
    on_join_requests_going(JOIN_REQUESTS_GOING)
    on_club_changed(club_changed)
