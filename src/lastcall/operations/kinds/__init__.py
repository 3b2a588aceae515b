"""The kinds of operations: a new one is one file here, one in ``vrchat/writes/``, and their tests."""

from __future__ import annotations

from typing import Any

from lastcall.clubs.policy import Standing
from lastcall.errors import Invalid
from lastcall.operations.kinds import (
    approve_request,
    assign_role,
    ban_member,
    cancel_member_invite,
    close_instance,
    create_instance,
    delete_post,
    edit_post,
    invite_member,
    invite_to_created_instance,
    invite_to_instance,
    publish_post,
    reject_request,
    remove_member,
    remove_role,
    unban_member,
)
from lastcall.operations.kinds.kind import Kind

KINDS: dict[str, Kind[Any]] = {
    module.KIND.name: module.KIND
    for module in (
        approve_request,
        reject_request,
        invite_member,
        cancel_member_invite,
        remove_member,
        ban_member,
        unban_member,
        assign_role,
        remove_role,
        publish_post,
        edit_post,
        delete_post,
        create_instance,
        close_instance,
        invite_to_instance,
        invite_to_created_instance,
    )
}
"""Every kind by its name, in the order in which pages list them."""


def kind_named(name: object, field: str = "kind") -> Kind[Any]:
    """The kind of that name. Raises ``Invalid`` for any other."""
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Invalid(
            "kind_unknown", f"There is no such kind of action; there are {', '.join(KINDS)}.", field=field
        )
    return kind


def kinds_visible_to(standing: Standing) -> list[str]:
    """The names of the kinds whose permission the reader has; nothing else exists for them (EDT-09)."""
    return [kind.name for kind in KINDS.values() if standing.holds(kind.permission)]
