"""What an agent may be allowed to do in its club, beside being there. A key carries exactly its agent's grants."""

from __future__ import annotations

from enum import StrEnum


class AgentGrant(StrEnum):
    """One thing an agent may do. The value is what is stored and what the API shows."""

    READ_EVENTS = "read_events"
    READ_INBOX = "read_inbox"
    ASK = "ask"
    PROPOSE_ARCHIVE = "propose_archive"
    REPORT_RUNS = "report_runs"
    REPORT_COSTS = "report_costs"

    @property
    def label(self) -> str:
        """What people read."""
        return _LABELS[self]


_LABELS = {
    AgentGrant.READ_EVENTS: "Read published events",
    AgentGrant.READ_INBOX: "Read what waits for a decision, without addresses",
    AgentGrant.ASK: "Ask for approvals and decisions",
    AgentGrant.PROPOSE_ARCHIVE: "Propose what to archive",
    AgentGrant.REPORT_RUNS: "Report its runs",
    AgentGrant.REPORT_COSTS: "Report what it costs",
}
