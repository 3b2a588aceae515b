"""The closed registry of reason codes: what pages say for each, and what a person can do about it.

A code is stored beside a state. A test proves that every code that server, collector or VRChat room can
produce is here, and that none is here that nobody produces.
"""

from __future__ import annotations

from dataclasses import dataclass

UNRECOGNIZED = "unrecognized"
"""Recorded instead of a code that this version does not know: a newer collector may have more than we."""


@dataclass(frozen=True)
class Reason:
    """``label`` fits in a row of a list; ``advice`` is a sentence."""

    label: str
    advice: str


_REVIEW = "Review it and queue a new action."

REASONS: dict[str, Reason] = {
    # given by the server
    "staff_permission": Reason(
        "Staff permission changed",
        "Whoever queued this no longer has the permission for it. Somebody who has it can queue it anew.",
    ),
    "feature_disabled": Reason(
        "Feature disabled", "Switch the feature on at the connection, then queue it anew."
    ),
    "connection_inactive": Reason(
        "Group connection unavailable", "Look at the connection page; once it is active again, queue it anew."
    ),
    "connection_changed": Reason(
        "Group connection changed",
        f"The group was disconnected or connected anew since the review. {_REVIEW}",
    ),
    "connection_paused": Reason(
        "Group connection paused",
        "An operator stopped this connection for now. It is sent once that ends, if in time.",
    ),
    "club_inactive": Reason("Club archived", "An archived club sends nothing. Bring the club back first."),
    "collector_disabled": Reason(
        "Collector stopped", "Ask the operator: the account or the whole fleet is stopped."
    ),
    "stale_key": Reason("Collector key replaced", "The collector needs the account's current key."),
    "stale_lease": Reason("Another collector took over", "Nothing to do: the other one goes on."),
    "claim_unavailable": Reason("No longer claimed", "Nothing to do: it was cancelled, moved or taken back."),
    "provider_authority": Reason(
        "Permission check unavailable", f"What VRChat says of the account was not fresh enough. {_REVIEW}"
    ),
    "late_window_elapsed": Reason(
        "Scheduled time missed",
        "It could not be sent within 15 minutes of its time. Queue it anew if still wanted.",
    ),
    "event_cancelled": Reason(
        "Event cancelled", f"Its event was cancelled, and reinstating that does not bring it back. {_REVIEW}"
    ),
    "event_deleted": Reason("Event removed", "Its event is gone, and what was to be sent for it with it."),
    "event_time_tba": Reason(
        "Event has no exact time", "Once the event has a start again, review it and queue a new action."
    ),
    "event_rescheduled": Reason(
        "Event moved", "Nothing to do: it waits for its new time, by the event's new start."
    ),
    "submission_outcome_unknown": Reason(
        "Outcome unknown", "It may have been sent. Look in VRChat before anything is queued anew."
    ),
    "preflight_retries_exhausted": Reason(
        "Gave up after three tries", "VRChat could not be asked three times in a row. Queue it anew later."
    ),
    "cancelled_by_staff": Reason("Cancelled by staff", "Nothing to do."),
    "awaiting_instance_creation": Reason(
        "Waiting for its instance", "Nothing to do: it is sent once the instance is there, if in time."
    ),
    "instance_creation_failed": Reason(
        "Instance was not created", "Queue a new creation, then review the invitation anew with it."
    ),
    "instance_creation_rescheduled": Reason(
        "Instance creation moved after this invitation",
        f"Its instance would be created later than it was to be sent. {_REVIEW}",
    ),
    "dependency_unavailable": Reason(
        "Creation is not what was reviewed",
        "The creation of its instance was changed, or was never reviewed with it. Review the invitation anew.",
    ),
    "dependency_destination_unavailable": Reason(
        "Instance is not where it was planned", "Look at the instance, and invite to an open one instead."
    ),
    "database_restored": Reason(
        "Database was restored",
        "The database went back to an earlier time, so unsent work needs a new review.",
    ),
    UNRECOGNIZED: Reason(
        "Reason not recognized", "The collector is newer than the server: update the server."
    ),
    # given by server and collector
    "provider_permissions": Reason(
        "VRChat permission required",
        "Give the account's role in the group the permission, then queue it anew.",
    ),
    "protected_target": Reason(
        "Protected member", "The group's owner and the account itself cannot be targets."
    ),
    "role_scope": Reason("Role not in this group", "Choose a role that the group has now."),
    "role_not_assignable": Reason(
        "Role not permitted", "The owner decides which VRChat roles each staff role may assign."
    ),
    "membership": Reason("Account is not a member", "Invite the account into the group, then queue it anew."),
    "invalid_instance_options": Reason(
        "Instance options unavailable",
        "A public instance needs a public group, and roles can be named for members only. Choose other options.",
    ),
    "recipient_eligibility": Reason(
        "Recipient unavailable",
        "VRChat lets the account invite its friends only. Become friends, then queue it anew.",
    ),
    # given by the collector
    "operation_budget_too_low": Reason(
        "Request budget too low", "Ask the operator for a higher number of requests a minute."
    ),
    "submission_not_attempted": Reason("Not sent", f"It was stopped before anything left. {_REVIEW}"),
    "authentication": Reason("Account must sign in again", "Ask the operator to sign the account in."),
    "rate_limit": Reason("VRChat asked to slow down", "Wait a while, then queue it anew."),
    "daily_write_cap": Reason(
        "Account's writes of the day are used up",
        "Queue it anew for tomorrow (UTC), or ask the operator for more writes a day.",
    ),
    "timeout": Reason(
        "VRChat did not answer in time", "Wait a while; look in VRChat first if the outcome is unknown."
    ),
    "network": Reason(
        "VRChat could not be reached", "Wait a while; look in VRChat first if the outcome is unknown."
    ),
    "transient": Reason(
        "VRChat had a passing fault", "Wait a while; look in VRChat first if the outcome is unknown."
    ),
    "provider_unavailable": Reason("VRChat is unavailable", "Wait a while, then queue it anew."),
    "provider_error": Reason(
        "VRChat refused", "VRChat gave no reason that we know. Check the target and try anew."
    ),
    "provider_scope": Reason(
        "Answer of another group", "VRChat answered for something else. Check the target."
    ),
    "destination_scope": Reason(
        "Instance of another group", "Choose an instance that belongs to the club's own group."
    ),
    "destination_closed": Reason("Instance closed", "Choose an open instance and queue it anew."),
    "friendship": Reason(
        "Not a friend of the account",
        "VRChat takes invites to an instance only between friends. The person has to befriend the account first.",
    ),
    "group_visibility": Reason(
        "Group is not public",
        "A public instance needs a public group. Choose another access, or open the group.",
    ),
    "schema_drift": Reason(
        "Answer not understood", "VRChat answered in a form we do not know. Update Lastcall."
    ),
    "visibility": Reason("Not found in VRChat", "The target is gone or not visible to the account."),
    "invalid_input": Reason("VRChat found the input invalid", "Check the target, then queue it anew."),
    "unsupported_operation": Reason(
        "Collector too old", "Update the collector: it does not know this kind of action."
    ),
    "preflight_failed": Reason(
        "Check before sending failed", "Queue it anew; tell the operator if it fails again."
    ),
    "no_join_request": Reason(
        "No open join request", "Nothing to do: they withdrew it, or it was decided in VRChat."
    ),
    "too_many_groups": Reason(
        "Person is in too many groups", "They must leave a group first; then queue it anew."
    ),
    "not_invited": Reason("Not invited", "Nothing to do: there is no open invitation to take back."),
    "not_banned": Reason("Not banned", "Nothing to do: no ban stands."),
    "already_member": Reason("Already a member", "Nothing to do: the person is in the group."),
    "already_invited": Reason("Already invited", "Nothing to do: the invitation is open."),
    "already_closed": Reason("Already closed", "Nothing to do: nobody can join the instance any more."),
    "already_banned": Reason("Already banned", "Nothing to do: the ban stands."),
    "invitation_refused": Reason(
        "Invitation refused", "The person is banned or blocked, or takes no invitations from this group."
    ),
}


def known(code: str) -> str:
    """``code`` where the registry has it, else ``UNRECOGNIZED``: a result is never lost over its reason."""
    return code if code in REASONS else UNRECOGNIZED
