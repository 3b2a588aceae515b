"""Why a read failed: what pages say for each code, and what a person can do about it."""

from __future__ import annotations

from lastcall.operations.codes import UNRECOGNIZED, Reason
from lastcall.protocol.outcomes import Code
from lastcall.reads.states import NOT_ANSWERED

_AGAIN = "Refresh in a moment."
_CONNECTION = "Look at the connection page; once that is in order, refresh."

REASONS: dict[str, Reason] = {
    # given by the server
    NOT_ANSWERED: Reason("Not answered in time", f"The collector may be busy or stopped. {_AGAIN}"),
    "access_expired": Reason(
        "Permission changed", "Whoever asked lost the permission meanwhile. Somebody who has it can refresh."
    ),
    "feature_disabled": Reason("Feature disabled", "Switch the feature on at the connection page first."),
    "answer_refused": Reason(
        "Answer unusable", "Run a collector of the same release as the server, then refresh."
    ),
    "answer_too_old": Reason("Answer came too late", _AGAIN),
    "provider_authority": Reason("Permission check unavailable", _AGAIN),
    # given by either side
    Code.PROVIDER_PERMISSIONS: Reason(
        "VRChat permission missing", f"The account's roles in the group do not allow it. {_CONNECTION}"
    ),
    Code.MEMBERSHIP: Reason("Account not in the group", _CONNECTION),
    # given by the collector
    Code.BUDGET_TOO_LOW: Reason(
        "Request limit too low", "Ask the operator for more requests a minute for this connection."
    ),
    Code.AUTHENTICATION: Reason("Account signed out", "Ask the operator to sign the account in again."),
    Code.RATE_LIMIT: Reason("VRChat asked to wait", "Refresh once the account may ask again."),
    Code.PROVIDER_SCOPE: Reason("Answer about another group", _AGAIN),
    Code.DESTINATION_SCOPE: Reason("Instance of another group", "Choose one of the group's own instances."),
    Code.DESTINATION_CLOSED: Reason("Instance closed", "Choose an instance that is open."),
    Code.SCHEMA_DRIFT: Reason(
        "Answer not understood", "VRChat answered in a form that this version does not know."
    ),
    Code.VISIBILITY: Reason("Not visible", "VRChat does not show this to the account."),
    Code.PROVIDER_ERROR: Reason("VRChat refused", _AGAIN),
    Code.INVALID_INPUT: Reason("Not accepted by VRChat", "Check what was asked for."),
    Code.UNSUPPORTED_OPERATION: Reason(
        "Collector too old", "Run a collector of the same release as the server."
    ),
    Code.TIMEOUT: Reason("VRChat took too long", _AGAIN),
    Code.NETWORK: Reason("VRChat not reached", _AGAIN),
    Code.TRANSIENT: Reason("VRChat could not answer", _AGAIN),
    Code.PROVIDER_UNAVAILABLE: Reason("VRChat unavailable", _AGAIN),
    UNRECOGNIZED: Reason("Failed for another reason", f"{_AGAIN} The collector's log says more."),
}


def known(code: str) -> str:
    """``code`` where the registry has it, else ``UNRECOGNIZED``: a newer collector may have more than we."""
    return code if code in REASONS else UNRECOGNIZED
