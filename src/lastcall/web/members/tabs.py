"""The lists of the Members page: what each is read from, who may open it, and what can be begun from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.kind import Kind

PAGE = 25
"""People on one page of a list."""
SEARCH_LEAST, SEARCH_MOST = 3, 100
"""Characters that VRChat looks for in the names of members."""


@dataclass(frozen=True)
class Tab:
    """One list. ``read`` is the provider read that it shows, ``search`` the one by a name; ``single`` are the kinds of
    actions that a row has a button for, ``ticked`` those for everybody who is ticked. ``since`` says what ``moment``
    of an item is; ``empty`` what it means that nobody is there. ``begin``: what is begun for people not on it.
    """

    name: str
    label: str
    about: str
    read: str
    permission: Permission
    single: tuple[str, ...]
    ticked: tuple[str, ...]
    since: str
    moment: str
    empty: str
    search: str | None = None
    begin: str | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """The reads that this list is shown from."""
        return (self.read,) if self.search is None else (self.read, self.search)


DIRECTORY = Tab(
    "directory",
    "Directory",
    "Who is in the group.",
    "members",
    Permission.VIEW_MEMBERS,
    ("remove_member", "ban_member"),
    ("assign_role", "remove_role"),
    "joined",
    "joined_at",
    "The group has no members that the account may see.",
    search="search",
)
REQUESTS = Tab(
    "requests",
    "Requests",
    "Who asks in VRChat to join the group.",
    "requests",
    Permission.APPROVE_JOIN_REQUESTS,
    ("approve_request", "reject_request"),
    ("approve_request", "reject_request"),
    "asked",
    "asked_at",
    "Nobody asks to join.",
)
INVITATIONS = Tab(
    "invitations",
    "Invitations",
    "Who is invited into the group and has not answered.",
    "invites",
    Permission.INVITE_GROUP_MEMBERS,
    ("cancel_member_invite",),
    (),
    "invited",
    "invited_at",
    "No invitation is open.",
    begin="invite_member",
)
BANS = Tab(
    "bans",
    "Bans",
    "Who is kept out of the group.",
    "bans",
    Permission.MANAGE_BANS,
    ("unban_member",),
    (),
    "banned",
    "banned_at",
    "Nobody is banned.",
    begin="ban_member",
)
BUTTONS: Mapping[str, str] = {
    "approve_request": "Let in",
    "reject_request": "Turn down",
    "cancel_member_invite": "Take back",
    "remove_member": "Remove",
    "ban_member": "Ban",
    "unban_member": "Unban",
    "assign_role": "Give the role",
    "remove_role": "Take the role",
}
"""What the buttons beside people say."""
LISTS: Mapping[str, Tab] = {tab.name: tab for tab in (DIRECTORY, REQUESTS, INVITATIONS, BANS)}

ACTIONS = "actions"
"""The tab that lists nobody: a person is named there by id, by staff that may act and not look."""
BY_ID = (
    "approve_request",
    "reject_request",
    "invite_member",
    "cancel_member_invite",
    "assign_role",
    "remove_role",
    "remove_member",
    "ban_member",
    "unban_member",
)
"""The kinds of actions about a person and their place in the group."""


def tab_of_read(kind: str) -> Tab | None:
    """The list that a read of that kind is shown in."""
    return next((tab for tab in LISTS.values() if kind in tab.reads), None)


def lists_for(standing: Standing) -> list[Tab]:
    return [tab for tab in LISTS.values() if standing.holds(tab.permission)]


def kinds_by_id(standing: Standing) -> list[Kind[Any]]:
    """What the reader may do to a person whose id they know."""
    return allowed(standing, BY_ID)


def allowed(standing: Standing, names: Sequence[str]) -> list[Kind[Any]]:
    """Of these kinds those that the reader may queue."""
    return [KINDS[name] for name in names if standing.holds(KINDS[name].permission)]


def first_tab(standing: Standing) -> str | None:
    """Where the page opens; None for a reader who may open nothing of it."""
    lists = lists_for(standing)
    if lists:
        return lists[0].name
    return ACTIONS if kinds_by_id(standing) else None
