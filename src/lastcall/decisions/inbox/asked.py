"""What somebody asked, as the inbox shows it: who it was, in words and in SQL over a row with the asker's columns."""

from __future__ import annotations

from typing import Any

ASKER_FACTS = """'asker_kind', s.requested_by_kind, 'asker', coalesce(
    (select p.display_name from people p where p.id = s.requested_by_person_id),
    (select a.name from agents a where a.club_id = s.club_id and a.id = s.requested_by_agent_id),
    s.requested_by_system)"""


def asker(facts: dict[str, Any]) -> str:
    """Who asked, for people."""
    match facts["asker_kind"]:
        case "agent":
            return f"the agent {facts['asker']}"
        case "system":
            return "Lastcall"
        case _:
            return str(facts["asker"])


def asker_without_name(facts: dict[str, Any]) -> str:
    """The same for agents, who learn no person's name."""
    return "a person" if facts["asker_kind"] == "person" else asker(facts)
