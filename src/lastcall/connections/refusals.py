"""What a worker is told when a call is refused: one sentence for each outcome that the SQL functions give."""

from __future__ import annotations

from lastcall.errors import Conflict, Disabled, LastcallError, NotFound, NotSignedIn

_CONFLICTS = {
    "stale_lease": ("This lease is over or another worker holds it.", "Take the lease anew."),
    "held": ("Another worker holds this connection.", "Wait until it is offered again."),
    "epoch": (
        "The connection was connected anew or is served by another account.",
        "Drop what you hold for it and wait until it is offered again.",
    ),
    "connection_state": (
        "The connection is not active.",
        "Wait: it is offered again once it is.",
    ),
    "frozen": (
        "The connection is frozen until a person has looked at it.",
        "Ask an operator to look at the connection's page.",
    ),
    "connection_switch": (
        "The connection's kill switch is on.",
        "Ask whoever manages the connection to switch it off.",
    ),
}

# The account as a whole may not work: 423.
_DISABLED = {
    "fleet_switch": "The kill switch over all accounts is on.",
    "account_switch": "This account's kill switch is on.",
    "account_state": "This account may not work at present.",
}


def key_refused() -> NotSignedIn:
    """The one answer to an unknown account, a wrong, superseded or revoked key, and another VRChat user."""
    return NotSignedIn(
        "worker_key_refused",
        "This worker key is not the account's current one, or the VRChat user is not the account's.",
        advice="Ask an operator to rotate the account's key, and start the collector with the new one.",
    )


def refused(outcome: str) -> LastcallError:
    """The error for an outcome other than success. ``code`` is the outcome itself."""
    if outcome == "stale_key":
        return key_refused()
    if outcome == "unknown":
        return NotFound("connection_unknown", "This account serves no such connection.")
    if outcome in _DISABLED:
        return Disabled(
            outcome,
            _DISABLED[outcome],
            advice="Ask an operator to look at the account on the operator page.",
        )
    sentence, advice = _CONFLICTS[outcome]
    return Conflict(outcome, sentence, advice=advice)
