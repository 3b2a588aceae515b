"""How an operation that was submitted can end, and the reason codes that the collector itself gives."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What became of the one write. ``indeterminate`` is shown as *Outcome unknown* and never sent again."""

    SUCCEEDED = "succeeded"
    REJECTED = "rejected"
    INDETERMINATE = "indeterminate"


class Code(StrEnum):
    """Reason codes the collector produces beside those of a kind's own answer table (``vrchat/writes/``).

    The server's registry holds a label and advice for each; codes only the server gives are not listed here.
    """

    BUDGET_TOO_LOW = "operation_budget_too_low"
    """The lowest limit is below what the operation costs (BUD-02)."""
    NOT_ATTEMPTED = "submission_not_attempted"
    """Authorized, then stopped before transport by budget, deadline or shutdown (WRK-13). Shown as *Not sent*."""
    OUTCOME_UNKNOWN = "submission_outcome_unknown"
    """An intent is in the journal and no answer: the write may or may not have happened."""
    PROVIDER_PERMISSIONS = "provider_permissions"
    PROTECTED_TARGET = "protected_target"
    AUTHENTICATION = "authentication"
    MEMBERSHIP = "membership"
    ROLE_SCOPE = "role_scope"
    PROVIDER_SCOPE = "provider_scope"
    DESTINATION_SCOPE = "destination_scope"
    """The instance belongs to another group, or the answer is about another instance."""
    DESTINATION_CLOSED = "destination_closed"
    FRIENDSHIP = "friendship"
    """VRChat delivers an invite to an instance only to the account's friends."""
    GROUP_VISIBILITY = "group_visibility"
    """A public instance needs a public group."""
    SCHEMA_DRIFT = "schema_drift"
    VISIBILITY = "visibility"
    PROVIDER_ERROR = "provider_error"
    INVALID_INPUT = "invalid_input"
    UNSUPPORTED_OPERATION = "unsupported_operation"
    PREFLIGHT_FAILED = "preflight_failed"
    TIMEOUT = "timeout"
    NETWORK = "network"
    RATE_LIMIT = "rate_limit"
    DAILY_WRITE_CAP = "daily_write_cap"
    """The account has used up the writes of its day; the delay is until the next one begins for it."""
    TRANSIENT = "transient"
    PROVIDER_UNAVAILABLE = "provider_unavailable"


TRANSIENT_CODES = frozenset(
    {
        Code.TIMEOUT,
        Code.NETWORK,
        Code.RATE_LIMIT,
        Code.DAILY_WRITE_CAP,
        Code.TRANSIENT,
        Code.PROVIDER_UNAVAILABLE,
    }
)
"""Before the authorization these defer an operation; every other code rejects it."""
