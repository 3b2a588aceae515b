"""How kinds, states and codes look: an icon, a colour and a word each, in one place. Words for codes come
from ``operations.codes``.
"""

from __future__ import annotations

from dataclasses import dataclass

from lastcall.operations.codes import REASONS
from lastcall.operations.machine import State


@dataclass(frozen=True)
class KindLook:
    """``one`` and ``many`` make titles: *Ban*, *Give “Regular” to 40 people*, *Publish “Tonight”*."""

    icon: str
    about: str
    one: str
    many: str
    confirm: str


KINDS: dict[str, KindLook] = {
    "approve_request": KindLook(
        "check",
        "Lets people in who asked in VRChat to join the group.",
        "Let in",
        "Let in {count} people",
        "approval",
    ),
    "reject_request": KindLook(
        "cross",
        "Turns down people who asked in VRChat to join the group. They may ask again.",
        "Turn down",
        "Turn down {count} people",
        "rejection",
    ),
    "invite_member": KindLook(
        "mail",
        "Sends invitations to the VRChat group. Done means that VRChat took them, not that they were accepted.",
        "Invite",
        "Invite {count} people",
        "invitation",
    ),
    "cancel_member_invite": KindLook(
        "slash",
        "Takes back one invitation into the group that is not accepted yet.",
        "Take back the invitation of",
        "Take back the invitation of",
        "cancelled invitation",
    ),
    "remove_member": KindLook(
        "leave",
        "Removes one member from the group; they may join again. It goes before everything else that waits.",
        "Remove",
        "Remove",
        "removal",
    ),
    "ban_member": KindLook(
        "ban",
        "Bans one person from the group. It goes before everything else that waits.",
        "Ban",
        "Ban",
        "ban",
    ),
    "unban_member": KindLook(
        "turn",
        "Lifts the ban of one person. They are no member by that; invite them or let them join.",
        "Unban",
        "Unban",
        "unban",
    ),
    "assign_role": KindLook(
        "role",
        "Gives members one of the group's roles.",
        "Give {role} to",
        "Give {role} to {count} people",
        "role assignment",
    ),
    "remove_role": KindLook(
        "role",
        "Takes one of the group's roles from members.",
        "Take {role} from",
        "Take {role} from {count} people",
        "role removal",
    ),
    "publish_post": KindLook(
        "bolt",
        "Publishes a post in the group, to everybody or to some of its roles.",
        "Publish {post}",
        "Publish {post}",
        "post",
    ),
    "edit_post": KindLook(
        "more",
        "Replaces one post of the group as a whole.",
        "Edit {post}",
        "Edit {post}",
        "edited post",
    ),
    "delete_post": KindLook(
        "cross",
        "Deletes one post of the group.",
        "Delete the post",
        "Delete the post",
        "post deletion",
    ),
    "create_instance": KindLook(
        "plus",
        "Opens an instance of the group in a world. Invitations can wait for it.",
        "Open an instance",
        "Open {count} instances",
        "new instance",
    ),
    "close_instance": KindLook(
        "leave",
        "Closes one instance: nobody may join it any more, and whoever is inside stays.",
        "Close an instance",
        "Close {count} instances",
        "closing",
    ),
    "invite_to_instance": KindLook(
        "person",
        "Asks friends of the account into an open instance. Done means that VRChat took the invites.",
        "Invite to an instance",
        "Invite {count} people to an instance",
        "instance invitation",
    ),
    "invite_to_created_instance": KindLook(
        "person",
        "Asks friends of the account into an instance that another action opens first.",
        "Invite to a new instance",
        "Invite {count} people to a new instance",
        "instance invitation",
    ),
}


def confirm_words(kind: str, count: int) -> str:
    """What the confirming button says: it names what is queued and how much of it."""
    noun = KINDS[kind].confirm
    return f"Queue 1 {noun}" if count == 1 else f"Queue {count} {noun}s"


@dataclass(frozen=True)
class Look:
    """A status as people see it. ``tone`` is a class of ``status.css``."""

    tone: str
    icon: str
    word: str


