"""The kinds of reads: a new one is one file here, one in ``vrchat/reads/``, and their tests."""

from __future__ import annotations

from typing import Any

from lastcall.errors import Invalid
from lastcall.reads.kinds import (
    bans,
    eligibility,
    instance_roles,
    instances,
    invites,
    member,
    members,
    posts,
    requests,
    roles,
    search,
)
from lastcall.reads.kinds.kind import ReadKind

KINDS: dict[str, ReadKind[Any, Any]] = {
    module.KIND.name: module.KIND
    for module in (
        members,
        search,
        member,
        requests,
        invites,
        bans,
        roles,
        instance_roles,
        instances,
        eligibility,
        posts,
    )
}
"""Every kind by its name."""


def read_kind(name: object, field: str = "kind") -> ReadKind[Any, Any]:
    """The kind of that name. Raises ``Invalid`` for any other."""
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Invalid(
            "read_kind_unknown", f"There is no such kind of read; there are {', '.join(KINDS)}.", field=field
        )
    return kind
