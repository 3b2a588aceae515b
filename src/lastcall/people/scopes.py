"""What an API token may be used for. A token never does more than its person may, and only within these."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """One kind of use. The value is what the database and the API hold."""

    READ = "read"
    ACCOUNT = "account"
    CLUBS = "clubs"
    STAFF = "staff"
    ACCESS = "access"
    DECISIONS = "decisions"
    EVENTS = "events"
    OPERATIONS = "operations"
    CONNECTION = "connection"
    OPERATOR = "operator"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    Scope.READ: "Read what I may see",
    Scope.ACCOUNT: "End my sessions and revoke my tokens",
    Scope.CLUBS: "Change clubs: settings, visibility, pause, resume",
    Scope.STAFF: "Change staff: roles and who has them",
    Scope.ACCESS: "Invite people and decide join requests",
    Scope.DECISIONS: "Ask for approvals and decisions, and decide them",
    Scope.EVENTS: "Change events and import calendars",
    Scope.OPERATIONS: "Queue, edit and cancel actions, have pages read from VRChat",
    Scope.CONNECTION: "Change connections to VRChat groups",
    Scope.OPERATOR: "What an operator sees and does",
}
