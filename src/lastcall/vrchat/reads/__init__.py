"""The reads that somebody at a screen waits for, one file a kind. A new kind is its file and a line here."""

from __future__ import annotations

from lastcall.vrchat.errors import UnsupportedOperation
from lastcall.vrchat.reads.bans import BANS
from lastcall.vrchat.reads.eligibility import ELIGIBILITY
from lastcall.vrchat.reads.instances import INSTANCES
from lastcall.vrchat.reads.invites import INVITES
from lastcall.vrchat.reads.kind import Item, Page, PageParams, Params, ReadKind
from lastcall.vrchat.reads.member import MEMBER
from lastcall.vrchat.reads.members import MEMBERS
from lastcall.vrchat.reads.posts import POSTS
from lastcall.vrchat.reads.requests import REQUESTS
from lastcall.vrchat.reads.roles import INSTANCE_ROLES, ROLES
from lastcall.vrchat.reads.search import SEARCH

__all__ = ["READS", "Item", "Page", "PageParams", "Params", "ReadKind", "read_kind"]

READS = {
    kind.name: kind
    for kind in (
        MEMBERS,
        SEARCH,
        MEMBER,
        REQUESTS,
        INVITES,
        BANS,
        ROLES,
        INSTANCE_ROLES,
        INSTANCES,
        ELIGIBILITY,
        POSTS,
    )
}
"""Every kind by its name."""


def read_kind(name: str) -> ReadKind:
    """The kind of this name. Raises ``UnsupportedOperation`` for one that this release does not know."""
    try:
        return READS[name]
    except KeyError:
        raise UnsupportedOperation(
            f"This collector does not know reads of the kind {name}.",
            advice="Bring the collector to the server's release.",
        ) from None
