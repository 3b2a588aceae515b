"""The sources that this room itself has; a later room adds its own with ``register_source``."""

from __future__ import annotations

from lastcall.decisions.inbox.personal import SOURCES
from lastcall.decisions.inbox.source import register_source
from lastcall.decisions.inbox.sources.approvals import APPROVALS
from lastcall.decisions.inbox.sources.decisions import DECISIONS
from lastcall.decisions.inbox.sources.failed_runs import FAILED_RUNS
from lastcall.decisions.inbox.sources.join_requests import JOIN_REQUESTS
from lastcall.people.personal_data import holds


def register() -> None:
    """Registering twice is once."""
    holds(*SOURCES)
    for source in (FAILED_RUNS, APPROVALS, DECISIONS, JOIN_REQUESTS):
        register_source(source)