_STATES: dict[State, tuple[str, str]] = {
    State.PENDING: ("wait", "clock"),
    State.CLAIMED: ("live", "turn"),
    State.SUBMITTED: ("live", "turn"),
    State.SUCCEEDED: ("ok", "check"),
    State.REJECTED: ("bad", "cross"),
    State.INDETERMINATE: ("unknown", "question"),
    State.CANCELLED: ("", "slash"),
    State.MISSED: ("bad", "late"),
}
_NOT_SENT = "submission_not_attempted"


def state_look(state: State, code: str | None = None) -> Look:
    """The look of a row. *Not sent* has its own word, because it is the one failure that surely did
    nothing.
    """
    tone, icon = _STATES[state]
    if state is State.REJECTED and code == _NOT_SENT:
        return Look("", "slash", REASONS[_NOT_SENT].label)
    return Look(tone, icon, state.label)


@dataclass(frozen=True)
class Why:
    label: str
    advice: str


def why(code: str | None) -> Why | None:
    """A reason code in words; an unknown one is shown as it is rather than hidden."""
    if code is None:
        return None
    reason = REASONS.get(code)
    return Why(reason.label, reason.advice) if reason else Why(code, "")


@dataclass(frozen=True)
class Obstacle:
    """Why nothing is sent at present, and who can change that."""

    title: str
    sentence: str


_OBSTACLES: dict[str, Obstacle] = {
    "fleet_switch": Obstacle(
        "Everything is stopped.", "An operator stopped all accounts. What is due is missed after 15 minutes."
    ),
    "account_switch": Obstacle(
        "The account is stopped.",
        "An operator stopped the club's VRChat account. What is due is missed after 15 minutes.",
    ),
    "account_state": Obstacle(
        "The account does not work at present.",
        "It rests, is signed out or was taken out of work; the operator sees why.",
    ),
    "connection_switch": Obstacle(
        "This connection is stopped.",
        "Whoever manages it, or an operator, lets it go on. What is due is missed after 15 minutes.",
    ),
    "connection_state": Obstacle("The connection is not active.", "Nothing is sent until it is again."),
    "epoch": Obstacle("The group is being disconnected.", "Nothing is sent there any more."),
    "frozen": Obstacle(
        "This connection is frozen.",
        "Its collector knows of something this server does not. An operator must look before anything is sent.",
    ),
}


def obstacle(code: str) -> Obstacle | None:
    """An obstacle in words; ``none`` is none."""
    if code == "none":
        return None
    return _OBSTACLES.get(code, Obstacle("Nothing is sent at present.", f"The reason is “{code}”."))


OWNERS: dict[str, str] = {
    "join_request_retention": "Archives join requests that nobody decided",
    "approval_retention": "Archives approvals that nobody decided",
    "data_retention": "Forgets old sign-ins, mail records and audit entries",
    "operation_late_pending": "Marks waiting actions as missed",
    "operation_late_claimed": "Marks prepared actions as missed",
    "claim_expiry": "Takes back claims that ran out",
    "operation_mail": "Writes to people about what did not end well",
    "submission_recovery": "Records lost answers as unknown",
    "lease_expiry": "Ends leases that ran out",
    "operation_fanout": "Stops and moves what follows an event or a new instance",
    "epoch_cleanup": "Rejects what was not sent before a disconnect",
    "read_expiry": "Deletes what was read from VRChat for a screen",
    "retention_refresh": "Derives anew when the items of a changed club are archived",
    "decision_expiry": "Ends decisions that nobody took in time",
    "budget_months": "Lets go on at a new month what a budget of the old one stopped",
    "deliveries": "Tells people by mail and Slack what became of their matters",
    "retention_reminder": "Reminds who may decide of what is about to be archived",
    "retention_digest": "Tells who may decide what was archived",
    "club_deletion": "Deletes clubs whose time to reconsider is over",
}
"""What each deadline owner does, for the operator's page."""

CHANNELS = {"mail": "mail", "slack": "Slack", "agent": "its key"}
"""By what somebody is told, besides their pages."""
